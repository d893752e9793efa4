"""Builds the agent, the static program in `belljar/agent`: once, when first needed; `belljar prepare native` ahead.

Its file is named by all it was made of. A wheel that carries one for this machine needs no compiler.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from belljar.abi.cache_host import cache_directory, private_directory
from belljar.abi.install import install_hint
from belljar.engines.artefact_host import ArtefactError, open_checked, store
from belljar.engines.compiler_host import Progress, run_compiler
from belljar.engines.zig_host import NoCompiler, zig_compiler

HERE: Final = Path(__file__).parents[1] / "agent"
MACHINES: Final = ("x86_64", "aarch64")
FLAGS: Final = ("-std=c11", "-D_GNU_SOURCE", "-Os", "-s", "-static", "-Wall", "-Wextra", "-Werror")
_BUILD_SECONDS: Final = 600.0


class AgentUnavailable(RuntimeError):
    """There is no agent for this machine and none can be built; says what to do."""


def shipped_agent() -> Path:
    """The place of the agent in a wheel."""
    return HERE / f"belljar-agent-{platform.machine()}"


def built_agent() -> Path:
    """The place of the agent in the cache, once it is built. Raises AgentUnavailable."""
    base = cache_directory()
    directory = None if base is None else private_directory(os.path.join(base, "agent"))
    if directory is None:
        raise AgentUnavailable("there is no cache directory of yours alone: set BELLJAR_CACHE to one")
    return Path(directory, f"belljar-agent-{platform.machine()}-{_digest()}")


def is_ready() -> bool:
    """Whether the agent need not be built first."""
    return any(os.access(path, os.X_OK) for path in (shipped_agent(), built_agent()))


@cache
def agent_program(progress: Progress | None = None) -> Path:
    """The agent's file, built if need be. Raises AgentUnavailable."""
    shipped = shipped_agent()
    if shipped.exists():
        return shipped
    built = built_agent()
    if not os.access(built, os.X_OK):
        with open(built.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.access(built, os.X_OK):
                build(built, progress=progress)
    try:
        with open_checked(built):
            return built
    except (ArtefactError, OSError) as error:
        raise AgentUnavailable(str(error)) from error


def build(target: Path, machine: str = "", flags: Sequence[str] = FLAGS, progress: Progress | None = None) -> None:
    """Compile the agent to `target`, all or nothing. Raises AgentUnavailable."""
    machine = machine or platform.machine()
    if machine not in MACHINES:
        raise AgentUnavailable(f"the agent is for {' and '.join(MACHINES)}; this machine is {machine}")
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "agent"
        try:
            compiler, environment = zig_compiler("cc", f"{machine}-linux-musl", scratch)
            words = [*compiler, *flags, "-o", str(made), *map(str, _sources("*.c"))]
            done = run_compiler(
                words, "the agent", progress, seconds=_BUILD_SECONDS, env=environment, stdout=subprocess.DEVNULL
            )
        except NoCompiler:
            raise AgentUnavailable(
                f"the agent is compiled by Zig's compiler, which is not installed; {install_hint('native')}"
            ) from None
        except subprocess.TimeoutExpired:
            raise AgentUnavailable(f"the agent did not compile within {_BUILD_SECONDS:.0f} s") from None
        if done.returncode:
            said = "\n".join(done.stderr.decode("utf-8", "replace").splitlines()[:12])
            raise AgentUnavailable(f"the agent did not compile; the compiler said:\n{said}")
        store(target, made.read_bytes())
        target.chmod(0o755)


def _sources(pattern: str) -> list[Path]:
    return sorted(HERE.glob(pattern))


def _digest() -> str:
    made_of = hashlib.sha256(" ".join(FLAGS).encode())
    for file in [*_sources("*.c"), *_sources("*.h")]:
        made_of.update(file.name.encode() + b"\0" + file.read_bytes())
    return made_of.hexdigest()[:16]


def main() -> None:
    """Build the agent where it is looked for, or (`agent_build_host DIRECTORY`) for a wheel, and print its path."""
    if len(sys.argv) > 1:
        made = Path(sys.argv[1]) / shipped_agent().name
        made.parent.mkdir(parents=True, exist_ok=True)
        build(made)
    else:
        made = agent_program()
    sys.stdout.write(f"{made}\n")


if __name__ == "__main__":
    main()
