"""The agent for aarch64, under an emulator that is fetched (60 MB): `make native` runs it."""

from __future__ import annotations

from pathlib import Path

from belljar import Limits
from belljar.native.agent_build_host import build
from tests.agent.running import sandbox
from tests.debian import install

QEMU = "q/qemu/qemu-user-static_7.2+dfsg-7+deb12u18+b3_amd64.deb"
QEMU_DIGEST = "c3e3ba2bd87f8c5b9a5da5ef21b5a3b82d7c63b89dd448d9ddaa4eabc5b6e402"


def test_that_for_aarch64_serves(tmp_path: Path) -> None:
    """Under QEMU's emulation of its system calls. That knows no subreapers, so nothing here leaves daemons behind."""
    name = "qemu-aarch64-static"
    emulator = install("qemu-user-7.2", {QEMU: QEMU_DIGEST}, lambda path: name if path.endswith(f"/{name}") else None)
    made, program = tmp_path / "belljar-agent-aarch64", tmp_path / "emulated"
    build(made, "aarch64")
    program.write_text(f'#!/bin/sh\nexec {emulator / name} {made} "$@"\n')
    program.chmod(0o755)
    (emulator / name).chmod(0o755)
    with sandbox(program, cwd=str(tmp_path)) as box:
        result = box.exec("cat; echo said >&2; exit 3", stdin="given")
        assert (result.stdout, result.stderr, result.exit_code) == ("given", "said\n", 3)
        assert box.exec("sleep 60", timeout=0.5).limit == "wall_seconds"
        assert box.exec("while :; do :; done", limits=Limits(cpu_seconds=0.5)).limit == "cpu_seconds"
        with box.files.watch(".") as watch:
            box.files.write("d/f", "one")
            assert next(iter(watch)).path.endswith("/d")
        assert [each.name for each in box.files.list("d")] == ["f"]
        box.files.remove("d", recursive=True)
        assert not box.files.exists("d")
        terminal = box.pty("stty size; read line; echo got $line", rows=9, cols=33)
        terminal.write(b"hello\n")
        said = b""
        while piece := terminal.read(timeout=30):
            said += piece
        assert b"9 33" in said
        assert b"got hello" in said
