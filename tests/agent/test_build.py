"""Building the agent: for both machines, without warnings; once, however many processes want it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from belljar.native import agent_build_host
from belljar.native.agent_build_host import MACHINES, AgentUnavailable, build
from tests.reliability.amount import WHOLE

E_MACHINE = {"x86_64": 62, "aarch64": 183}


CHECKED = [machine for machine in MACHINES if machine == platform.machine() or WHOLE]
"""Zig compiles a whole C library for another machine first: minutes."""


@pytest.mark.slow
@pytest.mark.parametrize("machine", CHECKED)
def test_it_is_a_static_program_of_the_machine(machine: str, tmp_path: Path) -> None:
    made = tmp_path / "agent"
    build(made, machine)
    header = made.read_bytes()[:20]
    assert header[:4] == b"\x7fELF"
    assert int.from_bytes(header[18:20], "little") == E_MACHINE[machine]
    assert b"ld-musl" not in made.read_bytes(), "it needs no loader"
    assert os.access(made, os.X_OK)


def test_another_machine_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(AgentUnavailable, match="the agent is for x86_64 and aarch64; this machine is mips"):
        build(tmp_path / "agent", "mips")


def test_what_does_not_compile_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "sources"
    source.mkdir()
    (source / "main.c").write_text("int main(void) { return nothing; }")
    monkeypatch.setattr(agent_build_host, "HERE", source)
    (tmp_path / "made").mkdir()
    with pytest.raises(AgentUnavailable, match="undeclared"):
        build(tmp_path / "made" / "agent")
    assert os.listdir(tmp_path / "made") == []


@pytest.mark.slow
def test_processes_that_want_it_at_once_build_it_once(tmp_path: Path) -> None:
    """In a cache of its own: Zig's is linked to, so that its C library is not compiled again."""
    from belljar.abi.cache_host import cache_directory

    kept = cache_directory()
    assert kept is not None
    os.symlink(os.path.join(kept, "zig"), tmp_path / "zig")
    tmp_path.chmod(0o700)
    environment = {**os.environ, "BELLJAR_CACHE": str(tmp_path)}

    def want(_number: int) -> str:
        words = [sys.executable, "-m", "belljar.native.agent_build_host"]
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout

    with ThreadPoolExecutor(3) as pool:
        [path] = set(pool.map(want, range(3)))
    made = Path(path.strip())
    assert sorted(os.listdir(made.parent)) == sorted([made.name, f"{made.name}.lock", f"{made.name}.mac", "key"])
    made.write_bytes(b"changed")
    refused = subprocess.run(
        [sys.executable, "-m", "belljar.native.agent_build_host"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "is not what was written there" in refused.stderr
    assert not made.exists()
