"""`pip list`, `freeze`, `show`, `check` and `uninstall`: what is installed, and taking it away."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from packaging.utils import canonicalize_name

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import count, flag, many, value
from belljar.bin._kit.cstack import parse_json
from belljar.bin.pip import site
from belljar.bin.pip.environment import Distribution, find_environment, installed
from belljar.bin.pip.offered import IndexOptions, make_finder
from belljar.bin.pip.problems import PipError
from belljar.bin.pip.requirements import Asked, read_file
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class ListOptions:
    format: str = value("--format", "columns, freeze or json", metavar="format", default="columns")
    editable: bool = flag("-e", "--editable", "list editable projects")
    local: bool = flag("-l", "--local", "leave out what comes with the interpreter")
    user: bool = flag("--user", "(accepted)")
    not_required: bool = flag("--not-required", "leave out what other packages need")
    outdated: bool = flag("-o", "--outdated", "list outdated packages")
    quiet: int = count("-q", "--quiet", "say less")
    excluded: tuple[str, ...] = many("--exclude", "leave out a package", metavar="package")
    accepted: int = count(
        "--disable-pip-version-check", "--no-color", "--no-input", "-v", "--verbose", "--all", "(accepted)"
    )


@dataclass(frozen=True, slots=True)
class ShowOptions:
    files: bool = flag("-f", "--files", "show the full list of installed files")
    quiet: int = count("-q", "--quiet", "say less")
    accepted: int = count("--disable-pip-version-check", "--no-color", "-v", "--verbose", "(accepted)")


@dataclass(frozen=True, slots=True)
class UninstallOptions:
    yes: bool = flag("-y", "--yes", "don't ask for confirmation")
    requirements: tuple[str, ...] = many("-r", "--requirement", "uninstall what a file lists", metavar="file")
    quiet: int = count("-q", "--quiet", "say less")
    accepted: int = count(
        "--break-system-packages", "--disable-pip-version-check", "-v", "--verbose", "--no-input", "(accepted)"
    )


def run_list(process: Process, options: ListOptions, operands: list[str]) -> int:
    found = _chosen(process, options)
    if options.outdated:
        return _outdated(process, options, [one for one in found if one.info is not None])
    match options.format:
        case "json":
            process.print(json.dumps([{"name": d.name, "version": str(d.version)} for d in found]))
        case "freeze":
            for distribution in found:
                process.print(f"{distribution.name}=={distribution.version}")
        case "columns":
            _columns(process, found)
        case other:
            raise PipError(
                f"option --format: invalid choice: {other!r} (choose from 'columns', 'freeze', 'json')", status=2
            )
    return 0


def _outdated(process: Process, options: ListOptions, found: list[Distribution]) -> int:
    """Installed packages of which the index has a newer version that runs here."""
    finder = make_finder(process, IndexOptions(), "list")
    rows: list[tuple[str, str, str]] = []
    for one in found:
        offers, _ = finder.offers(one.key)
        newest = max(
            (o.version for o in offers if not o.version.is_prerelease and not o.link.yanked), default=one.version
        )
        if newest > one.version:
            rows.append((one.name, str(one.version), str(newest)))
    if options.format == "json":
        process.print(
            json.dumps([{"name": n, "version": v, "latest_version": w, "latest_filetype": "wheel"} for n, v, w in rows])
        )
    elif rows:
        table = [("Package", "Version", "Latest", "Type"), *((*row, "wheel") for row in rows)]
        widths = [max(len(row[column]) for row in table) for column in range(4)]
        table.insert(1, ("-" * widths[0], "-" * widths[1], "-" * widths[2], "-" * widths[3]))
        for row in table:
            process.print(" ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def run_freeze(process: Process, options: ListOptions, operands: list[str]) -> int:
    _freeze(process, _chosen(process, options, bundled=False))
    return 0


def _chosen(process: Process, options: ListOptions, *, bundled: bool = True) -> list[Distribution]:
    everything = installed(process, find_environment(process), bundled=bundled and not options.local)
    needed = (
        {canonicalize_name(r.name) for d in everything.values() for r in d.requires()}
        if options.not_required
        else set()
    )
    left_out = {canonicalize_name(name) for name in options.excluded}
    return [
        everything[key]
        for key in sorted(everything)
        if key not in needed
        and key not in left_out
        and not (options.editable and _editable(_origin(process, everything[key])) is None)
    ]


def _origin(process: Process, distribution: Distribution) -> dict[str, Any]:
    """What direct_url.json says of one that did not come from an index; else nothing."""
    try:
        origin = parse_json(process.read_file(f"{distribution.info}/direct_url.json"))
    except (SysError, ValueError, RecursionError):
        return {}
    return origin if isinstance(origin, dict) else {}


def _editable(origin: dict[str, Any]) -> str | None:
    """The directory of an editable project."""
    if not (origin.get("dir_info") or {}).get("editable"):
        return None
    return str(origin.get("url", "")).removeprefix("file://")


def _freeze(process: Process, found: Iterable[Distribution]) -> None:
    for distribution in found:
        origin = _origin(process, distribution)
        editable = _editable(origin)
        if editable is not None:
            process.print(f"-e {editable}")
        elif "url" in origin:
            digest = (origin.get("archive_info") or {}).get("hash")
            mark = f"#{digest}" if digest else ""
            process.print(f"{distribution.name} @ {origin['url']}{mark}")
        else:
            process.print(f"{distribution.name}=={distribution.version}")


def _columns(process: Process, found: list[Distribution]) -> None:
    if not found:
        return
    rows = [("Package", "Version"), *((d.name, str(d.version)) for d in found)]
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    rows.insert(1, ("-" * first, "-" * second))
    for name, version in rows:
        process.print(f"{name:<{first}} {version}".rstrip())


def run_show(process: Process, options: ShowOptions, operands: list[str]) -> int:
    if not operands:
        raise PipError("ERROR: Please provide a package name or names.", status=1)
    everything = installed(process, find_environment(process))
    missing = [name for name in operands if canonicalize_name(name) not in everything]
    if missing:
        process.stdout.flush()
        process.error(f"WARNING: Package(s) not found: {', '.join(missing)}\n")
    first = True
    for name in operands:
        distribution = everything.get(canonicalize_name(name))
        if distribution is None:
            continue
        if not first:
            process.print("---")
        first = False
        _show(process, distribution, everything.values(), options)
    return 1 if first else 0


def _show(process: Process, shown: Distribution, everything: Iterable[Distribution], options: ShowOptions) -> None:
    metadata = shown.metadata
    urls = metadata.get("project_urls", {})
    home = metadata.get("home_page") or next((u for k, u in urls.items() if k.lower() in ("homepage", "home")), "")
    by = sorted(d.name for d in everything if any(canonicalize_name(r.name) == shown.key for r in d.requires()))
    process.print(f"Name: {shown.name}")
    process.print(f"Version: {shown.version}")
    process.print(f"Summary: {metadata.get('summary', '')}")
    process.print(f"Home-page: {home}")
    process.print(f"Author: {metadata.get('author', '')}")
    process.print(f"Author-email: {metadata.get('author_email', '')}")
    process.print(f"License: {metadata.get('license') or metadata.get('license_expression') or ''}")
    process.print(f"Location: {shown.location}")
    editable = _editable(_origin(process, shown))
    if editable is not None:
        process.print(f"Editable project location: {editable}")
    process.print(f"Requires: {', '.join(sorted({r.name for r in shown.requires()}))}")
    process.print(f"Required-by: {', '.join(by)}")
    if options.files:
        process.print("Files:")
        for path in sorted(site.files_of(process, shown)) or ["(comes with the interpreter)"]:
            process.print(f"  {path}")


def run_check(process: Process, options: ShowOptions, operands: list[str]) -> int:
    everything = installed(process, find_environment(process))
    broken = False
    for key in sorted(everything):
        distribution = everything[key]
        if distribution.info is None:
            continue
        for need in distribution.requires():
            other = everything.get(canonicalize_name(need.name))
            if other is None:
                process.print(
                    f"{distribution.name} {distribution.version} requires {need.name}, which is not installed."
                )
            elif not need.specifier.contains(other.version, prereleases=True):
                process.print(
                    f"{distribution.name} {distribution.version} has requirement {need.name}{need.specifier}, "
                    f"but you have {other.name} {other.version}."
                )
            else:
                continue
            broken = True
    if not broken:
        process.print("No broken requirements found.")
    return 1 if broken else 0


def run_uninstall(process: Process, options: UninstallOptions, operands: list[str]) -> int:
    names = list(operands)
    for file in options.requirements:
        asked = Asked()
        read_file(process, file, asked)
        names += [wanted.requirement.name for wanted in asked.wanted if wanted.requirement is not None]
    if not names:
        raise PipError('You must give at least one requirement to uninstall (see "pip help uninstall")')
    environment = find_environment(process)
    everything = installed(process, environment)
    for name in names:
        distribution = everything.get(canonicalize_name(name))
        if distribution is None:
            process.stdout.flush()
            process.error(f"WARNING: Skipping {name} as it is not installed.\n")
            continue
        if distribution.info is None or not distribution.location.startswith(environment.prefix):
            where = "comes with the interpreter" if distribution.info is None else "is outside of this environment"
            process.print(f"Not uninstalling {distribution.name}: it {where}")
            continue
        if not options.quiet:
            process.print(f"Found existing installation: {distribution.name} {distribution.version}")
            process.print(f"Uninstalling {distribution.name}-{distribution.version}:")
        if not options.yes:
            process.print("  Would remove:")
            for path in sorted(site.removable(process, distribution, environment.prefix)):
                process.print(f"    {path}")
            process.stdout.flush()
            if not _proceed(process):
                continue
        site.remove(process, distribution, environment.prefix)
        if not options.quiet:
            process.print(f"  Successfully uninstalled {distribution.name}-{distribution.version}")
    return 0


def _proceed(process: Process) -> bool:
    process.print("Proceed (Y/n)? ", end="")
    process.stdout.flush()
    answer = b""
    while (char := process.read(0, 1)) != b"\n":
        if not char:
            raise PipError("there is nobody to answer: use pip uninstall -y")
        answer += char
    return answer.strip().lower() in (b"", b"y", b"yes")
