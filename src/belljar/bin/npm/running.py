"""`npm run` and its short forms: scripts of package.json, with those before and after them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from belljar.bin.npm.actual import find_workspaces
from belljar.bin.npm.packagejson import read_json
from belljar.bin.npm.problems import NpmError, no_package
from belljar.bin.npm.scripts import Runner
from belljar.bin.npm.session import Session

_LIFECYCLE: Final = frozenset(
    "prepare prepublishOnly prepack postpack dependencies preinstall install postinstall prepublish publish "
    "postpublish prerestart restart postrestart prestart start poststart prestop stop poststop pretest test posttest "
    "preuninstall uninstall postuninstall preversion version postversion".split()
)


def run_script(session: Session, words: list[str]) -> int:
    if not words:
        return _list(session)
    return run_named(session, words)


def folders(session: Session) -> list[tuple[str, Mapping[str, Any]]]:
    """The packages a command is about: the project, or the workspaces that were asked for."""
    package = read_json(session.process, f"{session.prefix}/package.json")
    if package is None:
        raise no_package(session.prefix)
    named = session.config.many("workspace")
    if not named and not session.config.flag("workspaces"):
        return [(session.prefix, package)]
    known = find_workspaces(session.process, session.prefix, package)
    if not known:
        raise NpmError("ENOWORKSPACES", "No workspaces found!")
    chosen = [(name, path) for name, path in known.items() if not named or _is_named(name, path, named, session)]
    if not chosen:
        raise NpmError("ENOWORKSPACES", "No workspaces found:", *(f"  --workspace={name}" for name in named))
    return [(path, read_json(session.process, f"{path}/package.json") or {}) for _, path in chosen]


def _is_named(name: str, path: str, named: list[str], session: Session) -> bool:
    return any(
        name == word or path == session.process.absolute(word) or path == f"{session.prefix}/{word.removeprefix('./')}"
        for word in named
    )


def run_named(session: Session, words: list[str]) -> int:
    """A script by its name, with its arguments."""
    status = 0
    for folder, package in folders(session):
        status = _run_in(session, folder, package, words[0], words[1:]) or status
    return status


def _run_in(session: Session, folder: str, package: Mapping[str, Any], event: str, args: list[str]) -> int:
    runner = Runner(
        session.process, session.config, folder, package, "run" if session.command == "run" else session.command
    )
    scripts = dict(runner.scripts)
    if event == "restart" and event not in scripts:
        scripts[event] = "npm stop --if-present && npm start"
    elif event == "env" and event not in scripts:
        scripts[event] = "env"
    elif event == "start" and event not in scripts and session.process.fs.exists(f"{folder}/server.js"):
        scripts[event] = "node server.js"
    if event not in scripts:
        if session.config.flag("if-present"):
            return 0
        return _missing(session, event, scripts)
    events = [(event, args)]
    if not session.config.flag("ignore-scripts"):
        events = [(f"pre{event}", []), *events, (f"post{event}", [])]
    for name, given in events:
        if name not in scripts:
            continue
        runner.banner(name, scripts[name], given)
        status, _ = runner.run(name, scripts[name], given)
        if status:
            if folder != session.prefix and not session.config.silent:
                _failed(session, folder, package, name, scripts[name], status)
            return status
    return 0


def _failed(session: Session, folder: str, package: Mapping[str, Any], event: str, command: str, status: int) -> None:
    name, version = package.get("name"), package.get("version")
    shown = f"{name}@{version}" if name and version else str(name or folder)
    session.process.error(
        f"npm error Lifecycle script `{event}` failed with error:\nnpm error code {status}\nnpm error path {folder}\n"
        f"npm error workspace {shown}\nnpm error location {folder}\nnpm error command failed\n"
        f"npm error command sh -c {command}\n"
    )


def _missing(session: Session, event: str, scripts: Mapping[str, str]) -> int:
    near = [name for name in scripts if _distance(name, event) <= max(1, len(event) // 3)]
    lines = [f'Missing script: "{event}"', ""]
    if near:
        lines = [f'Missing script: "{event}"', "", f"Did you mean {'this' if len(near) == 1 else 'one of these'}?"]
        lines += [
            f'  npm {"" if n in ("start", "stop", "test") else "run "}{n} # run the "{n}" package script'
            for n in near[:3]
        ]
        lines.append("")
    for line in [*lines, "To see a list of scripts, run:", "  npm run"]:
        if not session.config.silent:
            session.process.error(f"npm error {line}".rstrip() + "\n")
    return 1


def _distance(a: str, b: str) -> int:
    if abs(len(a) - len(b)) > 8 or len(a) > 60:
        return 99
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        last, row = row, [i]
        for j, right in enumerate(b, 1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (left != right)))
    return row[-1]


def _list(session: Session) -> int:
    for folder, package in folders(session):
        runner = Runner(session.process, session.config, folder, package, "run")
        scripts = runner.scripts
        if session.config.flag("json"):
            session.process.print(json.dumps(dict(scripts), indent=2, ensure_ascii=False))
            continue
        name, version = package.get("name"), package.get("version")
        shown = f"{name}@{version}" if name and version else str(name or "")
        own = {event: text for event, text in scripts.items() if event in _LIFECYCLE}
        other = {event: text for event, text in scripts.items() if event not in _LIFECYCLE}
        if own:
            session.say(f"Lifecycle scripts included in {shown}:")
            for event, text in own.items():
                session.say(f"  {event}\n    {text}")
        if other:
            session.say("available via `npm run`:" if own else f"Scripts available in {shown} via `npm run`:")
            for event, text in other.items():
                session.say(f"  {event}\n    {text}")
    return 0
