"""Configuration files: read, asked for a key, and written."""

from __future__ import annotations

from io import BytesIO

from dulwich.config import ConfigFile

from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin.git.repository.errors import GitError
from belljar.kernel.process import Process


def read_config(process: Process, path: str) -> ConfigFile:
    try:
        data = process.read_file(path)
    except SysError:
        return ConfigFile()
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
