"""`belljar doctor`: which walls hold on this machine, and what to do about those that do not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from belljar.abi.version import __version__
from belljar.cli.screen_host import colour, say

if TYPE_CHECKING:
    import argparse

    from belljar.api.sandbox import Sandbox

ADVICE = {
    "user": "allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, or an AppArmor profile)",
    "network": "needs the user layer",
    "mount": "needs the user layer",
    "ipc": "needs the user layer",
    "cgroup": "needs a control group with the memory controller that this user may write (systemd-run --user --scope)",
    "landlock": "needs Linux 5.13 or newer with landlock in the lsm= boot list",
}

INSTALL = {"dulwich": "pip install 'belljar[git]'", "fsspec": "pip install 'belljar[fs]'"}


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser("doctor", help="show which isolation layers hold on this machine")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    import json
    import platform

    from belljar.api.sandbox import Sandbox
    from belljar.lockdown.seal_host import LAYERS
    from belljar.worker.cgroup_host import place

    with Sandbox() as sandbox:
        held = set(sandbox.info.isolation) | ({"cgroup"} if place() is not None else set())
        works = sandbox.exec("echo ok").stdout == "ok\n"
        forks = _forks(sandbox)
    packages = {name: _installed(name) for name in ("greenlet", "msgspec", "google-re2", "dulwich", "fsspec")}
    if arguments.json:
        report = {
            "belljar": __version__,
            "python": platform.python_version(),
            "kernel": platform.release(),
            "works": works,
            "forks": forks,
            "layers": {name: name in held for name in LAYERS},
            "packages": packages,
        }
        say(json.dumps(report))
    else:
        table(held, works, forks, packages)
    return 0 if works and held >= {"seccomp", "rlimits", "no_new_privs"} else 1


def _installed(package: str) -> str:
    """Its version, or "" if it is not there."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _forks(sandbox: Sandbox) -> bool:
    from belljar.api.errors import SandboxError

    try:
        with sandbox.fork() as branch:
            return branch.exec("echo ok").stdout == "ok\n"
    except SandboxError:
        return False


def table(held: set[str], works: bool, forks: bool, packages: dict[str, str]) -> None:
    import platform

    from belljar.lockdown.seal_host import LAYERS

    good, bad, end = ("\x1b[32m", "\x1b[33m", "\x1b[0m") if colour() else ("", "", "")

    def mark(ok: bool) -> str:
        return f"{good}yes{end}" if ok else f"{bad}no {end}"

    say(f"belljar {__version__}, Python {platform.python_version()} ({sys.executable}), {platform.platform()}\n")
    say(f"{mark(works)}  a sandbox starts and runs a command")
    say(f"{mark(forks)}  a live sandbox can be forked")
    if not forks:
        say("     -> needs Linux 5.5 or newer, and a container runtime that leaves seccomp's user notification to us")
    say("")
    say("Walls around a sandbox")
    for name, meaning in LAYERS.items():
        say(f"  {mark(name in held)}  {name:<13} {meaning}")
        if name not in held:
            say(f"       {'':<13} -> {ADVICE.get(name, 'see docs/ARCHITECTURE.md')}")
    say("\nTiers")
    say(f"  {mark(works)}  virtual")
    for tier in ("native", "microvm"):
        say(f"  {mark(False)}  {tier:<13} not in this version")
    say("\nPackages")
    for name, installed in packages.items():
        say(f"  {mark(bool(installed))}  {name:<13} {installed or INSTALL.get(name, 'pip install belljar')}")
