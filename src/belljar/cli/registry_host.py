"""`belljar registry`: make registries of packages, add to them, withdraw versions, check and serve them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from belljar.abi.install import install_hint
from belljar.cli.screen_host import complain, say
from belljar.cli.snapshot import say_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from belljar.packages.owner.registry_host import Registry


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser(
        "registry",
        help="publish packages: a directory that any web server can serve",
        description="Make a registry of packages, add to it, and serve it. See docs/packages.md.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def add(name: str, run: Callable[[argparse.Namespace], int], help: str, more: str = "") -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.{more}")
        action.add_argument("directory", metavar="DIR", type=Path, help="the registry")
        action.add_argument("--json", action="store_true", help="print JSON")
        action.set_defaults(run=lambda arguments: _checked(run, arguments), parser=action)
        return action

    init = add("init", _init, "make an empty registry, and the key that signs it")
    init.add_argument("--name", metavar="NAME", help="what it is called (default: as the directory)")
    adding = add("add", _add, "publish packages", " A version that was published never changes.")
    adding.add_argument(
        "packages", metavar="PACKAGE", nargs="+", type=Path, help="a package's directory, or an archive that was built"
    )
    yank = add("yank", _yank, "withdraw a version", " It is not installed any more; who has it keeps it.")
    yank.add_argument("name", metavar="NAME")
    yank.add_argument("version", metavar="VERSION")
    yank.add_argument("--reason", default="withdrawn by its publisher", metavar="TEXT")
    refresh = add(
        "refresh",
        _refresh,
        "sign the catalog anew",
        " Do so before it expires, or have `belljar registry serve` do it.",
    )
    for action in (init, refresh):
        action.add_argument(
            "--valid",
            metavar="DAYS",
            type=int,
            help="have catalogs expire so many days after they were signed (0: never; default: "
            + ("never)" if action is init else "as before)"),
        )
    for action in (init, adding, yank, refresh):
        action.add_argument(
            "--key", metavar="FILE", type=Path, help="the signing key (default: in your data directory)"
        )
    add("verify", _verify, "check the signature and every archive")
    serve = add("serve", _serve, "serve a registry over HTTP")
    serve.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="listen here (default %(default)s)")
    serve.add_argument("--port", type=int, default=8080, metavar="N", help="0: any (default %(default)s)")


def _checked(run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    from belljar.packages.errors import PackageError

    try:
        return run(arguments)
    except ModuleNotFoundError as error:
        if error.name == "fcntl":
            complain("belljar: registries can be made on Linux and macOS only")
            return 1
        if (error.name or "").partition(".")[0] not in ("cryptography", "resolvelib"):
            raise
        complain(f"belljar: {error.name} is missing; {install_hint('packages')}")
    except PackageError as error:
        complain(f"belljar: {error}")
    return 1


def _open(arguments: argparse.Namespace) -> Registry:
    from belljar.packages.owner.registry_host import Registry

    return Registry(arguments.directory, getattr(arguments, "key", None))


def _init(arguments: argparse.Namespace) -> int:
    from belljar.packages.owner.registry_host import Registry

    made = Registry.create(arguments.directory, arguments.name, arguments.key, arguments.valid or 0)
    if arguments.json:
        say_json({"registry": made.catalog.registry, "key": made.key, "signing_key": str(made.key_path)})
        return 0
    say(f"{made.directory}: the registry {made.catalog.registry!r}")
    say(f"public key:  {made.key}")
    say(f"signing key: {made.key_path} (keep a copy of it: nobody else can add packages)")
    return 0


def _add(arguments: argparse.Namespace) -> int:
    from belljar.cli.package_host import build_package
    from belljar.packages.owner.source_host import read_package

    registry = _open(arguments)
    for path in arguments.packages:
        package = build_package(path) if path.is_dir() else read_package(path)
        named = f"{package.manifest.name} {package.manifest.version}"
        new = registry.add(package)
        if arguments.json:
            name, version = package.manifest.name, package.manifest.version
            say_json({"name": name, "version": version, "digest": package.digest, "new": new})
        elif new:
            say(f"added {named}  {package.digest}")
        else:
            say(f"{named} is there already, the same")
    return 0


def _yank(arguments: argparse.Namespace) -> int:
    _open(arguments).yank(arguments.name, arguments.version, arguments.reason)
    say(f"withdrew {arguments.name} {arguments.version}")
    return 0


def _refresh(arguments: argparse.Namespace) -> int:
    registry = _open(arguments)
    registry.refresh(arguments.valid)
    if arguments.json:
        say_json({"serial": registry.catalog.serial, "expires": registry.catalog.expires})
    else:
        say(f"signed {registry.catalog.registry} anew, serial {registry.catalog.serial}{_validity(registry)}")
    return 0


def _validity(registry: Registry) -> str:
    from belljar.packages.catalog import expiry

    return f", valid until {expiry(registry.catalog)}" if registry.catalog.expires else ""


def _verify(arguments: argparse.Namespace) -> int:
    registry = _open(arguments)
    found = list(registry.problems())
    count = sum(map(len, registry.catalog.packages.values()))
    if arguments.json:
        say_json({"registry": registry.catalog.registry, "serial": registry.catalog.serial, "packages": count,
                  "problems": found})  # fmt: skip
        return 1 if found else 0
    for problem in found:
        complain(f"belljar: {problem}")
    if not found:
        about = f"{count} packages, serial {registry.catalog.serial}{_validity(registry)}"
        say(f"{registry.catalog.registry}: {about}, all is well")
    return 1 if found else 0


def _serve(arguments: argparse.Namespace) -> int:
    import signal

    from belljar.packages.errors import PackageError
    from belljar.packages.owner.serve_host import RegistryServer

    registry = _open(arguments)

    def tend() -> None:
        try:
            registry.refresh_in_time()
        except PackageError as error:  # it serves what it has
            complain(f"belljar: {error}")

    try:
        server = RegistryServer(arguments.directory, arguments.host, arguments.port, tend)
    except (OSError, OverflowError) as error:
        complain(f"belljar: can't listen on {arguments.host}:{arguments.port}: {getattr(error, 'strerror', error)}")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    host = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    url = f"http://{host}:{server.server_port}"
    if arguments.json:
        say_json({"registry": registry.catalog.registry, "url": url, "key": registry.key})
    else:
        say(f"serving {registry.catalog.registry!r} at {url}  key {registry.key}")
    sys.stdout.flush()
    try:
        with server:
            server.serve_forever()
    except KeyboardInterrupt:
        return 0
    return 0
