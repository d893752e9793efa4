"""Every Python and shell block of the README and the guides runs as printed, or says above it why it is not run:

<!-- not run: needs the internet -->
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from belljar import Sandbox

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/integrations").glob("*.md"))]
BLOCK = re.compile(r"^(?:<!-- not run: ([^\n]+) -->\n)?```(python|sh)\n(.*?)^```$", re.S | re.M)
SILENT = {"docs/network.md", "docs/python.md", "docs/mounts.md"}
"""Pages with blocks that print nothing: definitions, and values in comments."""
NOT_LINES = {
    "belljar run --allow-host pypi.org": "needs pypi.org",
    "belljar shell": "needs a terminal",
    "belljar prepare": "takes minutes",
    "belljar bench": "takes minutes",
    "belljar wasm build": "has a test of its own, with a compiler",
    "belljar serve": "serves until it is stopped; tests/server starts it",
    "belljar browser serve": "serves until it is stopped; tests/browser starts it",
    "belljar mount": "has tests of its own, in namespaces of their own",
}
"""Lines of the README's list of commands that are not run here, and why."""


class Block(NamedTuple):
    page: str
    line: int
    reason: str
    language: str
    text: str


def blocks() -> list[Block]:
    found = []
    for page in PAGES:
        text = page.read_text()
        for match in BLOCK.finditer(text):
            reason, language, code = match.groups()
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(str(page.relative_to(ROOT)), line, reason or "", language, code))
    return found


BLOCKS = blocks()
RUN = [block for block in BLOCKS if not block.reason]


def slow(block: Block) -> pytest.param:  # type: ignore[valid-type]
    marks = () if block.page in ("README.md", "docs/index.md") else pytest.mark.slow
    return pytest.param(block, id=f"{block.page}:{block.line}", marks=marks)


def test_every_block_is_known() -> None:
    fences = sum(len(re.findall(r"^```(?:python|sh|bash)$", page.read_text(), re.M)) for page in PAGES)
    assert fences == len(BLOCKS) > 35
    assert len(RUN) > 28


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "python"], ids=str)
def test_python_is_python(block: Block) -> None:
    ast.parse(block.text)


@pytest.mark.battery(sample=15)
@pytest.mark.parametrize("block", [slow(block) for block in RUN if block.language == "python"])
def test_python_runs(block: Block, tmp_path: Path) -> None:
    for name, text in (
        ("README.md", "mine"),
        ("note.txt", "mine"),
        ("repo/a.txt", "mine"),
        ("repo/soup.txt", "tomato"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", block.text], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout or block.page in SILENT
    assert all((tmp_path / name).read_text() == "mine" for name in ("README.md", "note.txt", "repo/a.txt"))


COMMANDS = [
    line.partition("  #")[0].strip()
    for block in RUN
    if block.language == "sh" and block.page == "README.md"
    for line in block.text.splitlines()
]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_line_of_the_readme_runs(line: str, tmp_path: Path) -> None:
    if any(line.startswith(begins) for begins in NOT_LINES):
        return
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("# TODO\n")
    (tmp_path / "script.sh").write_text("echo hi\n")
    (tmp_path / "notes.md").write_text("teh end\n")
    words = [sys.executable, "-m", "belljar.cli", *shlex.split(line)[1:]]
    environment = {**os.environ, "BELLJAR_NO_DAEMON": "1", "BELLJAR_STORE": str(tmp_path / "store.db")}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout or (tmp_path / "out.diff").read_text()


def test_the_readme_is_full_of_commands() -> None:
    assert len(COMMANDS) > 8
    assert all(any(line.startswith(begins) for line in COMMANDS) for begins in NOT_LINES)


@pytest.mark.parametrize(
    "block", [slow(block) for block in RUN if block.language == "sh" and block.page != "README.md"]
)
def test_shell_runs_in_a_sandbox(block: Block) -> None:
    with Sandbox(files={"/workspace/index.html": "<h1>hi</h1>"}) as sandbox:
        result = sandbox.exec(f"set -e\n{block.text}", timeout=240)
    assert (result.exit_code, bool(result.stdout)) == (0, True), result.stderr
