"""npm's settings: the command line's, the environment's, and those of the .npmrc files, in that order."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin.npm.options import BOOLEANS, Value
from belljar.bin.npm.problems import NpmError
from belljar.kernel.process import Process

PUBLIC: Final = "https://registry.npmjs.org/"
DEFAULTS: Final[dict[str, Value]] = {
    "registry": PUBLIC, "save": True, "save-prefix": "^", "package-lock": True, "tag": "latest", "fund": True,
    "audit": True, "loglevel": "notice", "init-version": "1.0.0", "init-license": "ISC", "bin-links": True,
    "cache": "~/.npm", "git-tag-version": True, "tag-version-prefix": "v", "yes": True, "prefix": "/usr/local",
    "init-type": "commonjs", "script-shell": "/bin/sh", "unicode": True, "depth": "", "progress": True,
}  # fmt: skip
_FILE_MAX: Final = 1 << 20
_CREDENTIALS: Final = ("_authToken", "_auth", "_password", "username")


class Config:
    """The sources of settings, by precedence."""

    def __init__(self, process: Process, given: Mapping[str, Value], *, project: str) -> None:
        self._process = process
        self.home = process.env.get("HOME") or "/"
        environment = {_key(name[11:]): value for name, value in process.env.items() if _is_setting(name)}
        user = str(given.get("userconfig") or environment.get("userconfig") or f"{self.home}/.npmrc")
        self.user_file = user
        self.project_file = f"{project}/.npmrc"
        files = [user] if self.project_file == user else [self.project_file, user]
        self._layers: list[Mapping[str, Value]] = [
            given,
            {name: _typed(name, value) for name, value in environment.items() if value},
            *(read_file(process, path) for path in files),
            read_file(process, "/usr/local/etc/npmrc"),
            DEFAULTS,
        ]

    def get(self, name: str) -> Value | None:
        return next((layer[name] for layer in self._layers if name in layer), None)

    def text(self, name: str) -> str:
        found = self.get(name)
        return (
            "" if found is None or found is True or found is False else found if isinstance(found, str) else found[-1]
        )

    def flag(self, name: str) -> bool:
        found = self.get(name)
        return found is True or found == "true"

    def many(self, name: str) -> list[str]:
        found = self.get(name)
        words = found if isinstance(found, list) else [found] if isinstance(found, str) else []
        return [part for word in words for part in word.split(",") if part]

    @property
    def silent(self) -> bool:
        return self.text("loglevel") == "silent"

    @property
    def omitted(self) -> frozenset[str]:
        """The kinds of dependencies that are left out: dev, optional, peer."""
        omit = set(self.many("omit"))
        if self.get("production") is True or self.text("only").startswith("prod") or self.get("dev") is False:
            omit.add("dev")
        if self.get("optional") is False:
            omit.add("optional")
        if self._process.env.get("NODE_ENV") == "production" and "omit" not in self._layers[0]:
            omit.add("dev")
        return frozenset(omit - set(self.many("include")))

    @property
    def cache(self) -> str:
        path = self.text("cache") or "~/.npm"
        return self.home + path[1:] if path.startswith("~") else path

    def registry_of(self, name: str) -> str:
        """The registry that has a package: its scope's, or the one for all."""
        scope = name.partition("/")[0] if name.startswith("@") else ""
        url = self.text(f"{scope}:registry") if scope else ""
        url = url or self.text("registry") or PUBLIC
        if not re.match(r"https?://[^/\s]", url, re.I):
            raise NpmError(
                "EINVALIDURL", f"Invalid URL of a registry: {url}", "Set one with: npm config set registry URL"
            )
        return url if url.endswith("/") else url + "/"

    def authorization(self, url: str) -> str | None:
        """The credentials that the settings have for a URL: those of the longest path that leads to it."""
        try:
            parts = urlsplit(url)
        except ValueError:
            return None
        path = f"//{parts.netloc.rpartition('@')[2]}{parts.path}"
        while path.startswith("//") and len(path) > 2:
            token = self.text(f"{path}:_authToken")
            if token:
                return f"Bearer {token}"
            basic = self.text(f"{path}:_auth")
            if basic:
                return f"Basic {basic}"
            path = path[:-1] if path.endswith("/") else path[: path.rfind("/") + 1]
        return None

    def listed(self) -> Iterable[tuple[str, Value]]:
        """Every setting that was given, without credentials."""
        found: dict[str, Value] = {}
        for layer in reversed(self._layers[:-1]):
            found.update(layer)
        return sorted((name, "(protected)" if is_secret(name) else value) for name, value in found.items())


def is_secret(name: str) -> bool:
    return name.rpartition(":")[2] in _CREDENTIALS or name in _CREDENTIALS


def _is_setting(name: str) -> bool:
    return name[:11].lower() == "npm_config_" and len(name) > 11


def _key(name: str) -> str:
    return name if name.startswith(("//", "@")) else name[:1] + name[1:].lower().replace("_", "-")


def _typed(name: str, value: str) -> Value:
    if name in BOOLEANS or value in ("true", "false"):
        return value in ("true", "1", "")
    return value


def read_file(process: Process, path: str) -> dict[str, Value]:
    """An .npmrc: `key = value` lines with `${VARIABLE}` from the environment; none if there is no such file."""
    with suppress(SysError):
        if process.fs.stat(path).size <= _FILE_MAX:
            return parse_file(fsdecode(process.read_file(path)), process.env)
    return {}


def parse_file(text: str, env: Mapping[str, str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for line in text.splitlines():
        line = line.strip()
        if not line or line[0] in ";#[":
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        value = re.sub(r"(?<!\\)\$\{([^${}]+?)\??\}", lambda m: env.get(m[1], m[0]), value)
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        if name.endswith("[]"):
            known = found.get(name[:-2])
            found[name[:-2]] = [*(known if isinstance(known, list) else []), value]
        else:
            found[name] = _typed(name, value) if equals else True
    return found


def edit_file(process: Process, path: str, changes: Mapping[str, str | None]) -> None:
    """Set or remove (None) keys of an .npmrc; what else is in it stays."""
    lines: list[str] = []
    with suppress(SysError):
        lines = fsdecode(process.read_file(path)).splitlines()
    left = dict(changes)
    kept: list[str] = []
    for line in lines:
        name = line.partition("=")[0].strip()
        if name not in changes:
            kept.append(line)
        elif name in left and (value := left.pop(name)) is not None:
            kept.append(f"{name}={value}")
    kept += [f"{name}={value}" for name, value in left.items() if value is not None]
    process.write_file(path, "".join(f"{line}\n" for line in kept).encode("utf-8", "surrogateescape"), 0o600)


def find_prefix(process: Process, start: str) -> str:
    """The project a directory belongs to: the nearest above with a package.json or node_modules; else itself."""
    where = start
    while True:
        if where.rpartition("/")[2] == "node_modules":
            where = posixpath.dirname(where)
            continue
        for name in ("package.json", "node_modules"):
            with suppress(SysError):
                process.fs.stat(f"{where}/{name}")
                return where
        if where in ("/", ""):
            return start
        where = posixpath.dirname(where)
