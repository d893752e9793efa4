"""pkg's commands: from a command line to what it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_RDONLY
from belljar.bin._kit import UsageError, flag, value
from belljar.bin._kit.options import describe, parse
from belljar.bin.pkg import catalogs, queries
from belljar.bin.pkg.catalogs import Market
from belljar.bin.pkg.database import (
    CACHE,
    PRIORITY,
    Installed,
    Registry,
    read_installed,
    read_registries,
    write_registries,
)
from belljar.bin.pkg.fetch import split_url
from belljar.bin.pkg.install import Installer, Plan, needed_by, new_permissions, parse_wanted, read_lock, write_lock
from belljar.bin.pkg.services import follow
from belljar.bin.pkg.transaction import PLACE, Transaction, recover, remove_tree
from belljar.kernel.locks import lock_file
from belljar.kernel.process import Process
from belljar.kernel.vfs.credentials import Credentials
from belljar.packages.catalog import parse_key
from belljar.packages.errors import PackageError
from belljar.packages.manifest import is_name

_LOCK_SECONDS: Final = 60.0
_LOOKING: Final = frozenset({"search", "info", "list", "files", "owns", "verify"})
"""Commands that change nothing."""
_OTHER_NAMES: Final = {"add": "install", "uninstall": "remove", "ls": "list", "show": "info"}
"""What other package managers call them."""


@dataclass(frozen=True, slots=True)
class Plain:
    pass


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    name: str | None = value("--name", "what to call it", metavar="NAME")
    key: str | None = value("--key", "the key that signs it: ed25519:...", metavar="KEY")
    priority: str = value("--priority", "of two that offer a name, the higher one is taken", metavar="N", default="50")


@dataclass(frozen=True, slots=True)
class InstallOptions:
    source: str = value("--from", "take the packages that are named from this registry", metavar="REGISTRY", default="")
    lock: str | None = value("--lock", "install exactly what a lock file says", metavar="FILE")
    offline: bool = flag("--offline", "use only what is here: catalogs and downloaded archives")
    dry_run: bool = flag("-n", "--dry-run", "say what would be done")
    no_start: bool = flag("--no-start", "start and restart no services")
    yes: bool = flag("-y", "--yes", "(nothing is asked)")


@dataclass(frozen=True, slots=True)
class PinOptions:
    off: bool = flag("--off", "let it be upgraded again")


def run(process: Process, args: list[str], doc: str) -> int:
    if not args or args[0] in ("-h", "--help", "help"):
        process.stdout.write(doc.encode())
        return 0
    word = _OTHER_NAMES.get(args[0], args[0])
    if word not in _COMMANDS:
        raise UsageError(f"there is no command {word!r}")
    options, command, usage = _COMMANDS[word]
    parsed = parse(options, args[1:])
    if parsed.asked == "help":
        process.print(f"Usage: pkg {word} {usage}\n\n{describe(options)}".rstrip())
        return 0
    try:
        # As a set-user-id program would: whoever may call `sudo` may install.
        process.fs.credentials = Credentials(0, 0)
        process.fs.umask = 0o022
        if word in _LOOKING and process.fs.exists(PLACE):
            _Session(process)  # what an earlier pkg left behind is undone first
        return command(process, options(**parsed.values), parsed.operands)
    except PackageError as error:
        process.warn(str(error))
        return 1
    except SysError as error:
        process.warn(f"{error.path or word}: {error.reason}. Nothing was changed")
        return 1


class _Session:
    """The state that a command changes, while no other pkg does."""

    def __init__(self, process: Process) -> None:
        file = process.fds[process.open(process.executable, O_RDONLY | O_CLOEXEC)]
        if not lock_file(process, file, exclusive=True, timeout=_LOCK_SECONDS):
            raise PackageError("another pkg is at work: try again when it is done")
        if recover(process):
            process.warn("undid an installation that was interrupted")
        self.process = process
        self.installed = read_installed(process)

    def record(self, name: str) -> Installed:
        """PackageError."""
        found = self.installed.get(name)
        if found is None:
            raise PackageError(f"{name} is not installed: `pkg list` shows what is")
        return found


def _registry(process: Process, options: RegistryOptions, operands: list[str]) -> int:
    match operands:
        case ["add", url]:
            return _add_registry(process, options, url)
        case ["list"]:
            for registry in read_registries(process).values():
                about = registry.key or "not fetched yet: `pkg update`"
                process.print(f"{registry.name}  {registry.url}  priority {registry.priority}  {about}")
            return 0
        case ["remove", name]:
            _Session(process)
            catalogs.forget(process, name)
            return 0
    raise UsageError("use: pkg registry add URL, pkg registry list, or pkg registry remove NAME")


def _add_registry(process: Process, options: RegistryOptions, url: str) -> int:
    parts = split_url(url)
    name = options.name or (parts.netloc.rpartition("@")[2] or "files").replace(":", "-").lower()
    if not is_name(name):
        raise PackageError(f"{name!r} is no name for a registry: give one with --name")
    if not options.priority.isdecimal() or len(options.priority) > 6:
        raise PackageError(f"--priority takes a number ({PRIORITY} unless given), not {options.priority!r}")
    key = options.key or ""
    if key:
        parse_key(key)
    _Session(process)
    registries = read_registries(process)
    known = registries.get(name)
    if known is not None and (known.url != url or (key and known.key not in ("", key))):
        raise PackageError(
            f"there is a registry {name} already, at {known.url}: remove it first, or give another --name"
        )
    added = Registry(name, url, int(options.priority), key or (known.key if known is not None else ""))
    write_registries(process, {**registries, name: added}.values())
    process.print(f"added {name}: `pkg update` gets what it offers")
    return 0


def _update(process: Process, options: Plain, operands: list[str]) -> int:
    _Session(process)
    registries = read_registries(process)
    chosen = [registries[name] for name in operands if name in registries] if operands else list(registries.values())
    if unknown := [name for name in operands if name not in registries]:
        raise PackageError(f"there is no registry {unknown[0]!r}: `pkg registry list` shows those there are")
    if not chosen:
        raise PackageError("there is no registry: `pkg registry add URL` adds one")
    status = 0
    for registry in chosen:
        try:
            catalog, now, new = catalogs.update(process, registry)
        except PackageError as error:
            process.warn(str(error))
            status = 1
            continue
        if not registry.key:
            process.print(
                f"{registry.name}: trusting its key from now on, {now.key}: compare it with what its owner says"
            )
        count = len(catalog.packages)
        process.print(f"{registry.name}: {count} package{'' if count == 1 else 's'}{'' if new else ', nothing new'}")
    return status


def _install(process: Process, options: InstallOptions, operands: list[str]) -> int:
    session = _Session(process)
    wanted = [parse_wanted(process, text) for text in operands]
    if options.lock is not None:
        wanted = read_lock(process, options.lock) + wanted
    if not wanted:
        raise UsageError("say which packages")
    names = [each.name for each in wanted]
    market = Market(process, session.installed, source=options.source, named=names)
    if not market.registries and any(each.file is None for each in wanted):
        raise PackageError("there is no registry: `pkg registry add URL` adds one, `pkg update` gets what it offers")
    installer = Installer(process, session.installed, offline=options.offline)
    return _carry_out(session, market, installer, installer.plan(market, wanted), options)


def _upgrade(process: Process, options: InstallOptions, operands: list[str]) -> int:
    session = _Session(process)
    for name in operands:
        if session.record(name).pinned:
            raise PackageError(f"{name} is pinned: `pkg pin --off {name}` lets it be upgraded")
    market = Market(process, session.installed, upgrade=operands or session.installed)
    installer = Installer(process, session.installed, offline=options.offline)
    return _carry_out(session, market, installer, installer.plan(market, ()), options)


def _remove(process: Process, options: InstallOptions, operands: list[str]) -> int:
    session = _Session(process)
    if not operands:
        raise UsageError("say which packages")
    for name in operands:
        session.record(name)
    for name, others in needed_by(session.installed, operands).items():
        raise PackageError(f"{name} is needed by {', '.join(map(str, others))}: remove that, too, or keep it")
    market = Market(process, session.installed)
    installer = Installer(process, session.installed, offline=True)
    return _carry_out(session, market, installer, installer.plan(market, (), without=operands), options)


def _carry_out(session: _Session, market: Market, installer: Installer, plan: Plan, options: InstallOptions) -> int:
    process, before = session.process, session.installed
    names = {candidate.name for candidate in plan.fresh}
    if options.dry_run:
        for candidate in plan.fresh:
            process.print(f"would install {candidate.name} {candidate.version} from {candidate.registry}")
        for record in plan.gone:
            if record.name not in names:
                process.print(f"would remove {record}")
        return 0
    if not plan.fresh and not plan.gone and all(plan.noted[n] == (r.requested, r.pinned) for n, r in before.items()):
        process.print("nothing to do")
        return 0
    made = installer.carry_out(market, plan)
    for record in made:
        wants = str(new_permissions(before.get(record.name), record))
        if wants:
            process.print(f"{record} wants {wants}: it has what this sandbox was granted, and no more")
    for record in plan.gone:
        if record.name not in names:
            process.print(f"removed {record}")
    for record in made:
        old = before.get(record.name)
        process.print(f"installed {record}" if old is None else f"installed {record}, which replaces {old.version}")
    for line in [] if options.no_start else follow(process, plan.gone, made):
        process.print(line)
    if not made and not plan.gone:
        process.print("nothing to install: noted what you asked for")
    return 0


def _pin(process: Process, options: PinOptions, operands: list[str]) -> int:
    session = _Session(process)
    if not operands:
        raise UsageError("say which packages")
    for name in operands:
        session.record(name)
    plan = Plan((), (), {
        name: (record.requested, not options.off if name in operands else record.pinned)
        for name, record in session.installed.items()
    })  # fmt: skip
    Installer(process, session.installed).carry_out(Market(process, session.installed), plan)
    return 0


def _lock(process: Process, options: Plain, operands: list[str]) -> int:
    session = _Session(process)
    data = write_lock(session.installed)
    if len(operands) > 1:
        raise UsageError("one file, or none")
    if operands:
        process.write_file(operands[0], data)
    else:
        process.stdout.write(data)
    return 0


def _fetch(process: Process, options: InstallOptions, operands: list[str]) -> int:
    session = _Session(process)
    wanted = [parse_wanted(process, text) for text in operands]
    market = Market(process, session.installed, source=options.source, named=[each.name for each in wanted])
    installer = Installer(process, session.installed)
    for candidate in installer.plan(market, wanted).fresh:
        archive = installer.fetch(market, candidate)
        process.print(f"{candidate.name} {candidate.version}: {archive.path}")
    return 0


def _clean(process: Process, options: Plain, operands: list[str]) -> int:
    _Session(process)
    transaction = Transaction(process)
    transaction.begin()
    remove_tree(process, CACHE)
    transaction.close()
    return 0


_Command = tuple[type, Callable[[Process, Any, list[str]], int], str]
_COMMANDS: Final[dict[str, _Command]] = {
    "registry": (RegistryOptions, _registry, "add URL [--name NAME] [--key KEY] [--priority N] | list | remove NAME"),
    "update": (Plain, _update, "[REGISTRY...]"),
    "search": (Plain, queries.search, "[WORD...]"),
    "info": (Plain, queries.info, "NAME"),
    "install": (InstallOptions, _install, "[OPTION]... NAME[@RANGE]|ARCHIVE..."),
    "remove": (InstallOptions, _remove, "NAME..."),
    "upgrade": (InstallOptions, _upgrade, "[NAME...]"),
    "list": (Plain, queries.list_installed, ""),
    "files": (Plain, queries.files, "NAME"),
    "owns": (Plain, queries.owns, "PATH..."),
    "verify": (Plain, queries.verify, "[NAME...]"),
    "pin": (PinOptions, _pin, "[--off] NAME..."),
    "lock": (Plain, _lock, "[FILE]"),
    "fetch": (InstallOptions, _fetch, "NAME[@RANGE]..."),
    "clean": (Plain, _clean, ""),
}
