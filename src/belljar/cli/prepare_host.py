"""`belljar prepare`: builds ahead what would otherwise be built when first used."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from belljar.cli.screen_host import complain, say
from belljar.owner.launch_host import archive_path

if TYPE_CHECKING:
    import argparse


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser(
        "prepare",
        help="build caches ahead",
        description="Build what would otherwise be built when first used: the engines, and the archive that "
        "`belljar run` starts from. An engine that is not installed is no error. `belljar prepare native` builds the "
        "agent, the program that sandboxes of real programs start with. `belljar prepare microvm` fetches what "
        "machines are made of (QEMU, a kernel and a system, 100 MB of Debian's packages), and boots one. `belljar "
        "prepare toolchain` fetches gcc (clang), perl and ruby as WebAssembly programs from npm and compiles them "
        "once (three minutes, 310 MB): every virtual sandbox then has them.",
    )
    parser.add_argument(
        "what",
        nargs="?",
        choices=("native", "microvm", "toolchain"),
        metavar="WHAT",
        help="native: the agent, by Zig; microvm; toolchain: C, C++, Perl and Ruby",
    )
    parser.add_argument("--mirror", default="", metavar="URL", help="microvm: of Debian's archive, without /debian")
    parser.add_argument("--remove", action="store_true", help="remove the toolchain again")
    parser.set_defaults(run=_run, makes_files_in=_places)


def _places(_: argparse.Namespace) -> list[str]:
    from belljar.abi.cache_host import cache_directory

    found = cache_directory()
    return [found] if found else []


def _run(arguments: argparse.Namespace) -> int:
    if arguments.remove and arguments.what != "toolchain":
        complain("--remove goes with toolchain: belljar prepare toolchain --remove")
        return 2
    match arguments.what:
        case "native":
            return _prepare_agent()
        case "microvm":
            return _prepare_machine(arguments.mirror)
        case "toolchain":
            return _remove_tools() if arguments.remove else _prepare_tools()
    return run()


def _prepare_machine(mirror: str) -> int:
    from belljar.abi.errors import ImageError, SandboxError
    from belljar.api.machine_disks import DEFAULT, prepare_builtin
    from belljar.api.sandbox import Sandbox
    from belljar.engines.owner.progress_host import steps
    from belljar.vm.parts_host import PartsUnavailable, prepare

    try:
        with steps() as hear:
            parts = prepare(hear, mirror)
            prepare_builtin(parts, DEFAULT, hear, mirror)
            hear("a machine is booted and saved")
            with Sandbox(tier="microvm") as sandbox:
                sandbox.exec("true").check()
    except (PartsUnavailable, ImageError, SandboxError) as error:
        complain(f"microvm: {error}")
        return 1
    say("microvm: ready")
    return 0


def _prepare_tools() -> int:
    from belljar.engines.artefact_host import ArtefactError
    from belljar.engines.errors import EngineUnavailable
    from belljar.engines.owner.progress_host import progress
    from belljar.engines.owner.python_package_host import check_wasmtime
    from belljar.engines.owner.tools_host import NotFetched, is_ready, keep_archive, prepare_tool, size_of
    from belljar.engines.wire.tools import TOOLS

    for tool in TOOLS.values():
        try:
            check_wasmtime()
            with progress(90.0, "preparing {}") as show:
                prepare_tool(tool, show)
                if not is_ready(tool):
                    keep_archive(tool, _make_archive())
        except (EngineUnavailable, ArtefactError, NotFetched, OSError) as error:
            complain(f"{tool.title}: {error}")
            return 1
        say(f"{tool.title}: ready, {size_of(tool) >> 20} MB")
    return 0


def _make_archive() -> bytes:
    """Have the prepared compiler compile our own functions of C, in a sandbox. OSError."""
    from belljar.api.sandbox import Sandbox
    from belljar.engines.owner.tools_host import support_directory
    from belljar.engines.wire.tools import LLVM

    source = (support_directory(LLVM) / "belljar.c").read_bytes()
    with Sandbox(files={"/tmp/belljar.c": source}) as sandbox:
        done = sandbox.exec(f"cd /tmp && cc -O2 -c belljar.c && ar rc {LLVM.archive} belljar.o")
        if done.exit_code:
            raise OSError(f"the compiler failed: {done.stderr.strip()}")
        return sandbox.files.read_bytes(f"/tmp/{LLVM.archive}")


def _remove_tools() -> int:
    from belljar.engines.owner.tools_host import remove_tool
    from belljar.engines.wire.tools import TOOLS

    for tool in TOOLS.values():
        if size := remove_tool(tool):
            say(f"{tool.title}: removed, {size >> 20} MB")
    return 0


def _prepare_agent() -> int:
    from belljar.engines.owner.progress_host import progress
    from belljar.native.agent_build_host import AgentUnavailable, agent_program

    try:
        with progress(40.0) as show:
            agent_program(show)
    except AgentUnavailable as error:
        complain(f"agent: {error}")
        return 1
    say("agent: ready")
    return 0


def run() -> int:
    from belljar.cli.engines_host import look, prepare_js, prepare_python, prepare_quickjs
    from belljar.engines.artefact_host import ArtefactError
    from belljar.engines.errors import EngineUnavailable
    from belljar.engines.owner.progress_host import progress
    from belljar.worker.archive_host import Archive

    status = 0
    archive = archive_path()
    if archive and Archive.open(archive) is None:
        command = [sys.executable, "-I", "-m", "belljar.zygote.recorder_host", archive]
        # In a group of its own: ^C is for us, who end it.
        status = min(1, subprocess.run(command, check=False, process_group=0).returncode)  # noqa: S603 - our own module
    say("modules: " + ("no directory to keep them in: set BELLJAR_CACHE" if not archive else "ready"))
    for engine, prepare in zip(look(), (prepare_python, prepare_js, prepare_quickjs), strict=True):
        if not engine.version:
            say(f"{engine.name}: {engine.advice}")
            continue
        try:
            with progress() as show:
                prepare(show)
        except (EngineUnavailable, ArtefactError) as error:
            complain(f"{engine.name}: {error}")
            status = 1
        else:
            say(f"{engine.name}: ready")
    return status
