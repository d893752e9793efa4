"""Requirements on the command line and in files, constraints, hashes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from packaging.requirements import InvalidRequirement, Requirement

from belljar.abi.dataclass import dataclass, field, replace
from belljar.abi.errors import SysError
from belljar.bin.pip.environment import normal_path
from belljar.bin.pip.fetch import NotFound, fetch
from belljar.bin.pip.problems import PipError
from belljar.kernel.process import Process

_VARIABLE: Final = re.compile(r"\$\{([A-Z0-9_]+)\}")
_DEPTH: Final = 20
_VERSION_CONTROL: Final = ("git+", "hg+", "svn+", "bzr+")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One requirement, and where it was given."""

    text: str
    requirement: Requirement | None
    """None until the file's own metadata says which package it is."""
    source: str = ""
    """`(from -r requirements.txt (line 1))`, or empty."""
    path: str | None = None
    """A local archive or directory."""
    url: str | None = None
    """An archive that was named by its URL."""
    editable: bool = False
    hashes: tuple[str, ...] = ()
    """`sha256:...` of the files that may be used."""
    extras: frozenset[str] = frozenset()


@dataclass(slots=True)
class Asked:
    """Everything a command line asks for."""

    wanted: list[Wanted] = field(default_factory=list)
    constraints: list[Wanted] = field(default_factory=list)
    index_url: str | None = None
    extra_index_urls: list[str] = field(default_factory=list)
    find_links: list[str] = field(default_factory=list)
    no_index: bool = False
    pre: bool = False
    require_hashes: bool = False


def parse_wanted(process: Process, text: str, base: str, *, source: str = "", editable: bool = False) -> Wanted:
    """A requirement as pip takes it: a specifier, a local path, a URL. PipError."""
    bare, bracket, extras = text.partition("[")
    path = _local_path(process, bare if bracket and extras.endswith("]") else text, base)
    if path is not None:
        names = frozenset(extras[:-1].replace(" ", "").split(",")) if bracket else frozenset()
        return Wanted(text, None, source, path=path, editable=editable, extras=names)
    if editable:
        raise PipError(
            f"{text} is not a valid editable requirement. It should be a path to a local project "
            "(here, version control URLs are not supported)."
        )
    if text.startswith(_VERSION_CONTROL):
        raise PipError(
            f"{text}: installing from version control is not supported here",
            "Clone it with git and install the directory: pip install ./DIRECTORY",
        )
    if re.match(r"(https?|file)://", text):
        return _by_url(text, source)
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        where = f" {source}" if source else ""
        raise PipError(f"Invalid requirement: {text!r}{where}: {str(error).splitlines()[0]}") from None
    if requirement.url is not None:
        return replace(_by_url(requirement.url, source), text=text, requirement=requirement)
    return Wanted(text, requirement, source, extras=frozenset(requirement.extras))


def _by_url(url: str, source: str) -> Wanted:
    if url.startswith(_VERSION_CONTROL):
        raise PipError(f"{url}: installing from version control is not supported here")
    plain, fragment = urldefrag(url)
    found = re.search(r"(?:^|&)(sha\d+)=([0-9a-fA-F]+)", fragment)
    hashes = (f"{found[1]}:{found[2].lower()}",) if found else ()
    if plain.startswith("file://"):
        return Wanted(url, None, source, path=unquote(urlsplit(plain).path), hashes=hashes)
    return Wanted(url, None, source, url=plain, hashes=hashes)


def _local_path(process: Process, text: str, base: str) -> str | None:
    """The path, if the text names a directory or an archive rather than a project."""
    looks = "/" in text or text.startswith(".") or text.endswith((".whl", ".tar.gz", ".zip"))
    if not looks or "://" in text or " @ " in text:
        return None
    path = normal_path(text if text.startswith("/") else f"{base}/{text}")
    try:
        is_dir = process.fs.stat(path).is_dir
    except SysError:
        if text.startswith((".", "/")) or text.endswith(".whl"):
            raise PipError(
                f"Invalid requirement: {text!r}: Expected package name at the start of dependency specifier",
                f"Hint: It looks like a path. File {text!r} does not exist.",
            ) from None
        return None
    if is_dir and "/" not in text and not text.startswith("."):
        return None
    return path


def read_file(process: Process, name: str, asked: Asked, *, constraint: bool = False, depth: int = 0) -> None:
    """Add what a requirements file says. PipError."""
    if depth > _DEPTH:
        raise PipError(f"requirements files include each other too deeply: {name}")
    remote = name.startswith(("http://", "https://"))
    base = process.fs.getcwd() if remote else process.absolute(name).rpartition("/")[0] or "/"
    flag = "-c" if constraint else "-r"
    for number, line in _lines(_contents(process, name)):
        text = _VARIABLE.sub(lambda found: process.env.get(found[1], found[0]), line)
        source = f"(from {flag} {name} (line {number}))"
        if text.startswith("-"):
            _option(process, text, asked, (name, base, source), constraint, depth)
            continue
        spec, hashes = _hashes(text)
        wanted = replace(parse_wanted(process, spec, base, source=source), hashes=hashes)
        (asked.constraints if constraint else asked.wanted).append(wanted)


def _contents(process: Process, name: str) -> str:
    try:
        if name.startswith(("http://", "https://")):
            with fetch(process, name) as response:
                return response.text().decode("utf-8", "replace")
        return process.read_file(name).decode("utf-8", "replace")
    except (SysError, NotFound) as error:
        reason = error.reason if isinstance(error, SysError) else "Not Found"
        raise PipError(f"Could not open requirements file: [Errno 2] {reason}: {name!r}") from None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines: continued ones joined, comments gone; each with the number it begins at."""
    held, began = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        began = began if held else number
        if raw.endswith("\\"):
            held += raw[:-1].strip() + " "
            continue
        line = re.sub(r"(^|\s+)#.*$", "", held + raw.strip()).strip()
        held = ""
        if line:
            yield began, line
    if held.strip():
        yield began, held.strip()


def _hashes(text: str) -> tuple[str, tuple[str, ...]]:
    found = tuple(re.findall(r"--hash[= ](\S+)", text))
    spec = re.sub(r"\s+--hash[= ]\S+", "", text).strip()
    spec = re.sub(r"\s+--(config-settings|global-option)[= ]\S+", "", spec)
    for value in found:
        if not re.fullmatch(r"(sha256|sha384|sha512):[0-9a-fA-F]+", value):
            raise PipError(
                f"Arguments to --hash must be a hash name followed by a value, like --hash=sha256:abcde...: {value}"
            )
    return spec, tuple(value.lower() for value in found)


def _option(
    process: Process, text: str, asked: Asked, where: tuple[str, str, str], constraint: bool, depth: int
) -> None:
    file, base, source = where
    words = shlex.split(text)
    name, equals, value = words[0].partition("=")
    if not equals:
        short = re.match(r"(-[rceif])(\S+)$", words[0])
        name, value = (short[1], short[2]) if short else (words[0], words[1] if len(words) > 1 else "")
    match name:
        case "-r" | "--requirement" | "-c" | "--constraint":
            remote = file.startswith(("http://", "https://"))
            inner = urljoin(file, value) if remote else value if value.startswith("/") else f"{base}/{value}"
            nested = constraint or name in ("-c", "--constraint")
            read_file(process, inner, asked, constraint=nested, depth=depth + 1)
        case "-e" | "--editable":
            asked.wanted.append(parse_wanted(process, value, base, source=source, editable=True))
        case "-i" | "--index-url":
            asked.index_url = value
        case "--extra-index-url":
            asked.extra_index_urls.append(value)
        case "-f" | "--find-links":
            asked.find_links.append(value)
        case "--no-index":
            asked.no_index = True
        case "--pre":
            asked.pre = True
        case "--require-hashes":
            asked.require_hashes = True
        case "--trusted-host" | "--prefer-binary" | "--only-binary" | "--no-binary" | "--use-feature":
            return
        case _:
            raise PipError(f"{source[1:-1]}: no such option: {name}")
