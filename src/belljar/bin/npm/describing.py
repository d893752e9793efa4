"""`npm view`, and the commands that only say where things are or what they are not."""

from __future__ import annotations

import json
from typing import Any

from belljar.bin.npm.fetch import Missing
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.registry import WHOLE, Packument, Registry, not_found
from belljar.bin.npm.session import Session
from belljar.bin.npm.spec import Spec, parse_spec
from belljar.packages.semver import parse_range, parse_version, sort_key


def run_where(session: Session, path: str) -> int:
    session.process.print(path)
    return 0


def prefix(session: Session) -> str:
    return session.process.absolute(session.global_prefix) if session.is_global else session.prefix


def bin_folder(session: Session) -> str:
    return (
        f"{session.process.absolute(session.global_prefix)}/bin"
        if session.is_global
        else f"{session.prefix}/node_modules/.bin"
    )


def run_view(session: Session, words: list[str]) -> int:
    text = words[0] if words else "."
    fields = words[1:]
    if text == "." or text.startswith(".@"):
        with session.project() as project:
            text = project.root.package_name + text[1:]
    spec = parse_spec(text, session.process.fs.getcwd())
    target = spec.target
    if not target.registry or target.name is None:
        raise NpmError("EUSAGE", f"npm view takes packages of a registry, not {text}")
    registry = Registry(session.process, session.config)
    try:
        packument = registry.read(target.name, WHOLE)
    except NpmError as error:
        if error.code == "E404":
            raise not_found(error.lines[0], target) from None
        raise
    chosen = _versions(packument, target, session)
    if not chosen:
        raise NpmError(
            "E404",
            f"404 No match found for version {target.wanted}",
            "404",
            f"404  The requested resource '{target.shown}' could not be found.",
        )
    if not fields:
        return _summary(session, packument, chosen[-1])
    return _fields(session, packument, chosen, fields)


def _versions(packument: Packument, spec: Spec, session: Session) -> list[dict[str, Any]]:
    if spec.kind == "range" and spec.wanted != "*":
        bounds = parse_range(spec.wanted)
        assert bounds is not None
        found = [v for v in packument.versions if (p := parse_version(v)) is not None and bounds.test(p)]
        return [dict(packument.versions[v]) for v in sorted(found, key=sort_key)]
    if spec.kind == "range":
        spec = Spec("tag", spec.name, session.config.text("tag") or "latest", "latest")
    try:
        return [dict(packument.pick(spec))]
    except NpmError:
        return []


def _document(packument: Packument, manifest: dict[str, Any]) -> dict[str, Any]:
    page = packument.page
    return {
        **{
            key: page[key]
            for key in ("name", "description", "dist-tags", "time", "maintainers", "readmeFilename")
            if key in page
        },
        "versions": sorted(packument.versions, key=sort_key),
        **manifest,
    }


def _fields(session: Session, packument: Packument, chosen: list[dict[str, Any]], fields: list[str]) -> int:
    rows: list[tuple[str, dict[str, Any]]] = []
    for manifest in chosen:
        document = _document(packument, manifest)
        found = {field: value for field in fields if (value := _pick(document, field)) is not None}
        if found:
            rows.append((f"{manifest.get('name')}@{manifest.get('version')}", found))
    if session.config.flag("json"):
        plain = [next(iter(found.values())) if len(fields) == 1 else found for _, found in rows]
        if plain:
            session.process.print(json.dumps(plain[0] if len(plain) == 1 else plain, indent=2, ensure_ascii=False))
        return 0
    for name, found in rows:
        for field, value in found.items():
            text = value if isinstance(value, str) else _inspect(value)
            if len(rows) > 1:
                session.process.print(
                    f"{name} {_quoted(value)}" if len(found) == 1 else f"{name} {field} = {_quoted(value)}"
                )
            elif len(found) > 1:
                session.process.print(f"{field} = {_quoted(value)}")
            else:
                session.process.print(text)
    return 0


def _quoted(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else _inspect(value)


def _inspect(value: Any) -> str:
    """A value, near to how Node would show it."""
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, list):
        inner = ", ".join(_inspect(item) for item in value)
        if len(inner) <= 70:
            return f"[ {inner} ]" if value else "[]"
        return "[\n" + ",\n".join(f"  {_indent(_inspect(item))}" for item in value) + "\n]"
    if isinstance(value, dict):
        pairs = [f"{key if key.isidentifier() else repr(key)}: {_inspect(item)}" for key, item in value.items()]
        inner = ", ".join(pairs)
        if len(inner) <= 70:
            return f"{{ {inner} }}" if value else "{}"
        return "{\n" + ",\n".join(f"  {_indent(pair)}" for pair in pairs) + "\n}"
    return str(value)


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")


def _pick(document: Any, field: str) -> Any:
    """`dist.tarball`, `dependencies.x`, `versions[0]`: a part of a document."""
    value = document
    for part in field.replace("[", ".").replace("]", "").split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _summary(session: Session, packument: Packument, manifest: dict[str, Any]) -> int:
    if session.config.flag("json"):
        session.process.print(json.dumps(_document(packument, manifest), indent=2, ensure_ascii=False))
        return 0
    license = manifest.get("license")
    license = license.get("type") if isinstance(license, dict) else license
    needs = _dict(manifest.get("dependencies"))
    say = session.process.print
    count = f"deps: {len(needs) or 'none'} | versions: {len(packument.versions)}"
    say(f"\n{manifest.get('name')}@{manifest.get('version')} | {license or 'Proprietary'} | {count}")
    for key in ("description", "homepage"):
        if isinstance(manifest.get(key), str) and manifest[key]:
            say(manifest[key])
    if manifest.get("deprecated"):
        say(f"\nDEPRECATED - {manifest['deprecated']}")
    words = manifest.get("keywords")
    if isinstance(words, list) and words:
        say(f"\nkeywords: {', '.join(map(str, words))}")
    if isinstance(manifest.get("bin"), dict):
        say(f"\nbin: {', '.join(manifest['bin'])}")
    dist = _dict(manifest.get("dist"))
    say("\ndist")
    for key in ("tarball", "shasum", "integrity"):
        if key in dist:
            say(f".{key}: {dist[key]}")
    if isinstance(dist.get("unpackedSize"), int):
        say(f".unpackedSize: {_size(dist['unpackedSize'])}")
    if needs:
        say("\ndependencies:")
        for name, wanted in sorted(needs.items())[:24]:
            say(f"{name}: {wanted}")
        if len(needs) > 24:
            say(f"(...and {len(needs) - 24} more.)")
    say("\ndist-tags:")
    for tag, version in packument.tags.items():
        say(f"{tag}: {version}")
    return 0


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _size(size: int) -> str:
    if size < 1000:
        return f"{size} B"
    return f"{size / 1000:.1f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


def run_ping(session: Session, words: list[str]) -> int:
    url = session.config.registry_of("")
    session.process.error(f"npm notice PING {url}\n")
    began = session.now()
    registry = Registry(session.process, session.config)
    try:
        registry.fetcher.page(f"{url}-/ping", WHOLE)
    except Missing as missing:
        raise NpmError("E404", f"404 {missing.reason} - GET {missing.url}") from None
    session.process.error(f"npm notice PONG {round((session.now() - began) * 1000)}ms\n")
    return 0


def run_cache(session: Session, words: list[str]) -> int:
    """Run `npm cache`: only packages fetched by npx are cached."""
    if not words or words[0] not in ("clean", "clear", "rm", "verify", "ls", "add"):
        raise NpmError("EUSAGE", "npm cache clean --force | npm cache verify")
    if words[0] == "verify":
        session.process.print(f"Cache verified and compressed ({session.config.cache})\nContent verified: 0 (0 bytes)")
    return 0


def run_audit(session: Session, words: list[str]) -> int:
    session.process.error(
        "npm error code ENOAUDIT\nnpm error npm in this sandbox does not ask for security advisories: "
        "it sends no list of your packages anywhere.\n"
    )
    return 1


def run_fund(session: Session, words: list[str]) -> int:
    """List the installed packages that ask for funding."""
    count = 0
    with session.project() as project:
        root = project.load_actual()
        session.process.print(f"{root.package_name}@{root.version}" if root.version else root.package_name)
        for node in root.descendants():
            funding = node.package.get("funding")
            first = funding[0] if isinstance(funding, list) and funding else funding
            url = first.get("url") if isinstance(first, dict) else first
            if isinstance(url, str) and node.parent is not None:
                count += 1
                session.process.print(f"  {node.package_name}@{node.version}: {url}")
    session.process.print(f"\n{count} package{'' if count == 1 else 's'} looking for funding" if count else "")
    return 0


def run_rebuild(session: Session, words: list[str]) -> int:
    raise NpmError("ENATIVE", "there is nothing to rebuild: native addons are neither compiled nor loaded in a sandbox")
