"""`belljar doctor`: the isolation layers that work on this machine, the engines, and advice about the rest."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, TypeVar

from belljar.abi.install import install_hint
from belljar.abi.version import __version__
from belljar.cli.screen_host import colour, say

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from belljar.api.sandbox import Sandbox

T = TypeVar("T")

ADVICE: Final = {
    "user": "allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, or an AppArmor profile); "
    "run as an ordinary user, or as a root that may become nobody (CAP_SETUID, CAP_SETGID)",
    "network": "needs user namespaces",
    "mount": "needs user namespaces",
    "ipc": "needs user namespaces",
    "cgroup": "needs a control group with the memory controller that this user may write (systemd-run --user --scope)",
    "cgroup_cpu": "needs the same with the cpu controller",
    "cgroup_pids": "needs the same with the pids controller",
    "landlock": "needs Linux 5.13 or newer with landlock in the lsm= boot list",
    "seccomp": "needs Linux on x86_64 or aarch64",
    "rlimits": "needs Linux",
    "no_new_privs": "needs Linux",
}

NATIVE_ADVICE: Final = {"ids": "run as root: nobody else may give a sandbox ids of its own"}

NEEDED: Final = frozenset({"seccomp", "rlimits", "no_new_privs"})
"""Layers without which a sandbox on Linux does not start."""

PACKAGES: Final = {
    "greenlet": install_hint(),
    "msgspec": install_hint(),
    "google-re2": install_hint(),
    "dulwich": install_hint("git"),
    "fsspec": install_hint("fs"),
    "zstandard": install_hint("zstd"),
}


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser(
        "doctor",
        help="show what holds, and what is missing, on this machine",
        description="Show which layers of isolation hold on this machine, which engines and packages are there, and "
        "what to do about the rest. The exit code is 0 if sandboxes work.",
    )
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    report = examine()
    if arguments.json:
        import json

        say(json.dumps(report))
    else:
        show(report)
    return 0 if report["works"] and all(report["layers"][name] for name in NEEDED) else 1


def examine() -> dict[str, Any]:
    """Look at everything; what can't be looked at is reported with the reason."""
    import platform

    from belljar.lockdown.layers import LAYERS

    problems: list[str] = []
    held, works, forks = attempt(_try_sandbox, (frozenset[str](), False, False), "sandbox", problems)
    held |= attempt(_control_groups, frozenset[str](), "control groups", problems)
    native = attempt(
        _try_native, {"works": False, "layers": dict[str, bool](), "advice": "can't be tried"}, "native", []
    )
    machine = attempt(_try_machine, {"works": False, "accel": "", "advice": "can't be tried"}, "microvm", [])
    return {
        "belljar": __version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "platform": platform.platform(),
        "works": works,
        "forks": forks,
        "layers": {name: name in held for name in LAYERS},
        "tiers": {"virtual": works, "native": native["works"], "microvm": machine["works"]},
        "native": native,
        "microvm": machine,
        "mount": attempt(_mount_advice, "can't be tried", "FUSE", problems),
        "engines": attempt(_engines, dict[str, Any](), "engines", problems),
        "toolchain": attempt(_toolchain, dict[str, Any](), "toolchain", problems),
        "javascript": attempt(_javascript, "nothing", "JavaScript", problems),
        "packages": attempt(_packages, dict.fromkeys(PACKAGES, ""), "packages", problems),
        "problems": problems,
    }


def attempt(look: Callable[[], T], otherwise: T, what: str, problems: list[str]) -> T:
    """Return the result of a check; if it raises, add the reason to the problems instead of a traceback."""
    try:
        return look()
    except Exception as error:  # noqa: BLE001 - as above
        problems.append(f"{what}: {str(error) or type(error).__name__}")
        return otherwise


def _try_sandbox() -> tuple[frozenset[str], bool, bool]:
    from belljar.api.sandbox import Sandbox

    with Sandbox() as sandbox:
        works = sandbox.exec("echo ok").stdout == "ok\n"
        return frozenset(sandbox.info.isolation), works, _forks(sandbox)


def _try_native() -> dict[str, Any]:
    """Whether a native sandbox runs a command, the layers around it, and what to do if it does not."""
    from belljar.api.errors import ImageError, SandboxError
    from belljar.api.sandbox import Sandbox
    from belljar.lockdown.layers import NATIVE
    from belljar.native.agent_build_host import AgentUnavailable, is_ready

    try:
        if not is_ready():
            return {"works": False, "layers": {}, "advice": "belljar prepare native"}
        with Sandbox(tier="native") as sandbox:
            works = sandbox.exec("echo ok").stdout == "ok\n"
            held = sandbox.info.isolation
    except (AgentUnavailable, SandboxError, ImageError) as error:
        return {"works": False, "layers": {}, "advice": _told(error)}
    layers = {name: name in held for name in NATIVE}
    return {"works": works, "layers": layers, "advice": "", "network": _network_advice()}


def _try_machine() -> dict[str, Any]:
    """Whether a sandbox in a machine runs a command, by what, and what to do if it does not."""
    from belljar.api.errors import ImageError, SandboxError
    from belljar.api.machine_disks import DEFAULT, builtin_disk
    from belljar.api.sandbox import Sandbox
    from belljar.vm.accel_host import choose_accel
    from belljar.vm.parts_host import PartsUnavailable, find_parts

    try:
        parts = find_parts()
        builtin_disk(DEFAULT)
        with Sandbox(tier="microvm") as sandbox:
            works = sandbox.exec("echo ok").stdout == "ok\n"
        return {"works": works, "accel": choose_accel("auto", parts), "advice": ""}
    except (PartsUnavailable, SandboxError, ImageError) as error:
        return {"works": False, "accel": "", "advice": _told(error)}


def _network_advice() -> str:
    """Advice for native sandboxes with a network; empty if they work."""
    from belljar.api.errors import SandboxError
    from belljar.api.sandbox import Sandbox
    from belljar.net.network import Network

    try:
        with Sandbox(tier="native", network=Network.allow("example.invalid")):
            return ""
    except SandboxError as error:
        return _told(error)


def _told(error: Exception) -> str:
    return str(error).removesuffix(" Try `belljar doctor`.")


def _control_groups() -> frozenset[str]:
    from belljar.owner.cgroup_host import CONTROLLERS, find_places

    return frozenset(CONTROLLERS[name] for place in find_places() for name in place.controllers)


def _mount_advice() -> str:
    """Advice for `belljar mount`; empty if it works."""
    from belljar.fuse.mount_host import missing

    return missing()


def _engines() -> dict[str, Any]:
    from belljar.cli.engines_host import look

    return {
        engine.name: {"version": engine.version, "ready": engine.ready, "advice": engine.advice} for engine in look()
    }


def _toolchain() -> dict[str, Any]:
    from belljar.engines.owner.tools_host import is_ready, size_of
    from belljar.engines.wire.tools import TOOLS

    return {
        kind: {"title": tool.title, "ready": is_ready(tool), "bytes": size_of(tool), "licence": tool.licence}
        for kind, tool in TOOLS.items()
    }


def _javascript() -> str:
    from belljar.cli.engines_host import runs_js

    return runs_js()


def _packages() -> dict[str, str]:
    from belljar.cli.engines_host import installed

    return {name: installed(name) for name in PACKAGES}


def _forks(sandbox: Sandbox) -> bool:
    from belljar.api.errors import SandboxError

    try:
        with sandbox.fork() as branch:
            return branch.exec("echo ok").stdout == "ok\n"
    except SandboxError:
        return False


def show(report: dict[str, Any]) -> None:
    from belljar.lockdown.layers import LAYERS, NATIVE

    good, bad, end = ("\x1b[32m", "\x1b[33m", "\x1b[0m") if colour() else ("", "", "")

    def line(ok: bool, name: str, text: str, advice: str = "") -> None:
        say(f"  {f'{good}yes{end}' if ok else f'{bad}no {end}'}  {name:<13} {text}".rstrip())
        if advice:
            say(f"       {'':<13} {bad}->{end} {advice}")

    say(f"belljar {report['belljar']}, Python {report['python']} ({sys.executable}), {report['platform']}")
    say("\nTiers")
    line(report["works"], "virtual", "a sandbox starts and runs a command" if report["works"] else "does not start")
    fork_advice = "needs Linux 5.5 or newer, and a container runtime that leaves seccomp's user notification to us"
    line(report["forks"], "", "a live sandbox can be forked", "" if report["forks"] else fork_advice)
    native = report["native"]
    line(native["works"], "native", "a sandbox of real programs starts and runs a command", native["advice"])
    if native["works"]:
        line(not native["network"], "", "it can be given a network", native["network"])
    machine = report["microvm"]
    line(machine["works"], "microvm", "a sandbox with a kernel of its own starts and runs a command", machine["advice"])
    if machine["works"]:
        line(machine["accel"] == "kvm", "", "its processors are the machine's own (KVM); else they are emulated")
    line(not report["mount"], "mount", "snapshots and images can be shown as directories", report["mount"])
    say("\nWalls around a sandbox")
    for name, meaning in LAYERS.items():
        held = report["layers"][name]
        line(held, name, meaning, "" if held else ADVICE.get(name, "see docs/ARCHITECTURE.md"))
    if native["works"]:
        say("\nWalls around a native sandbox")
        for name, meaning in NATIVE.items():
            held = native["layers"][name]
            line(held, name, meaning, "" if held else NATIVE_ADVICE.get(name) or ADVICE.get(name, "see docs/native.md"))
    say("\nEngines")
    for name, engine in report["engines"].items():
        line(engine["ready"], name, engine["version"] or "not installed", engine["advice"])
    say(f"       {'':<13} JavaScript runs on {report['javascript']}")
    say("\nToolchain")
    tools = report["toolchain"]
    for tool in tools.values():
        line(tool["ready"], tool["title"], f"{tool['bytes'] >> 20} MB" if tool["bytes"] else "not prepared")
    ready = all(tool["ready"] for tool in tools.values())
    arrow = f"       {'':<13} {bad}->{end} "
    say(arrow + ("remove it with: belljar prepare toolchain --remove" if ready else "belljar prepare toolchain"))
    say("\nPackages")
    for name, version in report["packages"].items():
        line(bool(version), name, version or "not installed", "" if version else PACKAGES[name])
    if report["problems"]:
        say("\nProblems")
        for problem in report["problems"]:
            say(f"  {bad}{problem}{end}")
