"""docs/packages.md is a session: its files are written, its commands typed, what they say compared."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import Network, Sandbox
from tests.ports import free_port
from tests.published import npm

PAGE = (Path(__file__).parents[2] / "docs" / "packages.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
PATH = re.compile(r"(?:#|//) (\S+/\S+)\n")
SEVEN_ZIP = ("7z-wasm", "1.2.0", "add07182a789aec966837acb4d75bf97ca8d322f046016d4abc1f4153746e997")


def commands(text: str) -> Iterator[tuple[str, str, str]]:
    """Who types what, and what is to be said."""
    for part in re.split(r"^(?=(?:agent )?\$ )", text, flags=re.M):
        if part:
            line, _, said = part.partition("\n")
            who, _, command = line.partition("$ ")
            yield who, command, said


def matches(pattern: str, said: str) -> bool:
    """`...` stands for anything."""
    return re.fullmatch(".*?".join(map(re.escape, pattern.split("..."))), said, re.S) is not None


@pytest.mark.battery
@pytest.mark.slow
def test_the_page_is_a_session_that_works(tmp_path: Path) -> None:
    port = free_port()
    page = PAGE.replace("8080", str(port))
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data"), "BELLJAR_NO_DAEMON": "1"}
    belljar = f"{sys.executable} -m belljar.cli"
    served: list[subprocess.Popen[str]] = []
    (tmp_path / "7z").mkdir()
    for name, data in npm(*SEVEN_ZIP).items():
        if name in ("7zz.umd.js", "7zz.wasm"):
            (tmp_path / "7z" / name).write_bytes(data)

    def on_host(command: str) -> str:
        line = command.replace("belljar", belljar, 1)
        if line.endswith(" &"):
            process = subprocess.Popen(
                line.removesuffix(" &").split(), cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            served.append(process)
            assert process.stdout is not None
            return process.stdout.readline()
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=280)
        assert done.returncode == 0, done.stderr
        return done.stdout

    ran = 0
    try:
        with Sandbox(network=Network.allow(f"127.0.0.1:{port}")) as sandbox:
            for language, text in BLOCK.findall(page):
                if language == "console":
                    for who, command, expected in commands(text):
                        if who:
                            result = sandbox.exec(command, merge_stderr=True, timeout=240)
                            said = result.stdout
                        else:
                            said = on_host(command)
                        assert matches(expected, said), f"{command}\n{said}"
                        ran += 1
                elif language == "python" and f"127.0.0.1:{port}" in text:
                    done = subprocess.run(
                        [sys.executable, "-c", text], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=280
                    )
                    assert done.returncode == 0, done.stderr
                    assert done.stdout.startswith("hello, ")
                    ran += 1
                elif path := PATH.match(text):
                    place = tmp_path / path[1]
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_text(text[path.end() :])
    finally:
        for process in served:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=240)
    assert ran > 25
