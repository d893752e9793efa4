"""package.json and the other JSON files of a project: read with care, written back the way they were."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from typing import Any, Final

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import ENOENT, ENOTDIR
from belljar.abi.errors import SysError
from belljar.bin._kit.cstack import parse_json
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.spec import is_name
from belljar.kernel.process import Process

_FILE_MAX: Final = 64 << 20
_ORDER: Final = {
    char: n for n, char in enumerate("_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz")
}


def collate(text: str) -> tuple[object, ...]:
    """The order of a dictionary, in which npm writes names: punctuation, digits, letters whatever their case."""
    return tuple(_ORDER.get(char, 200 + ord(char[0])) for char in text.lower()), text.swapcase()


@dataclass(slots=True)
class Document:
    """A JSON object in a file, with how it is indented and ends."""

    path: str
    data: dict[str, Any]
    indent: int | str = 2
    newline: str = "\n"
    text: str = ""

    def save(self, process: Process) -> None:
        text = dump(self.data, self.indent) + self.newline
        if text != self.text:
            process.write_file(self.path, text.encode("utf-8", "surrogateescape"), 0o644)
            self.text = text


def dump(data: object, indent: int | str = 2) -> str:
    """As JSON.stringify writes it."""
    return json.dumps(data, indent=indent, ensure_ascii=False)


def load(text: str | bytes) -> Any:
    """JSON, whose strings are text that can be written again. ValueError, RecursionError."""
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    data = parse_json(text)
    return _mended(data) if re.search(r"\\u[dD][89a-fA-F]", text) else data


def _mended(value: Any) -> Any:
    """Replace lone surrogates."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    if isinstance(value, list):
        return [_mended(item) for item in value]
    if isinstance(value, dict):
        return {_mended(key): _mended(item) for key, item in value.items()}
    return value


def read_json(process: Process, path: str) -> dict[str, Any] | None:
    """The object in a file; None if there is no such file. EJSONPARSE."""
    found = read_document(process, path)
    return None if found is None else found.data


def read_document(process: Process, path: str) -> Document | None:
    try:
        if process.fs.stat(path).size > _FILE_MAX:
            raise NpmError("ETOOLARGE", f"{path} is larger than {_FILE_MAX >> 20} MB")
        raw = process.read_file(path)
    except SysError as error:
        if error.errno in (ENOENT, ENOTDIR):
            return None
        raise NpmError("EACCES", f"Could not read {path}: {error.reason}") from None
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    process.budget.charge(len(text) >> 8)
    try:
        data = load(text)
    except RecursionError:
        raise NpmError("EJSONPARSE", f"Failed to parse {path}: it is nested too deeply") from None
    except ValueError as error:
        raise NpmError(
            "EJSONPARSE",
            f"path {path}",
            f"JSON.parse {error} while parsing {posixpath.basename(path)}",
            "JSON.parse Failed to parse JSON data.",
            "JSON.parse Note: package.json must be actual JSON, not just JavaScript.",
        ) from None
    if not isinstance(data, dict):
        raise NpmError("EJSONPARSE", f"path {path}", "JSON.parse it has to be an object.")
    found = re.match(r"\s*\{\n?([ \t]+)", text)
    return Document(path, data, found[1] if found and "\n" in text else 2, "\n" if text.endswith("\n") else "", text)


def bins(package: Mapping[str, Any], name: str) -> dict[str, str]:
    """The commands of a package and the files in it that they run; what could lead outside is left out."""
    found = package.get("bin")
    if isinstance(found, str):
        found = {name.rpartition("/")[2]: found}
    kept: dict[str, str] = {}
    for command, path in found.items() if isinstance(found, dict) else ():
        command = command.replace("\\", "/").rpartition("/")[2]
        if not isinstance(path, str) or command in ("", ".", "..", "node_modules") or "\0" in path + command:
            continue
        inside = posixpath.normpath("/" + path.replace("\\", "/")).lstrip("/")
        if inside:
            kept[command] = inside
    return kept


def nice(value: Any, first: tuple[str, ...] = ()) -> Any:
    """An object in the order of npm's lockfiles: plain values before objects, some keys first, then by name."""
    if not isinstance(value, dict):
        return value

    def rank(item: tuple[str, Any]) -> tuple[object, ...]:
        key, found = item
        return isinstance(found, dict), first.index(key) if key in first else len(first), collate(key)

    return {key: nice(found, first) for key, found in sorted(value.items(), key=rank)}


def default_name(folder: str) -> str:
    """A package name made from a directory's."""
    base = posixpath.basename(folder.rstrip("/")).lower().replace(" ", "-").lstrip("._")
    return base if is_name(base) else ""
