"""pip's settings: the files that hold them, and `pip config`."""

from __future__ import annotations

import configparser

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import count, flag
from belljar.bin.pip import site
from belljar.bin.pip.environment import Environment, find_environment
from belljar.bin.pip.problems import PipError
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class ConfigOptions:
    everyone: bool = flag("--global", "the file of the whole system")
    user: bool = flag("--user", "the user's file (as by default)")
    site: bool = flag("--site", "the environment's file")
    quiet: int = count("-q", "--quiet", "say less")
    accepted: int = count("-v", "--verbose", "--disable-pip-version-check", "--no-color", "(accepted)")


def config_files(process: Process, environment: Environment) -> dict[str, str]:
    """Kinds of files to their paths; what a later one says holds."""
    home = process.env.get("HOME", "/")
    files = {"global": "/etc/pip.conf", "user": f"{home}/.config/pip/pip.conf"}
    files["site"] = f"{environment.prefix}/pip.conf"
    if extra := process.env.get("PIP_CONFIG_FILE"):
        files["env"] = extra
    return files


def read_settings(process: Process, environment: Environment, command: str) -> dict[str, str]:
    """The values that hold for a command: its own section's, then those of [global]."""
    found: dict[str, str] = {}
    for path in config_files(process, environment).values():
        parser = _read(process, path)
        for section in ("global", command):
            if parser.has_section(section):
                found.update({name.replace("_", "-"): text for name, text in parser.items(section)})
    return found


def _read(process: Process, path: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(process.read_file(path).decode("utf-8", "replace"))
    except SysError:
        return parser
    except configparser.Error as error:
        raise PipError(f"Configuration file could not be loaded.\n{path}: {error.message.splitlines()[0]}") from None
    return parser


def run_config(process: Process, options: ConfigOptions, operands: list[str]) -> int:
    files = config_files(process, find_environment(process))
    kind = "global" if options.everyone else "site" if options.site else "user"
    match operands:
        case ["list"]:
            for name, text in sorted(_listed(process, files).items()):
                process.print(f"{name}={text!r}")
            return 0
        case ["debug"]:
            for each, path in files.items():
                process.print(f"{each}:\n  {path}, exists: {process.fs.exists(path)}")
            return 0
        case ["get", name]:
            listed = _listed(process, files)
            if name not in listed:
                raise PipError(f"No such key - {name}")
            process.print(listed[name])
            return 0
        case ["set" | "unset" as verb, name, *rest] if len(rest) == (verb == "set"):
            _change(process, files[kind], name, rest[0] if rest else None)
            if not options.quiet:
                process.print(f"Writing to {files[kind]}")
            return 0
        case _:
            raise PipError("Need an action (debug, get, list, set, unset) to perform.")


def _listed(process: Process, files: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in files.values():
        parser = _read(process, path)
        for section in parser.sections():
            found.update({f"{section}.{name}": text for name, text in parser.items(section)})
    for name, text in process.env.items():
        if name.startswith("PIP_"):
            found[f":env:.{name[4:].lower().replace('_', '-')}"] = text
    return found


def _change(process: Process, path: str, name: str, text: str | None) -> None:
    section, dot, key = name.partition(".")
    if not dot:
        raise PipError(
            f"Key does not contain dot separated section and key. Perhaps you wanted to use 'global.{name}'?"
        )
    parser = _read(process, path)
    if text is None:
        if not parser.has_option(section, key):
            raise PipError(f"No such key - {name}")
        parser.remove_option(section, key)
        if not parser.options(section):
            parser.remove_section(section)
    else:
        if not parser.has_section(section):
            parser.add_section(section)
        parser.set(section, key, text)
    lines: list[str] = []
    for each in parser.sections():
        lines += [f"[{each}]", *(f"{option} = {value}" for option, value in parser.items(each)), ""]
    site.make_directories(process, path.rpartition("/")[0])
    process.write_file(path, "\n".join(lines).encode("utf-8", "surrogateescape"), 0o644)
