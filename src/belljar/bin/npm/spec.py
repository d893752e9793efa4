"""Package specs: `name`, `name@range`, `name@tag`, a directory, a tarball, a URL, an alias."""

from __future__ import annotations

import posixpath
import re
from typing import Final, Literal
from urllib.parse import quote, unquote

from belljar.abi.dataclass import dataclass
from belljar.bin.npm.problems import NpmError
from belljar.packages.semver import parse_range, parse_version

Kind = Literal["version", "range", "tag", "directory", "file", "remote", "git", "alias"]

_NAME: Final = re.compile(r"(?:@[A-Za-z0-9~!'()*-][A-Za-z0-9._~!'()*-]*/)?[A-Za-z0-9~!'()*-][A-Za-z0-9._~!'()*-]*")
_NAME_MAX: Final = 214
_RESERVED: Final = frozenset({"node_modules", "favicon.ico"})
_ARCHIVE: Final = re.compile(r"\.(?:tgz|tar\.gz|tar)$", re.I)
_FILE: Final = re.compile(r"(?:\.{1,2}(?:/|$)|~/|/|file:)")
_URL: Final = re.compile(r"(?:git\+|ssh:|git:|https?:)", re.I)
_HOSTED: Final = re.compile(r"(?:(?:github|gitlab|bitbucket|gist):|[A-Za-z0-9_-][\w.-]*/[\w.-]+(?:#.*)?$)")


@dataclass(frozen=True, slots=True)
class Spec:
    kind: Kind
    name: str | None
    """Whose folder it is; None if only the package itself can tell."""
    wanted: str
    """The version, range, tag, path or URL."""
    raw: str
    """As it was written after the name."""
    inner: Spec | None = None
    """The target of an alias."""

    @property
    def registry(self) -> bool:
        return self.kind in ("version", "range", "tag")

    @property
    def target(self) -> Spec:
        return self.inner if self.inner is not None else self

    @property
    def shown(self) -> str:
        return f"{self.name}@{self.raw}" if self.name else self.raw


def is_name(text: str) -> bool:
    """Whether that may be a package's name: then it is also safe as the name of a folder."""
    return len(text) <= _NAME_MAX and _NAME.fullmatch(text) is not None and text.lower() not in _RESERVED


def check_name(text: object) -> str:
    """EINVALIDPACKAGENAME."""
    if not isinstance(text, str) or not is_name(text):
        raise NpmError("EINVALIDPACKAGENAME", f'Invalid package name "{text}" of package "{text}".')
    return text


def parse_spec(text: str, where: str) -> Spec:
    """A command line's word. `where` is what paths are relative to."""
    at = text.find("@", 1)
    name = text[:at] if at > 0 else text
    if _URL.match(text) or (not text.startswith("@") and ("/" in name or _ARCHIVE.search(name) or _FILE.match(name))):
        return resolve_spec(None, text, where)
    if at > 0:
        return resolve_spec(check_name(name), text[at + 1 :], where)
    if is_name(text):
        return resolve_spec(text, "*" if at < 0 else text[at + 1 :], where)
    if text in (".", ".."):
        return resolve_spec(None, text, where)
    raise NpmError("EINVALIDTAGNAME", f'Invalid package name "{text}" of package "{text}".')


def resolve_spec(name: str | None, text: str, where: str) -> Spec:
    """Parse the dependency of `name` on `text`."""
    raw, text = text, text.strip()
    if _FILE.match(text):
        return _local(name, text.removeprefix("file:"), raw, where)
    if text.startswith("npm:"):
        return _alias(name, text.removeprefix("npm:"), raw, where)
    if re.match(r"https?:", text, re.I) and not re.search(r"\.git(?:#|$)", text):
        return Spec("remote", name, text, raw)
    if _URL.match(text) or _HOSTED.match(text):
        return Spec("git", name, text, raw)
    if "/" in text or _ARCHIVE.search(text):
        return _local(name, text, raw, where)
    if text.startswith(("workspace:", "link:", "patch:", "catalog:", "jsr:")):
        kind = text.partition(":")[0]
        raise NpmError("EUNSUPPORTEDPROTOCOL", f'Unsupported URL Type "{kind}:": {text}')
    if parse_version(text) is not None:
        return Spec("version", name, text, raw)
    if parse_range(text) is not None:
        return Spec("range", name, text or "*", raw)
    if quote(text, safe="!'()*-._~") != text:
        raise NpmError(
            "EINVALIDTAGNAME",
            f'Invalid tag name "{text}" of package "{name}@{text}": Tags may not have any characters that '
            "encodeURIComponent encodes.",
        )
    return Spec("tag", name, text, raw)


def _local(name: str | None, text: str, raw: str, where: str) -> Spec:
    path = unquote(text)
    if path.startswith("//"):
        path = "/" + path.lstrip("/")
    full = posixpath.normpath(posixpath.join(where, path))
    return Spec("file" if _ARCHIVE.search(full) else "directory", name, full, raw)


def _alias(name: str | None, text: str, raw: str, where: str) -> Spec:
    inner = parse_spec(text, where)
    if not inner.registry:
        raise NpmError("EUNSUPPORTEDPROTOCOL", "aliases only work for registry deps")
    return Spec("alias", name, inner.wanted, raw, inner)
