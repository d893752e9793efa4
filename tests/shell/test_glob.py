"""Pathname expansion on files of a sandbox; the lists are what bash 5.2 gives for the same files."""

from collections.abc import Callable
from time import process_time
from typing import Any

import pytest

from belljar.kernel.process import Process
from belljar.shell.glob import GlobOptions, glob
from tests.adapter import new_session, put

FILES = ["a", "b", "A", "a b", "é", "d/x", "d/.y", "d/e/z", ".h/i/j"]


def in_sandbox(run: Callable[[Process], None], files: list[str]) -> None:
    session = new_session()
    for name in files:
        put(session, f"/tmp/g/{name}", b"")
    put(session, "/tmp/g/l", ("link", "d"))
    put(session, "/tmp/g/broken", ("link", "nowhere"))
    ended: list[Process] = []

    def body(process: Process) -> int:
        run(process)
        return 0

    session.kernel.start(body, ["test"], cwd="/tmp/g", on_exit=ended.append)
    session.kernel.hub.run(lambda: bool(ended))


@pytest.mark.parametrize(
    ("pattern", "options", "expected"),
    [
        ("*", {}, "A|a|a b|b|broken|d|l|é"),
        (".*", {}, ".h"),
        ("*/", {}, "d/|l/"),
        ("*/x", {}, "d/x|l/x"),
        ("*/.", {}, "d/.|l/."),
        ("brok*", {}, "broken"),
        ("brok*/", {}, ""),
        ("[.]h", {}, ""),
        ("d/../[ab]", {}, "d/../a|d/../b"),
        ("/tmp//g/d*//x", {}, "/tmp//g/d/x"),
        ("[[:upper:]]", {}, "A"),
        ("\\*", {}, ""),
        ("*", {"dotglob": True}, ".h|A|a|a b|b|broken|d|l|é"),
        (".*", {"skip_dots": False}, ".|..|.h"),
        ("*/.*", {"skip_dots": False}, "d/.|d/..|d/.y|l/.|l/..|l/.y"),
        ("A*", {"nocase": True}, "A|a|a b"),
        ("!(a|b)", {"extglob": True}, "A|a b|broken|d|l|é"),
        ("@(.h|a)", {"extglob": True}, ".h|a"),
        ("?(.)h", {"extglob": True}, ".h"),
        ("@(.*|a)", {"extglob": True}, ".h|a"),
        ("**", {"globstar": True}, "A|a|a b|b|broken|d|d/e|d/e/z|d/x|l|é"),
        ("**/", {"globstar": True}, "d/|d/e/|l/"),
        ("**/x", {"globstar": True}, "d/x"),
        ("d/**", {"globstar": True}, "d/|d/e|d/e/z|d/x"),
        ("**/**", {"globstar": True}, "A|a|a b|b|broken|d|d/e|d/e/z|d/x|l|é"),
        ("**/.*", {"globstar": True}, ".h|d/.y"),
        ("d/**/z", {"globstar": True}, "d/e/z"),
        ("**/e/**", {"globstar": True}, "d/e|d/e/z"),
        ("*", {"dotglob": True, "ignore": ("a*",)}, ".h|A|b|broken|d|l|é"),
        ("d/*", {"dotglob": True, "ignore": ("*/x",)}, "d/.y|d/e"),
        (".*", {"ignore": (".*",)}, ""),
    ],
)
def test_expansion_is_that_of_bash(pattern: str, options: dict[str, Any], expected: str) -> None:
    def run(process: Process) -> None:
        assert glob(process, pattern, GlobOptions(**options)) == (expected.split("|") if expected else [])

    in_sandbox(run, FILES)


def test_a_large_directory_is_not_quadratic() -> None:
    def run(process: Process) -> None:
        start = process_time()
        assert len(glob(process, "f*")) == 20_000
        assert len(glob(process, "*9", GlobOptions(extglob=True))) == 2_000
        assert process_time() - start < 2

    in_sandbox(run, [f"f{number}" for number in range(20_000)])


def test_many_double_stars_end_soon() -> None:
    def run(process: Process) -> None:
        start = process_time()
        glob(process, "**/**/*/**/**/*/**/zz", GlobOptions(globstar=True))
        assert process_time() - start < 2

    in_sandbox(run, [f"{a}/{b}/{c}/{d}/f" for a in "abcd" for b in "abcd" for c in "abcd" for d in "abcd"])
