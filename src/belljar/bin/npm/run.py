"""npm's commands: from a command line to what it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belljar.abi.errors import SysError
from belljar.bin.npm import describing, execute, install, listing, making, running
from belljar.bin.npm.options import CommandLine, parse
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.scripts import VERSION
from belljar.bin.npm.session import Session
from belljar.bin.npm.tarball import errno_name
from belljar.kernel.process import Process

Command = Callable[[Session, list[str]], int]

_COMMANDS: Final[dict[str, Command]] = {
    "install": install.run_install,
    "ci": install.run_ci,
    "uninstall": install.run_uninstall,
    "update": install.run_update,
    "prune": install.run_prune,
    "dedupe": install.run_install,
    "install-test": lambda session, words: install.run_install(session, words) or running.run_named(session, ["test"]),
    "run": running.run_script,
    "test": lambda session, words: running.run_named(session, ["test", *words]),
    "start": lambda session, words: running.run_named(session, ["start", *words]),
    "stop": lambda session, words: running.run_named(session, ["stop", *words]),
    "restart": lambda session, words: running.run_named(session, ["restart", *words]),
    "exec": execute.run_exec,
    "ls": listing.run_ls,
    "outdated": listing.run_outdated,
    "explain": listing.run_explain,
    "view": describing.run_view,
    "ping": describing.run_ping,
    "init": making.run_init,
    "pack": making.run_pack,
    "version": making.run_version,
    "pkg": making.run_pkg,
    "config": making.run_config,
    "get": lambda session, words: making.run_config(session, ["get", *words]),
    "set": lambda session, words: making.run_config(session, ["set", *words]),
    "root": lambda session, words: describing.run_where(session, f"{session.folder}/node_modules"),
    "prefix": lambda session, words: describing.run_where(session, describing.prefix(session)),
    "bin": lambda session, words: describing.run_where(session, describing.bin_folder(session)),
    "cache": describing.run_cache,
    "audit": describing.run_audit,
    "fund": describing.run_fund,
    "rebuild": describing.run_rebuild,
}
_ALIASES: Final = {
    "i": "install", "add": "install", "in": "install", "ins": "install", "isntall": "install", "inst": "install",
    "clean-install": "ci", "ic": "ci", "install-clean": "ci", "rm": "uninstall", "remove": "uninstall",
    "r": "uninstall", "un": "uninstall", "unlink": "uninstall", "up": "update", "upgrade": "update", "udpate": "update",
    "run-script": "run", "rum": "run", "urn": "run", "t": "test", "tst": "test", "x": "exec", "list": "ls", "la": "ls",
    "ll": "ls", "info": "view", "show": "view", "v": "view", "create": "init", "innit": "init", "c": "config",
    "why": "explain", "it": "install-test", "ddp": "dedupe", "verison": "version", "rb": "rebuild",
}  # fmt: skip
_ELSEWHERE: Final = frozenset(
    "publish unpublish login logout adduser whoami owner access token team org profile deprecate dist-tag star stars "
    "search link shrinkwrap doctor edit explore docs repo bugs help-search hook diff query sbom trust".split()
)


def run(process: Process, args: list[str], doc: str) -> int:
    line = parse(args)
    if line.settings.get("version") is True and not line.words:
        process.print(VERSION)
        return 0
    name = line.words[0] if line.words else ""
    if not name or name == "help" or line.settings.get("usage") is True:
        process.stdout.write(doc.encode())
        return 0 if name or line.settings.get("usage") is True else 1
    name = _ALIASES.get(name, name)
    command = _COMMANDS.get(name)
    if command is None:
        return _unknown(process, name)
    if line.words[0] in ("la", "ll"):
        line.settings["long"] = True
    if line.words[0] == "create":
        line.words[0:1] = ["init"]
    return _start(process, line, name, command, line.words[1:])


def _unknown(process: Process, name: str) -> int:
    if name in _ELSEWHERE:
        process.error(
            f"npm error npm {name} is not part of npm in this sandbox.\nnpm error See `npm help` for what is.\n"
        )
    else:
        process.error(f'Unknown command: "{name}"\n\nTo see a list of supported npm commands, run:\n  npm help\n')
    return 1


def run_npx(process: Process, args: list[str], doc: str) -> int:
    line = parse(args, first_word_ends=True)
    if line.settings.get("version") is True and not line.words:
        process.print(VERSION)
        return 0
    if line.settings.get("usage") is True:
        process.stdout.write(doc.encode())
        return 0
    return _start(process, line, "exec", execute.run_exec, line.words)


def _start(process: Process, line: CommandLine, name: str, command: Command, words: list[str]) -> int:
    try:
        session = Session(process, line, name)
    except NpmError as error:
        process.error("".join(f"npm error {text}\n" for text in (f"code {error.code}", *error.lines)))
        return error.status
    for option in line.unknown:
        session.warn(f'Unknown cli config "--{option}". This will stop working in the next major version of npm.')
    try:
        return command(session, words)
    except NpmError as error:
        return session.fail(error)
    except SysError as error:
        return session.fail(NpmError(errno_name(error), str(error)))
