"""The options that say what sandbox to make: the constructor's arguments, as flags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

    from belljar.api.mounts import Mount
    from belljar.api.sandbox import Sandbox
    from belljar.net.network import Network
    from belljar.store.store import Store

WAYS = ("ro", "rw", "overlay")
DEFAULTS = {"cwd": "/workspace", "user": "agent", "hostname": "belljar"}


def add_sandbox_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("sandbox")
    group.add_argument(
        "--mount",
        "-m",
        action="append",
        default=[],
        metavar="SOURCE:PATH[:ro|rw|overlay]",
        help="show a directory (or tar or zip file) of this machine at PATH: read-only (ro, the default), for writing "
        "(rw), or with every change kept apart and forgotten (overlay; see --diff)",
    )
    group.add_argument(
        "--file",
        "-f",
        action="append",
        default=[],
        metavar="SOURCE[:PATH]",
        help="copy a file in (to the working directory unless PATH says otherwise)",
    )
    group.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="let it reach this host, e.g. pypi.org, '*.example.com' or 10.0.0.5:5432 (default: no network)",
    )
    group.add_argument("--audit", metavar="FILE", help="append what it asks of the network, and the verdicts, as JSONL")
    group.add_argument(
        "--node-modules", metavar="DIR", help="let node find what is installed in DIR/node_modules, read-only"
    )
    group.add_argument("--env", "-e", action="append", default=[], metavar="NAME=VALUE", help="set a variable")
    group.add_argument("--cwd", "-w", metavar="PATH", help=f"start here (default {DEFAULTS['cwd']})")
    group.add_argument("--user", "-u", metavar="NAME", help=f"run as this user (default {DEFAULTS['user']})")
    group.add_argument("--hostname", metavar="NAME", help=f"its host name (default {DEFAULTS['hostname']})")
    group.add_argument("--memory", metavar="SIZE", help="memory of the sandbox, e.g. 512M")
    group.add_argument(
        "--tier", default="virtual", help="virtual (default), native (real programs) or microvm (in a machine)"
    )
    group.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="LAYER",
        help="have no sandbox without this layer of isolation, e.g. seccomp (`belljar doctor` lists them)",
    )
    group.add_argument(
        "--no-daemon",
        action="store_true",
        help="neither use nor leave behind the process that lets the next run start faster (also: BELLJAR_NO_DAEMON=1)",
    )


def add_restore_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("snapshots")
    group.add_argument(
        "--restore",
        metavar="REF",
        help="begin with the files, variables and settings of a snapshot: its label, ref or first digits",
    )
    group.add_argument("--image", metavar="IMAGE", help="begin with the files and settings of an image")
    group.add_argument(
        "--store", metavar="LOCATION", help="where snapshots and images are (default: see `belljar snapshot ls -h`)"
    )


def sandbox_arguments(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments for Sandbox; a bad option ends the program with a usage message.

    With --restore, `restore` is the snapshot; what was not asked for is then the snapshot's, or that of the --image.
    """
    from dataclasses import replace

    from belljar.abi.limits import Limits

    ref, image = getattr(arguments, "restore", None), getattr(arguments, "image", None)
    if ref is not None and image is not None:
        parser.error("--image and --restore: a snapshot has all its files")
    mounts = [parse_mount(parser, text) for text in arguments.mount]
    if len({path for path, _ in mounts}) < len(mounts):
        parser.error("--mount: the same PATH is given twice")
    chosen = {name: value for name in DEFAULTS if (value := getattr(arguments, name)) is not None}
    if not chosen.get("cwd", "/").startswith("/"):
        parser.error(f"--cwd {arguments.cwd!r}: must be an absolute path in the sandbox")
    settings: dict[str, Any] = {
        **(DEFAULTS | chosen if ref is None and image is None else chosen),
        "tier": arguments.tier,
        "mounts": dict(mounts),
        "node_modules": arguments.node_modules,
        "require": set(arguments.require),
        "network": parse_network(parser, arguments.allow_host, arguments.audit),
    }
    limits, cwd = Limits(), settings.get("cwd", "")
    if ref is not None:
        from belljar.api.snapshot import Snapshot

        settings["tools"] = {}  # a command line has none
        settings["restore"] = snapshot = Snapshot.find(ref, store_at(arguments.store, must_exist=True))
        limits, cwd = snapshot.limits, cwd or snapshot.cwd
    if image is not None:
        from belljar.abi.paths import fsdecode
        from belljar.api.image import Image

        settings["image"] = found = Image.find(image, store_at(arguments.store, must_exist=True))
        cwd = cwd or fsdecode(found.built.record.cwd)
    env = parse_environment(parser, arguments.env)
    if env or ref is None:
        settings["env"] = env
    if arguments.memory is not None:
        try:
            limits = replace(limits, memory_bytes=parse_memory(parser, arguments.memory))
        except ValueError as error:
            parser.error(f"--memory {arguments.memory}: {error}")
    settings["limits"] = limits
    settings["files"] = dict(read_file(parser, text, cwd) for text in arguments.file)
    return settings


def store_at(location: str | None, *, must_exist: bool = False) -> Store | None:
    """The store of --store; None: the default one. StoreError."""
    if location is None:
        return None
    from belljar.store.default_host import open_store

    return open_store(location, must_exist=must_exist)


def make_sandbox(settings: dict[str, Any]) -> Sandbox:
    """A sandbox for `sandbox_arguments`."""
    from belljar.api.sandbox import Sandbox

    snapshot = settings.pop("restore", None)
    return Sandbox(**settings) if snapshot is None else Sandbox.restore(snapshot, **settings)


def is_overlay(text: str) -> bool:
    """Whether the value of a --mount asks for an overlay."""
    return text.endswith(":overlay")


def parse_environment(parser: argparse.ArgumentParser, items: list[str]) -> dict[str, str]:
    env: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            parser.error(f"--env {item!r}: expected NAME=VALUE")
        env[name] = value
    return env


def parse_memory(parser: argparse.ArgumentParser, text: str) -> int:
    from belljar.abi.limits import GIB, KIB, MIB

    units = {"K": KIB, "M": MIB, "G": GIB}
    number, unit = (text[:-1], units[text[-1].upper()]) if text[-1:].upper() in units else (text, 1)
    if not number.isdecimal() or not number.isascii() or int(number) * unit < 16 * MIB:
        parser.error(f"--memory {text!r}: expected a size of at least 16M, such as 512M or 2G")
    return int(number) * unit


def parse_mount(parser: argparse.ArgumentParser, text: str) -> tuple[str, Mount]:
    """Parse `./repo:/work:overlay`. The source may hold colons; the path in the sandbox may not."""
    from belljar.api.mounts import Mount
    from belljar.cli.disk_host import is_directory, is_file

    rest, way = text, "ro"
    head, colon, tail = text.rpartition(":")
    if colon and tail in WAYS:
        rest, way = head, tail
    source, colon, path = rest.rpartition(":")
    if not source or not path.startswith("/"):
        parser.error(f"--mount {text!r}: expected SOURCE:PATH[:{'|'.join(WAYS)}] with an absolute PATH in the sandbox")
    if is_file(source):
        if way == "rw":
            parser.error(f"--mount {text!r}: {source} is a file: an archive can be mounted ro or overlay")
        mount = Mount.archive(source)
    elif is_directory(source):
        mount = Mount.host(source, read_only=way != "rw")
    else:
        parser.error(f"--mount {text!r}: {source}: no such directory or archive on this machine")
    return path, Mount.overlay(mount) if way == "overlay" else mount


def read_file(parser: argparse.ArgumentParser, text: str, cwd: str) -> tuple[str, tuple[bytes, int]]:
    """Read the file of `notes.txt:/tmp/n.txt`, or of `notes.txt` for the working directory."""
    from belljar.abi.paths import basename, join
    from belljar.cli.disk_host import contents

    source, colon, path = text.rpartition(":")
    if not colon or not path.startswith("/"):
        source, path = text, join(cwd, basename(text))
    try:
        return path, contents(source)
    except OSError as error:
        parser.error(f"--file {text!r}: {source}: {error.strerror}")


def parse_network(parser: argparse.ArgumentParser, hosts: list[str], audit: str | None) -> Network | None:
    if not hosts and audit is None:
        return None
    from belljar.abi.errors import PolicyError
    from belljar.cli.disk_host import append_lines
    from belljar.net.network import Network

    try:
        record = None if audit is None else append_lines(audit)
        return Network.allow(*hosts, audit=record) if hosts else Network.deny(audit=record)
    except PolicyError as error:
        parser.error(f"--allow-host: {error}")
    except OSError as error:
        parser.error(f"--audit {audit!r}: {error.strerror}")
