"""`npm install`, `ci`, `uninstall`, `update`, `prune`: what they are asked, and the line they end with."""

from __future__ import annotations

import json

from belljar.bin._remove import Remover
from belljar.bin.npm.ideal import Rules
from belljar.bin.npm.lockfile import grow, read_lock
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.project import Project, Request, require_document
from belljar.bin.npm.reify import Changes
from belljar.bin.npm.scripts import Runner
from belljar.bin.npm.session import Session
from belljar.bin.npm.tree import flag


def run_install(session: Session, words: list[str]) -> int:
    began = session.now()
    with session.project() as project:
        if not words and session.is_global:
            words = ["."]
        project.load()
        requests = project.requests(words)
        project.add(requests)
        changes = install(session, project, requests, Rules(explicit=frozenset(request.name for request in requests)))
        if not words and not session.is_global:
            run_own_scripts(session, project)
        report(session, changes, began)
    return 0


def install(session: Session, project: Project, requests: list[Request], rules: Rules) -> Changes:
    """Complete a project's tree, and make it so."""
    config = session.config
    strategy = "shallow" if session.is_global or project.lonely else config.text("install-strategy") or "hoisted"
    project.build(
        Rules(
            legacy_peers=project.legacy,
            force=config.flag("force"),
            strict_peers=config.flag("strict-peer-deps"),
            strategy=strategy,
            explicit=rules.explicit,
            update=rules.update,
        )
    )
    project.prune_and_check()
    if config.flag("package-lock-only"):
        changes = Changes()
    else:
        changes = project.reify()
        for node in [*changes.added, *(new for _, new in changes.changed)]:
            text = node.package.get("deprecated")
            if text:
                session.warn(f"deprecated {node.package_name}@{node.version}: {text}")
        for node in project.root.descendants():
            if node.target is not None and node.target.home is None:
                session.note_outside(node.name, node.target)
    project.save(requests, manifest=bool(requests) and config.get("save") is not False)
    return changes


def run_own_scripts(session: Session, project: Project) -> None:
    """The scripts that a project has for its own installation."""
    config = session.config
    if config.flag("ignore-scripts") or config.flag("dry-run") or config.flag("package-lock-only"):
        return
    runner = Runner(session.process, config, project.folder, project.root.package, "install")
    events = ["preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"]
    for event in events:
        if event in runner.scripts:
            runner.banner(event, runner.scripts[event], [])
            status, _ = runner.run(event, runner.scripts[event], [])
            if status:
                raise NpmError(str(status), f"path {project.folder}", "command failed",
                               f"command sh -c {runner.scripts[event]}", status=status)  # fmt: skip


def run_ci(session: Session, words: list[str]) -> int:
    began = session.now()
    if session.is_global:
        raise NpmError("ECIGLOBAL", "`npm ci` does not work for global packages")
    with session.project() as project:
        require_document(project)
        project.lock = read_lock(session.process, project.folder)
        if project.lock is None:
            raise NpmError(
                "EUSAGE",
                "",
                "The `npm ci` command can only install with an existing package-lock.json or",
                "npm-shrinkwrap.json with lockfileVersion >= 1. Run an install with npm@5 or",
                "later to generate a package-lock.json file, then try again.",
            )
        grow(project.root, project.lock.data, legacy_peers=project.legacy)
        project.refresh_workspaces()
        _check_in_step(project)
        modules = f"{project.folder}/node_modules"
        present = session.process.fs.is_dir(modules)
        flag(project.root)
        project.prune_and_check()
        if present and not session.config.flag("dry-run"):
            Remover(session.process, recursive=True, force=True).remove(modules)
        changes = project.reify()
        project.save([], manifest=False)
        run_own_scripts(session, project)
        report(session, changes, began)
    return 0


def _check_in_step(project: Project) -> None:
    """EUSAGE if the lockfile is not what package.json asks for."""
    wrong: list[str] = []
    for node in [project.root, *project.root.descendants()]:
        if node.bundled:
            continue
        for edge in node.edges.values():
            to = edge.to
            if to is None and not edge.optional and edge.kind != "workspace":
                wrong.append(f"Missing: {edge.name}@{edge.wanted} from lock file")
            elif to is not None and node.is_root and not edge.valid and not edge.peer:
                wrong.append(
                    f"Invalid: lock file's {to.package_name}@{to.version} does not satisfy {edge.name}@{edge.wanted}"
                )
    if wrong:
        raise NpmError(
            "EUSAGE",
            "",
            "`npm ci` can only install packages when your package.json and package-lock.json or npm-shrinkwrap.json are"
            " in sync. Please update your lock file with `npm install` before continuing.",
            "",
            *dict.fromkeys(wrong),
            "",
        )


def run_uninstall(session: Session, words: list[str]) -> int:
    began = session.now()
    if not words:
        raise NpmError("EUSAGE", "npm uninstall <pkg>...", "", "Must provide a package name to remove")
    with session.project() as project:
        project.load()
        project.drop([word.rpartition("@")[0] or word if word.rfind("@") > 0 else word for word in words])
        project.prune_and_check()
        changes = project.reify()
        if not project.lonely and session.config.get("save") is not False and project.document is not None:
            for bucket in ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies"):
                kept = project.root.package.get(bucket)
                if bucket in project.document.data and not kept:
                    project.root.package = {k: v for k, v in project.root.package.items() if k != bucket}
            project.document.data = dict(project.root.package)
            if not session.config.flag("dry-run"):
                project.document.save(session.process)
        project.save([], manifest=False)
        report(session, changes, began)
    return 0


def run_update(session: Session, words: list[str]) -> int:
    began = session.now()
    with session.project() as project:
        project.load()
        if project.lonely:
            project.add(project.requests([f"{name}@latest" for name in words or list(project.root.children)]))
        update = frozenset(words) if words else None
        changes = install(session, project, [], Rules(update=update))
        report(session, changes, began)
    return 0


def run_prune(session: Session, words: list[str]) -> int:
    began = session.now()
    with session.project() as project:
        project.load()
        project.prune_and_check()
        changes = project.reify()
        project.save([], manifest=False)
        report(session, changes, began)
    return 0


def _plural(count: int) -> str:
    return f"{count} package{'' if count == 1 else 's'}"


def report(session: Session, changes: Changes, began: float) -> None:
    added, removed, changed = len(changes.added), len(changes.removed), len(changes.changed)
    if session.config.flag("json"):
        said = {
            "add": [{"name": n.name, "version": n.version, "path": n.folder} for n in changes.added],
            "added": added,
            "changed": changed,
            "remove": [{"name": n.name, "version": n.version, "path": n.folder} for n in changes.removed],
            "removed": removed,
        }
        session.process.print(json.dumps(said, indent=2))
        return
    if session.config.flag("dry-run"):
        for node in changes.added:
            session.say(f"add {node.name} {node.version}")
        for old, new in changes.changed:
            session.say(f"change {old.name} {old.version} => {new.version}")
        for node in changes.removed:
            session.say(f"remove {node.name} {node.version}")
    parts = [f"{word} {_plural(n)}" for word, n in (("added", added), ("removed", removed), ("changed", changed)) if n]
    if len(parts) > 1:
        parts[-1] = f"and {parts[-1]}"
    session.say(f"\n{', '.join(parts) or 'up to date'} in {_duration(session.now() - began)}")


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    return f"{round(seconds)}s" if seconds < 60 else f"{round(seconds / 60)}m"
