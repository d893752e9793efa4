"""`npm exec` and `npx`: a command of a package that is installed, or is fetched into the cache for it."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping
from typing import Any

from belljar.bin.npm.bins import bin_directory
from belljar.bin.npm.ideal import Rules
from belljar.bin.npm.install import install
from belljar.bin.npm.packagejson import bins, dump, read_json
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.project import Project, Request
from belljar.bin.npm.scripts import Runner, quoted
from belljar.bin.npm.session import Session
from belljar.bin.npm.spec import Spec, parse_spec
from belljar.bin.npm.tarball import make_directories
from belljar.bin.npm.tree import Node, fits


def run_exec(session: Session, words: list[str]) -> int:
    call = session.config.text("call")
    packages = session.config.many("package")
    if call and words:
        raise NpmError("EUSAGE", "npm exec -c '<command>' takes no other arguments")
    if not call and not words:
        if packages:
            raise NpmError("EUSAGE", "npm exec -p <package> -- <command> [args...]", "", "which command of it?")
        return _shell(session)
    package = read_json(session.process, f"{session.prefix}/package.json") or {}
    if not packages and words and _installed_command(session, words[0]):
        return _run(session, package, words[0], words[1:], ())
    if not packages and words:
        packages, name = [words[0]], None
    else:
        name = words[0] if words else None
    if call and not packages:
        return _run_text(session, package, call, ())
    found = [_find_package(session, parse_spec(text, session.process.fs.getcwd())) for text in packages]
    missing = [text for text, node in zip(packages, found, strict=True) if node is None]
    directories = tuple({bin_directory(node) for node in found if node is not None})
    nodes = [node for node in found if node is not None]
    if missing:
        folder, fetched = _fetch(session, missing)
        directories = (f"{folder}/node_modules/.bin", *directories)
        nodes += fetched
    if call:
        return _run_text(session, package, call, directories)
    if name is None:
        name = _command_of(nodes[0])
    return _run(session, package, name, words[1:], directories)


def _installed_command(session: Session, name: str) -> bool:
    """Whether the project, or a global package, has a command of that name."""
    if "/" in name or name in (".", ".."):
        return False
    where = session.process.fs.getcwd()
    folders = [f"{session.global_prefix}/bin"]
    while where != "/":
        folders.append(f"{where}/node_modules/.bin")
        where = posixpath.dirname(where)
    for folder in folders:
        if not session.process.fs.exists(f"{folder}/{name}"):
            continue
        return True
    return False


def _find_package(session: Session, spec: Spec) -> Node | None:
    """An installed package that is what was asked for."""
    name = spec.name
    if name is None or spec.kind == "tag":
        return None
    folder = f"{session.prefix}/node_modules/{name}"
    package = read_json(session.process, f"{folder}/package.json")
    if package is None:
        return None
    root = Node("", {}, session.prefix)
    node = Node(name, package, "", parent=root)
    return node if spec.target.registry and fits(node, spec.target) else None


def _fetch(session: Session, packages: list[str]) -> tuple[str, list[Node]]:
    """Install packages into a directory of the cache, or find them there."""
    here = session.process.fs.getcwd()
    specs = [parse_spec(text, here) for text in packages]
    key = hashlib.sha512(
        "\n".join(sorted(spec.shown for spec in specs)).encode("utf-8", "surrogateescape")
    ).hexdigest()[:16]
    folder = f"{session.config.cache}/_npx/{key}"
    if not session.config.flag("yes"):
        shown = ",".join(f'"{spec.shown}"' for spec in specs)
        raise NpmError("ECANCELED", f"npx canceled due to missing packages and no YES option: [{shown}]")
    make_directories(session.process, folder)
    with _project(session, folder) as project:
        project.load()
        requests = project.requests(packages)
        nodes = [project.root.children.get(request.name) for request in requests]
        if not all(_is_current(project, request, node) for request, node in zip(requests, nodes, strict=True)):
            newest = [project.source.load_spec(request.spec, request.name) for request in requests]
            for node in newest:
                session.warn(
                    "exec The following package was not found and will be installed: "
                    f"{node.package_name}@{node.version}"
                )
            project.add(requests)
            install(session, project, requests, Rules(explicit=frozenset(request.name for request in requests)))
        found = [project.root.children.get(request.name) for request in requests]
        nodes = [node for node in found if node is not None]
        for node in nodes:
            inside = read_json(session.process, f"{node.real_folder}/package.json")
            if inside is not None:
                node.package = {**node.package, "bin": inside.get("bin")}
        return folder, [node for node in nodes if node is not None]


def _is_current(project: Project, request: Request, node: Node | None) -> bool:
    """Whether what the cache has is what was asked for; a tag may mean another version today."""
    target = request.spec.target
    if node is None or not fits(node, target):
        return False
    return target.kind != "tag" or project.registry.manifest(request.spec).get("version") == node.version


def _project(session: Session, folder: str) -> Any:
    path = f"{folder}/package.json"
    if read_json(session.process, path) is None:
        session.process.write_file(path, (dump({}) + "\n").encode())
    session.is_global = False
    return session.project(folder)


def _command_of(node: Node) -> str:
    """The command that a package is run by."""
    found: Mapping[str, str] = bins(node.package, node.package_name)
    plain = node.package_name.rpartition("/")[2]
    if len(set(found.values())) == 1:
        return plain if plain in found else next(iter(found))
    if plain in found:
        return plain
    raise NpmError(
        "EUNKNOWN",
        "could not determine executable to run",
        f"(the package {node.package_name} has {'none' if not found else 'several: ' + ', '.join(found)})",
    )


def _run(session: Session, package: Mapping[str, Any], command: str, args: list[str], first: tuple[str, ...]) -> int:
    return _run_text(session, package, quoted([command]).strip() + quoted(args), first)


def _run_text(session: Session, package: Mapping[str, Any], text: str, first: tuple[str, ...]) -> int:
    here = session.process.fs.getcwd()
    runner = Runner(session.process, session.config, here, package, "exec", (*first, f"{session.global_prefix}/bin"))
    status, _ = runner.run("npx", text, [])
    return status


def _shell(session: Session) -> int:
    """Run a shell with the project's commands on its PATH, if no command was given."""
    return _run_text(session, {}, session.config.text("script-shell") or "/bin/sh", ())
