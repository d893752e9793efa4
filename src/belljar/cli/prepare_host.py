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
        "agent, the program that sandboxes of real programs start with.",
    )
    parser.add_argument("what", nargs="?", choices=("native",), metavar="WHAT", help="native: the agent, by Zig")
    parser.set_defaults(run=lambda arguments: _prepare_agent() if arguments.what else run())


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
