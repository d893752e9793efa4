"""Configuration files: read, asked for a key, and written."""

from __future__ import annotations

from io import BytesIO

from dulwich.config import ConfigFile

from belljar.abi.paths import fsencode
from belljar.bin.git.repository.errors import GitError
from belljar.kernel.process import Process


def read_config(process: Process, path: str) -> ConfigFile:
    data = process.try_read(path) or b""
    try:
        return ConfigFile.from_file(BytesIO(data))
    except ValueError as error:
        raise GitError(f"bad config line in file {path}: {error}") from None


def write_config(process: Process, path: str, config: ConfigFile) -> None:
    out = BytesIO()
    config.write_to_file(out)
    process.write_file(path, out.getvalue())


def split_key(key: str) -> tuple[tuple[bytes, ...], bytes]:
    section, _, rest = key.partition(".")
    middle, dot, name = rest.rpartition(".")
    parts = (fsencode(section.lower()), fsencode(middle)) if dot else (fsencode(section.lower()),)
    return parts, fsencode(name)


def config_values(config: ConfigFile, key: str) -> list[str]:
    section, name = split_key(key)
    try:
        return [value.decode("utf-8", "surrogateescape") for value in config.get_multivar(section, name)]
    except KeyError:
        return []


def config_paths(process: Process, common: str | None = None) -> list[tuple[str, str]]:
    """The files that are read, the most general first, each with its scope; `common` is a repository's folder."""
    env = process.env
    home = env.get("HOME", "/")
    found: list[tuple[str, str]] = []
    if env.get("GIT_CONFIG_NOSYSTEM", "").lower() not in ("1", "true", "yes", "on"):
        found.append(("system", env.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig")))
    if "GIT_CONFIG_GLOBAL" in env:
        found.append(("global", env["GIT_CONFIG_GLOBAL"]))
    else:
        folder = env.get("XDG_CONFIG_HOME") or f"{home}/.config"
        found += [("global", f"{folder}/git/config"), ("global", f"{home}/.gitconfig")]
    if common is not None:
        found.append(("local", f"{common}/config"))
    return found


def settings_from(process: Process) -> list[tuple[str, str]]:
    """The settings of GIT_CONFIG_COUNT, GIT_CONFIG_KEY_0, GIT_CONFIG_VALUE_0 and so on."""
    count = process.env.get("GIT_CONFIG_COUNT", "")
    if not count.isdecimal():
        return []
    rows = (
        (process.env.get(f"GIT_CONFIG_KEY_{n}"), process.env.get(f"GIT_CONFIG_VALUE_{n}"))
        for n in range(int(count[:4]))
    )
    return [(key, text) for key, text in rows if key is not None and text is not None]
