"""Remotes by name and by URL."""

from __future__ import annotations

import re

from belljar.abi.paths import fsdecode
from belljar.bin.git.repository.bundles import BundleRemote, is_bundle
from belljar.bin.git.repository.config import config_paths, config_values, read_config
from belljar.bin.git.repository.credentials import Settings
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.remote import Remote, open_local
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.web_remote import WebRemote, without_secrets
from belljar.kernel.process import Process

FETCH_SPEC = "+refs/heads/*:refs/remotes/{name}/*"


def is_web(url: str) -> bool:
    return re.match(r"https?://", url, re.I) is not None


def open_remote(process: Process, url: str, settings: Settings) -> Remote:
    """Open the remote at a URL or path."""
    if is_web(url):
        return WebRemote(process, url, settings)
    path = url.removeprefix("file://")
    if "://" in path or (":" in path and "/" not in path.partition(":")[0]):
        raise GitError(
            f"unable to access '{url}': git in this sandbox reaches repositories in its own files, and over https"
        )
    if is_bundle(process, path):
        return BundleRemote(process, path)
    return open_local(process, url)


def parse_depth(text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        raise GitError(f"depth {text} is not a positive number")
    return int(text)


def user_config(process: Process, settings: list[tuple[str, str]], key: str) -> list[str]:
    """Return the values of a key configured outside any repository."""
    found: list[str] = []
    for _, path in config_paths(process):
        found += config_values(read_config(process, path), key)
    return found + [text for name, text in settings if name.lower() == key.lower()]


def remotes(repo: Repository) -> dict[str, str]:
    config = read_config(repo.process, f"{repo.common}/config")
    found = {}
    for section in config.sections():
        if section[0] == b"remote" and len(section) > 1:
            urls = config_values(config, f"remote.{fsdecode(section[1])}.url")
            found[fsdecode(section[1])] = urls[0] if urls else ""
    return dict(sorted(found.items()))


def shown_url(url: str) -> str:
    """Return where something was fetched from, as messages and merges say it."""
    return without_secrets(url).rstrip("/").removesuffix(".git")
