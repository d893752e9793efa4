"""`git config`: settings read and changed, in the repository's file, the user's, or any."""

from __future__ import annotations

import re

from dulwich.config import ConfigFile

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import choice, flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.config import config_paths, config_values, read_config, split_key, write_config
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.kernel.process import Process
from belljar.regex import RegexError
from belljar.regex import compile as compile_regex

_SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True, slots=True)
class ConfigOptions:
    everyone: bool = flag("--global", "use the user's file")
    system: bool = flag("--system", "use the system's file")
    local: bool = flag("--local", "--worktree", "use the repository's file")
    file: str | None = value("-f", "--file", "use a file", metavar="FILE")
    verb: str | None = choice(
        {"-l": "list", "--list": "list", "--get": "get", "--get-all": "get-all", "--get-regexp": "get-regexp",
         "--unset": "unset", "--unset-all": "unset-all", "--add": "add", "--replace-all": "replace-all",
         "--remove-section": "remove-section", "--rename-section": "rename-section", "-e": "edit", "--edit": "edit"},
        "what to do",
    )  # fmt: skip
    kind: str | None = value("--type", "bool, int, path or bool-or-int", metavar="TYPE")
    plain_kind: str | None = choice(
        {"--bool": "bool", "--int": "int", "--path": "path", "--bool-or-int": "bool-or-int"}, "the value's type"
    )
    default: str | None = value("--default", "what a missing value is", metavar="VALUE")
    names: bool = flag("--name-only", "show only names")
    null: bool = flag("-z", "--null", "terminate values with NUL")
    origin: bool = flag("--show-origin", "show where it is from")
    scope: bool = flag("--show-scope", "show whose file it is from")
    includes: bool = flag("--includes", "--no-includes", "(there are none)")


@dataclass(frozen=True, slots=True)
class Entry:
    key: str
    text: str
    path: str


def config(process: Process, repo: Repository | None, args: list[str]) -> int:
    options, words = read_options(ConfigOptions, args)
    path, paths, explicit = _files(process, repo, options)
    entries = [entry for each in paths for entry in _entries(process, each)]
    if repo is not None and not explicit:
        entries += [Entry(name, text, "command line:") for name, text in repo.settings]
    match options.verb:
        case "list":
            for entry in entries:
                _show(process, repo, entry, options, f"{entry.key}={entry.text}" if not options.names else entry.key)
            return 0
        case "get-regexp":
            return _matching(process, repo, entries, words, options)
        case "remove-section" | "rename-section":
            return _section(process, path, words, rename=options.verb == "rename-section")
        case "edit":
            raise GitError("git config --edit wants a terminal: name a setting and its value instead")
    if not words:
        raise GitError("usage: git config [<options>]", 129, "")
    key = words[0]
    if "." not in key:
        raise GitError(f"key does not contain a section: {key}", 1, "error: ")
    if options.verb in ("unset", "unset-all"):
        return _unset(process, _target(path), key, everything=options.verb == "unset-all")
    if (len(words) == 1 and options.verb not in ("add", "replace-all")) or options.verb in ("get", "get-all"):
        found = [entry for entry in entries if _same_key(entry.key, key)]
        if not found and options.default is not None:
            found = [Entry(key, options.default, "command line:")]
        if not found:
            return 1
        for entry in found if options.verb == "get-all" else found[-1:]:
            _show(process, repo, entry, options, _typed(entry.text, key, options))
        return 0
    if len(words) < 2:
        raise GitError("wrong number of arguments, should be 2", 129, "error: ")
    target = _target(path)
    loaded = read_config(process, target)
    section, name = split_key(key)
    text = fsencode(_typed(words[1], key, options))
    known = config_values(loaded, key)
    if options.verb == "add":
        loaded.add(section, name, text)
    elif len(known) > 1 and options.verb != "replace-all":
        raise GitError(
            f"warning: {key} has multiple values\nerror: cannot overwrite multiple values with a single value\n"
            f"       Use a regexp, --add or --replace-all to change {key}.",
            5,
            "",
        )
    elif len(known) > 1:
        _drop(loaded, key)
        loaded.add(section, name, text)
    else:
        loaded.set(section, name, text)
    write_config(process, target, loaded)
    return 0


def _files(process: Process, repo: Repository | None, options: ConfigOptions) -> tuple[str | None, list[str], bool]:
    """The file that is changed, those that are read, and whether an option named one."""
    home = process.env.get("HOME", "/")
    if options.file is not None:
        path: str | None = options.file
    elif options.everyone:
        path = process.env.get("GIT_CONFIG_GLOBAL") or f"{home}/.gitconfig"
    elif options.system:
        path = "/etc/gitconfig"
    else:
        path = f"{repo.common}/config" if repo is not None else None
    explicit = options.file is not None or options.everyone or options.system or options.local
    if explicit and path is None:
        raise GitError("--local can only be used inside a git repository")
    if explicit and path is not None:
        return path, [path], True
    return path, [name for _, name in config_paths(process, repo.common if repo is not None else None)], False


def _target(path: str | None) -> str:
    if path is None:
        raise GitError("not in a git directory")
    return path


def _entries(process: Process, path: str) -> list[Entry]:
    loaded = read_config(process, path)
    found: list[Entry] = []
    for section in loaded.sections():
        for item, data in loaded.items(section):
            first, *rest = section
            name = b".".join([first.lower(), *rest, item.lower()]).decode("utf-8", "surrogateescape")
            found.append(Entry(name, data.decode("utf-8", "surrogateescape"), path))
    return found


def _same_key(known: str, wanted: str) -> bool:
    return _folded(known) == _folded(wanted)


def _folded(key: str) -> tuple[str, str, str]:
    """Sections and names are the same in either case; what stands between is not."""
    section, _, rest = key.partition(".")
    middle, _, name = rest.rpartition(".")
    return section.lower(), middle, name.lower()


def _show(process: Process, repo: Repository | None, entry: Entry, options: ConfigOptions, text: str) -> None:
    front = ""
    if options.scope:
        scopes = {path: scope for scope, path in config_paths(process, repo.common if repo is not None else None)}
        scope = "command" if entry.path == "command line:" else scopes.get(entry.path, "command")
        front += f"{scope}\t"
    if options.origin:
        shown = entry.path
        if repo is not None and repo.work and shown == f"{repo.work.rstrip('/')}/.git/config":
            shown = ".git/config"
        front += f"{shown if shown == 'command line:' else f'file:{shown}'}\t"
    process.print(front + text, end="\0" if options.null else "\n")


def _matching(
    process: Process, repo: Repository | None, entries: list[Entry], words: list[str], options: ConfigOptions
) -> int:
    if not words:
        raise GitError("wrong number of arguments, should be from 1 to 2", 129, "error: ")
    try:
        regex = compile_regex(words[0], syntax="egrep")
    except RegexError:
        raise GitError(f"invalid key pattern: {words[0]}", 6, "error: ") from None
    found = [entry for entry in entries if regex.test(entry.key)]
    for entry in found:
        text = entry.key if options.names else f"{entry.key} {_typed(entry.text, entry.key, options)}".rstrip(" ")
        _show(process, repo, entry, options, text)
    return 0 if found else 1


def _typed(text: str, key: str, options: ConfigOptions) -> str:
    """A value in the form of its type."""
    kind = options.kind or options.plain_kind
    low = text.lower()
    if kind in ("bool", "bool-or-int"):
        if low in ("true", "yes", "on", ""):
            return "true"
        if low in ("false", "no", "off"):
            return "false"
        if kind == "bool" and (number := re.fullmatch(r"([-+]?\d{1,18})[kmg]?", low)):
            return "true" if int(number[1]) else "false"
        if kind == "bool":
            raise GitError(f"bad boolean config value '{text}' for '{key}'")
    if kind in ("int", "bool-or-int"):
        match = re.fullmatch(r"([-+]?\d{1,18})([kmg]?)", low)
        if match is None:
            raise GitError(f"bad numeric config value '{text}' for '{key}': invalid unit")
        return str(int(match[1]) * _SIZES.get(match[2], 1))
    return text


def _unset(process: Process, path: str, key: str, *, everything: bool) -> int:
    loaded = read_config(process, path)
    known = config_values(loaded, key)
    if not known:
        return 5
    if len(known) > 1 and not everything:
        process.error(f"warning: {key} has multiple values\n")
        return 5
    _drop(loaded, key)
    write_config(process, path, loaded)
    return 0


def _drop(loaded: ConfigFile, key: str) -> None:
    section, name = split_key(key)
    values = [(k, v) for k, v in loaded.items(section) if k.lower() != name.lower()]
    del loaded[section]
    for k, v in values:
        loaded.add(section, k, v)


def _section(process: Process, path: str | None, words: list[str], *, rename: bool) -> int:
    if len(words) != (2 if rename else 1):
        raise GitError(f"wrong number of arguments, should be {2 if rename else 1}", 129, "error: ")
    target = _target(path)
    loaded = read_config(process, target)
    old = _section_key(words[0])
    if old not in list(loaded.sections()):
        raise GitError(f"no such section: {words[0]}")
    values = list(loaded.items(old))
    del loaded[old]
    for k, v in values if rename else ():
        loaded.add(_section_key(words[1]), k, v)
    write_config(process, target, loaded)
    return 0


def _section_key(text: str) -> tuple[bytes, ...]:
    section, dot, middle = text.partition(".")
    name = fsencode(section.lower())
    return (name, fsencode(middle)) if dot else (name,)
