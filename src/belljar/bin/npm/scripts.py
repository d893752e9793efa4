"""Scripts of a package.json, run as commands of the sandbox with the environment npm gives them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY
from belljar.bin.npm.config import PUBLIC, Config
from belljar.bin.npm.problems import NpmError
from belljar.bin.npm.registry import NODE_VERSION
from belljar.kernel.process import Process

VERSION: Final = "11.6.2"
"""The npm whose command line and words these are."""
_VALUES_MAX: Final = 500


def package_values(package: Mapping[str, Any]) -> dict[str, str]:
    """npm_package_*: what scripts are told of their package."""
    found: dict[str, str] = {}
    kept = {key: package[key] for key in ("name", "version", "config", "engines", "bin") if key in package}
    for name, value in _flat(kept, "npm_package_", 0):
        if len(found) < _VALUES_MAX:
            found[name] = value
    return found


def _flat(value: Any, name: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and depth < 20:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}_{key}" if depth else f"{name}{key}", depth + 1)
    elif isinstance(value, list) and depth < 20:
        for index, inner in enumerate(value):
            yield from _flat(inner, f"{name}_{index}", depth + 1)
    elif value is None or value is False:
        yield name, ""
    elif not isinstance(value, (dict, list)) and "\0" not in str(value) + name and "=" not in name:
        yield name, "true" if value is True else str(value)


def search_path(folder: str, before: str, first: tuple[str, ...] = ()) -> str:
    """PATH with the node_modules/.bin of a directory and of all above it."""
    paths = list(first)
    where = folder
    while True:
        paths.append(posixpath.join(where, "node_modules/.bin"))
        if where in ("/", ""):
            break
        where = posixpath.dirname(where)
    return ":".join([*paths, before])


def environment(
    process: Process, config: Config, folder: str, package: Mapping[str, Any], event: str, command: str, name: str,
    first: tuple[str, ...] = (),
) -> dict[str, str]:  # fmt: skip
    env = dict(process.env)
    where = env.get("INIT_CWD") or process.fs.getcwd()
    env.update(package_values(package))
    env.update(
        npm_package_json=f"{folder}/package.json",
        npm_lifecycle_event=event,
        npm_lifecycle_script=command,
        npm_command=name,
        npm_execpath="/usr/bin/npm",
        npm_node_execpath="/usr/bin/node",
        npm_config_user_agent=f"npm/{VERSION} node/v{NODE_VERSION} linux x64 workspaces/false",
        npm_config_local_prefix=folder,
        npm_config_cache=config.cache,
        NODE="/usr/bin/node",
        INIT_CWD=where,
        PATH=search_path(folder, env.get("PATH", ""), first),
    )
    if config.registry_of("") != PUBLIC:
        env["npm_config_registry"] = config.registry_of("")
    return env


def quoted(args: list[str]) -> str:
    """Arguments as npm appends them to a script's text."""
    return "".join(f" {_quote(arg)}" for arg in args)


def _quote(text: str) -> str:
    if not text:
        return "''"
    if not re.search(r"[\t\n\r \"#$&'()*;<>?\\`|~]", text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"


class Runner:
    """Runs the scripts of one package."""

    def __init__(
        self,
        process: Process,
        config: Config,
        folder: str,
        package: Mapping[str, Any],
        name: str,
        first: tuple[str, ...] = (),
    ) -> None:
        self._process = process
        self._config = config
        self._folder = folder
        self._package = package
        self._name = name
        self._first = first

    @property
    def scripts(self) -> Mapping[str, str]:
        found = self._package.get("scripts")
        return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}

    def banner(self, event: str, command: str, args: list[str]) -> None:
        name, version = self._package.get("name"), self._package.get("version")
        shown = f"{name}@{version}" if name and version else name or ""
        if not self._config.silent:
            text = command.strip().replace("\n", "\n> ")
            self._process.print(
                f"\n> {shown + ' ' if shown else ''}{event}\n> {text}{' ' + ' '.join(args) if args else ''}\n"
            )
            self._process.stdout.flush()

    def run(self, event: str, command: str, args: list[str], *, capture: bool = False) -> tuple[int, bytes]:
        """Run one script; its status (128 + signal), and with `capture` what it wrote instead of it being shown."""
        process = self._process
        line = command + quoted(args)
        env = environment(process, self._config, self._folder, self._package, event, command, self._name, self._first)
        shell = self._config.text("script-shell") or "/bin/sh"
        process.stdout.flush()
        if not capture:
            return self._wait(self._start([shell, "-c", line], env)), b""
        reading, writing = process.pipe(cloexec=True)
        null = process.open("/dev/null", O_RDONLY)
        try:
            out = process.fds[writing]
            child = self._start([shell, "-c", line], env, stdin=process.fds[null], stdout=out, stderr=out)
        finally:
            process.close(writing)
            process.close(null)
        parts, total = [], 0
        while data := process.read(reading):
            total += len(data)
            if total < 1 << 20:
                parts.append(data)
        process.close(reading)
        return self._wait(child), b"".join(parts)

    def _start(self, argv: list[str], env: dict[str, str], **files: Any) -> Process:
        process = self._process
        home = process.fs.cwd
        try:
            process.fs.chdir(self._folder)
            return process.spawn(argv, env=env, **files)
        except SysError as error:
            raise NpmError("ENOENT", f"could not run {argv[0]}: {error.reason}") from None
        finally:
            process.fs.cwd = home

    def _wait(self, child: Process) -> int:
        status = self._process.wait_for(child)
        return 128 + status.signal if status.signal else status.code
