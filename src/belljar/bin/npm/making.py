"""`npm init`, `version`, `pkg`, `config` and `pack`: a project's own files, written."""

from __future__ import annotations

import json
import posixpath
import re
from typing import Any, Final

from belljar.bin._kit.cstack import parse_json
from belljar.bin.npm.config import edit_file, is_secret
from belljar.bin.npm.execute import run_exec
from belljar.bin.npm.lockfile import read_lock
from belljar.bin.npm.packagejson import Document, default_name, dump, read_document
from belljar.bin.npm.packing import pack
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.registry import NODE_VERSION
from belljar.bin.npm.running import folders
from belljar.bin.npm.scripts import VERSION, Runner, quoted
from belljar.bin.npm.session import Session
from belljar.packages.semver import Version, parse_version

_NO_TEST: Final = 'echo "Error: no test specified" && exit 1'


def run_init(session: Session, words: list[str]) -> int:
    if words:
        return _initializer(session, words)
    config, process = session.config, session.process
    here = process.fs.getcwd() if "prefix" not in session.line.settings else session.prefix
    path = f"{here}/package.json"
    document = read_document(process, path)
    name = default_name(here)
    if not name:
        raise NpmError("EINVALIDPACKAGENAME", f'Invalid name: "{posixpath.basename(here)}"')
    scope = config.text("scope")
    defaults: dict[str, Any] = {
        "name": f"{scope if scope.startswith('@') else '@' + scope}/{name}" if scope else name,
        "version": config.text("init-version") or "1.0.0",
        "description": "",
        "main": _main_file(session, here),
        "scripts": {"test": _NO_TEST},
        "keywords": [],
        "author": config.text("init-author-name"),
        "license": config.text("init-license") or "ISC",
        "type": config.text("init-type") or "commonjs",
    }
    if document is None:
        document = Document(path, defaults)
    else:
        document.data = {**defaults, **document.data} if document.data else defaults
    document.save(process)
    session.say(f"Wrote to {path}:\n\n{dump(document.data)}\n\n")
    return 0


def _main_file(session: Session, folder: str) -> str:
    names = {entry.name for entry in session.process.fs.readdir(folder)}
    found = sorted(name for name in names if name.endswith(".js"))
    return "index.js" if "index.js" in names or not found else found[0]


def _initializer(session: Session, words: list[str]) -> int:
    """`npm init vite@1` is `npx create-vite@1`, `npm init @scope/app` is `npx @scope/create-app`."""
    found = re.fullmatch(r"(@[^/@]+)?/?([^@/]*)(@.*)?", words[0])
    if found is None:
        raise NpmError(
            "EUNSUPPORTED",
            f"Unrecognized initializer: {words[0]}",
            "For more package binary executing power check out `npx`",
        )
    scope, name, version = found[1], found[2], found[3] or ""
    created = f"create-{name}" if name else "create"
    return run_exec(session, [f"{scope}/{created}{version}" if scope else f"{created}{version}", *words[1:]])


# Versions.


def run_version(session: Session, words: list[str]) -> int:
    ((folder, _),) = folders(session)[:1] if words else [(session.prefix, {})]
    document = read_document(session.process, f"{folder}/package.json")
    if not words:
        about: dict[str, str] = {}
        if document is not None and document.data.get("name"):
            about[str(document.data["name"])] = str(document.data.get("version"))
        about |= {"npm": VERSION, "node": NODE_VERSION}
        if session.config.flag("json"):
            session.process.print(json.dumps(about, indent=2))
        else:
            session.process.print(
                "{\n" + ",\n".join(f"  {k if k.isidentifier() else repr(k)}: '{v}'" for k, v in about.items()) + "\n}"
            )
        return 0
    assert document is not None
    before = str(document.data.get("version", ""))
    after = bumped(before, words[0], session.config.text("preid"))
    if after == before and not session.config.flag("allow-same-version"):
        raise NpmError("ESAMEVERSION", "Version not changed, might want --allow-same-version")
    runner = Runner(session.process, session.config, folder, document.data, "version")
    _hook(session, runner, "preversion")
    document.data["version"] = after
    document.save(session.process)
    lock = read_lock(session.process, folder)
    if lock is not None:
        lock.data["version"] = after
        packages = lock.data.get("packages")
        if isinstance(packages, dict) and isinstance(packages.get(""), dict):
            packages[""]["version"] = after
        lock.save(session.process)
    _hook(session, runner, "version")
    if session.config.get("git-tag-version") is not False:
        _tag(session, folder, after)
    _hook(session, runner, "postversion")
    session.process.print(f"v{after}")
    return 0


def _hook(session: Session, runner: Runner, event: str) -> None:
    if event in runner.scripts and not session.config.flag("ignore-scripts"):
        runner.banner(event, runner.scripts[event], [])
        status, _ = runner.run(event, runner.scripts[event], [])
        if status:
            raise NpmError(str(status), "command failed", f"command sh -c {runner.scripts[event]}", status=status)


def _tag(session: Session, folder: str, version: str) -> None:
    """A commit and a tag, in a git repository that has nothing else under way."""
    process = session.process
    if not process.fs.exists(f"{folder}/.git"):
        return
    message = (session.config.text("message") or "%s").replace("%s", version)
    tag = f"{session.config.text('tag-version-prefix')}{version}"
    runner = Runner(process, session.config, folder, {}, "version")
    steps = ["git add package.json", "[ ! -f package-lock.json ] || git add package-lock.json",
             f"git commit -q -m{quoted([message])}", f"git tag -a{quoted([tag])} -m{quoted([message])}"]  # fmt: skip
    for step in steps:
        status, output = runner.run("version", step, [], capture=True)
        if status:
            raise NpmError(str(status), f"{step} failed", output.decode("utf-8", "replace").rstrip())


def bumped(before: str, how: str, preid: str = "") -> str:
    """A version one step on, as `npm version HOW` has it. EINVALIDVERSION."""
    explicit = parse_version(how)
    if explicit is not None:
        return str(explicit)
    version = parse_version(before)
    if version is None:
        raise NpmError("EINVALIDVERSION", f"Invalid version: {before or how}")
    major, minor, patch, pre = version.major, version.minor, version.patch, version.prerelease
    first: tuple[int | str, ...] = (preid, 0) if preid else (0,)
    match how:
        case "major":
            made = Version(major if not (minor or patch) and pre else major + 1, 0, 0)
        case "minor":
            made = Version(major, minor if not patch and pre else minor + 1, 0)
        case "patch":
            made = Version(major, minor, patch if pre else patch + 1)
        case "premajor":
            made = Version(major + 1, 0, 0, first)
        case "preminor":
            made = Version(major, minor + 1, 0, first)
        case "prepatch":
            made = Version(major, minor, patch + 1, first)
        case "prerelease":
            made = Version(major, minor, patch, _next(pre, preid)) if pre else Version(major, minor, patch + 1, first)
        case _:
            raise NpmError(
                "EUSAGE",
                "npm version [<newversion> | major | minor | patch | premajor | preminor | prepatch | prerelease]",
            )
    return str(made)


def _next(pre: tuple[int | str, ...], preid: str) -> tuple[int | str, ...]:
    if preid and pre[0] != preid:
        return preid, 0
    for index in range(len(pre) - 1, -1, -1):
        part = pre[index]
        if isinstance(part, int):
            return (*pre[:index], part + 1, *pre[index + 1 :])
    return (*pre, 0)


# npm pkg and npm config.


def run_pkg(session: Session, words: list[str]) -> int:
    match words:
        case ["get", *keys]:
            return _pkg_get(session, keys)
        case ["set", *pairs] if pairs and all("=" in pair for pair in pairs):
            return _pkg_change(session, dict(pair.split("=", 1) for pair in pairs))
        case ["delete" | "rm", *keys] if keys:
            return _pkg_change(session, dict.fromkeys(keys))
    raise NpmError("EUSAGE", "npm pkg set <key>=<value> [<key>=<value> ...]", "npm pkg get [<key> [<key> ...]]",
                   "npm pkg delete <key> [<key> ...]")  # fmt: skip


def _path(key: str) -> list[str]:
    return [part for part in re.split(r"\.|\[|\]", key) if part]


def _pkg_get(session: Session, keys: list[str]) -> int:
    ((_, package),) = folders(session)[:1]
    found: dict[str, Any] = {}
    for key in keys:
        value: Any = package
        for part in _path(key):
            if isinstance(value, list):
                value = value[int(part)] if part.isdecimal() and int(part) < len(value) else None
            else:
                value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            found[key] = value
    shown: Any = package if not keys else found if len(keys) > 1 or not found else next(iter(found.values()))
    session.process.print(json.dumps(shown, indent=2, ensure_ascii=False))
    return 0


def _pkg_change(session: Session, changes: dict[str, Any]) -> int:
    folders(session)
    document = read_document(session.process, f"{session.prefix}/package.json")
    assert document is not None
    for key, text in changes.items():
        value = text
        if isinstance(text, str) and session.config.flag("json"):
            try:
                value = parse_json(text)
            except (ValueError, RecursionError):
                raise NpmError("EJSONPARSE", f"{text!r} is no JSON") from None
        _assign(document.data, _path(key), value, append=key.endswith("[]"))
    document.save(session.process)
    return 0


def _assign(data: Any, path: list[str], value: Any, *, append: bool) -> None:
    for index, part in enumerate(path[:-1]):
        inner = (
            data.get(part)
            if isinstance(data, dict)
            else data[int(part)]
            if part.isdecimal() and int(part) < len(data)
            else None
        )
        if not isinstance(inner, (dict, list)):
            if value is None:
                return
            inner = [] if path[index + 1].isdecimal() else {}
            data[part] = inner
        data = inner
    last = path[-1]
    if append and isinstance(data, dict):
        known = data.get(last)
        data[last] = [*known, value] if isinstance(known, list) else [value]
    elif isinstance(data, list):
        if last.isdecimal() and int(last) < len(data):
            if value is None:
                del data[int(last)]
            else:
                data[int(last)] = value
        elif value is not None:
            data.append(value)
    elif value is None:
        data.pop(last, None)
    else:
        data[last] = value


def run_config(session: Session, words: list[str]) -> int:
    config = session.config
    path = config.project_file if config.text("location") == "project" else config.user_file
    match words:
        case ["get", *names] if names:
            for name in names:
                if is_secret(name):
                    raise NpmError(
                        "EPROTECTED", f"The {name} option is protected, and can not be retrieved in this way"
                    )
                value = config.get(name)
                shown = "undefined" if value is None else json.dumps(value) if isinstance(value, bool) else str(value)
                session.process.print(shown if len(names) == 1 else f"{name}={shown}")
            return 0
        case ["set", *pairs] if pairs:
            edit_file(session.process, path, _pairs(pairs))
            return 0
        case ["delete" | "rm" | "del", *names] if names:
            edit_file(session.process, path, dict.fromkeys(names))
            return 0
        case [] | ["list" | "ls" | "get"]:
            for name, value in config.listed():
                session.process.print(f"{name} = {json.dumps(value)}")
            return 0
    raise NpmError("EUSAGE", "npm config set <key>=<value> [<key>=<value> ...]", "npm config get [<key> [<key> ...]]",
                   "npm config delete <key> [<key> ...]", "npm config list")  # fmt: skip


def _pairs(words: list[str]) -> dict[str, str | None]:
    if len(words) == 2 and "=" not in words[0]:
        return {words[0]: words[1]}
    found: dict[str, str | None] = {}
    for word in words:
        name, _, value = word.partition("=")
        found[name] = value
    return found


def run_pack(session: Session, words: list[str]) -> int:
    for word in words or ["."]:
        pack(session, session.process.absolute(word) if words else session.prefix)
    return 0
