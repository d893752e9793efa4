"""pkg's commands that only look: search, info, list, files, owns, verify."""

from __future__ import annotations

import hashlib
from typing import Any

from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError
from belljar.bin.pkg.catalogs import Market
from belljar.bin.pkg.database import Installed, owner_of, read_installed
from belljar.kernel.process import Process
from belljar.packages.errors import PackageError
from belljar.packages.semver import sort_key


def _one(installed: dict[str, Installed], operands: list[str]) -> Installed:
    if len(operands) != 1:
        raise UsageError("say which package")
    found = installed.get(operands[0])
    if found is None:
        raise PackageError(f"{operands[0]} is not installed: `pkg list` shows what is")
    return found


def list_installed(process: Process, options: Any, operands: list[str]) -> int:
    for record in read_installed(process).values():
        notes = ["pinned"] * record.pinned + ([] if record.requested else ["needed by others"])
        shown = f"  ({', '.join(notes)})" if notes else ""
        process.print(f"{record}{shown}  {record.description}".rstrip())
    return 0


def files(process: Process, options: Any, operands: list[str]) -> int:
    for path in sorted(_one(read_installed(process), operands).files):
        process.print(path)
    return 0


def owns(process: Process, options: Any, operands: list[str]) -> int:
    if not operands:
        raise UsageError("say which files")
    installed, status = read_installed(process), 0
    for operand in operands:
        path = process.absolute(operand)
        found = owner_of(installed.values(), path)
        if found is None:
            process.warn(f"{operand} belongs to no package")
            status = 1
        else:
            process.print(f"{path}: {found}")
    return status


def search(process: Process, options: Any, operands: list[str]) -> int:
    installed = read_installed(process)
    market = Market(process, installed)
    names = sorted({name for catalog in market.catalogs.values() if catalog is not None for name in catalog.packages})
    words, found = [word.lower() for word in operands], False
    for name in names:
        for registry, catalog in market.catalogs.items():
            versions = catalog.packages.get(name, {}) if catalog is not None else {}
            usable = [version for version, offer in versions.items() if not offer.yanked]
            if not usable:
                continue
            newest = max(usable, key=sort_key)
            offer = versions[newest]
            text = f"{name} {offer.description} {' '.join(offer.commands)}".lower()
            if all(word in text for word in words):
                here = installed.get(name)
                note = f"  [installed: {here.version}]" if here is not None else ""
                process.print(f"{name} {newest}  {offer.description}  ({registry}){note}")
                found = True
    if found:
        return 0
    if not market.registries:
        raise PackageError("there is no registry: `pkg registry add URL` adds one, `pkg update` gets what it offers")
    if not any(market.catalogs.values()):
        raise PackageError("nothing is known of what registries offer: `pkg update` gets it")
    raise PackageError(
        f"no package is known that has {' and '.join(operands)}" if operands else "no package is offered"
    )


def info(process: Process, options: Any, operands: list[str]) -> int:
    if len(operands) != 1:
        raise UsageError("say which package")
    name, installed = operands[0], read_installed(process)
    market, here = Market(process, installed), installed.get(operands[0])
    found = False
    if here is not None:
        _facts(process, name, here.version, here.registry, here.description, here.dependencies, here.commands,
               str(here.permissions), f"installed{', pinned' if here.pinned else ''}")  # fmt: skip
        found = True
    for registry, catalog in market.catalogs.items():
        for version, offer in sorted(
            (catalog.packages.get(name, {}) if catalog is not None else {}).items(),
            key=lambda item: sort_key(item[0]),
            reverse=True,
        ):
            if here is not None and (here.version, here.registry) == (version, registry):
                continue
            state = f"withdrawn: {offer.yanked}" if offer.yanked else "offered"
            if found:
                process.print("")
            _facts(process, name, version, registry, offer.description, offer.dependencies, offer.commands,
                   str(offer.permissions), state)  # fmt: skip
            found = True
    if not found:
        raise PackageError(f"there is no package {name}: `pkg search` looks for some")
    return 0


def _facts(
    process: Process,
    name: str,
    version: str,
    registry: str,
    description: str,
    needs: dict[str, str],
    commands: list[str],
    wants: str,
    state: str,
) -> None:
    process.print(f"{name} {version}  ({state}; {registry})")
    lines = [
        ("", description),
        ("commands", ", ".join(commands)),
        ("needs", ", ".join(f"{dep} {wanted}" for dep, wanted in needs.items())),
        ("wants", wants),
    ]
    for label, text in lines:
        if text:
            process.print(f"  {label + ': ' if label else ''}{text}")


def verify(process: Process, options: Any, operands: list[str]) -> int:
    installed = read_installed(process)
    chosen = [_one(installed, [name]) for name in operands] if operands else list(installed.values())
    wrong = 0
    for record in chosen:
        for path, expected in record.files.items():
            state = _state(process, path, expected)
            if state:
                process.print(f"{record}: {path} {state}")
                wrong += 1
        missing = [name for name in record.dependencies if name not in installed]
        for name in missing:
            process.print(f"{record}: needs {name}, which is not installed")
            wrong += 1
    if not wrong:
        process.print(f"{len(chosen)} package{'' if len(chosen) == 1 else 's'}: all is as it was installed")
    return 1 if wrong else 0


def _state(process: Process, path: str, expected: str) -> str:
    try:
        about = process.fs.stat(path, follow=False)
        if about.is_symlink:
            return "" if f"link {process.fs.readlink(path)}" == expected else "was changed"
        if not about.is_regular:
            return "is no file any more"
        digest = hashlib.sha256()
        for chunk in process.chunks(path):
            digest.update(chunk)
    except SysError:
        return "is missing"
    return "" if f"sha256:{digest.hexdigest()}" == expected else "was changed"
