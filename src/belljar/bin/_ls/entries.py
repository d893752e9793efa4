"""The files of a listing: which of a directory's names are shown, what is known of each, and their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from belljar.abi.dataclass import dataclass
from belljar.abi.flags import S_IFDIR, S_IFLNK
from belljar.abi.paths import fsencode
from belljar.abi.records import Dirent, Stat
from belljar.bin._kit.quoting import quote
from belljar.bin._kit.versions import version_key
from belljar.bin._ls.options import Settings
from belljar.libc.pattern import compile_pattern
from belljar.libc.quotearg import c_escape, hide, shell_escape
from belljar.libc.width import display_width


@dataclass(slots=True)
class Entry:
    """One line of a listing."""

    name: str
    kind: int
    stat: Stat | None = None
    target: str | None = None
    """Target of a symlink, in a long listing."""
    target_stat: Stat | None = None
    ok: bool = True
    """Off for a symlink that leads nowhere."""
    shown: str = ""
    quoted: bool = False

    @property
    def is_dir(self) -> bool:
        return self.kind == S_IFDIR

    @property
    def leads_to_dir(self) -> bool:
        return self.is_dir or (self.target_stat is not None and self.target_stat.is_dir)


def visible(settings: Settings, entries: Iterable[Dirent]) -> list[Dirent]:
    """Filter out the names that the options hide."""
    if settings.all is None:
        entries = [entry for entry in entries if entry.name[0] != "."]
        for pattern in settings.hide:
            matches = compile_pattern(pattern).matches
            entries = [entry for entry in entries if not matches(entry.name)]
    for pattern in settings.ignore:
        matches = compile_pattern(pattern).matches
        hidden = not pattern.startswith(".")
        entries = [e for e in entries if (hidden and e.name[0] == ".") or not matches(e.name)]
    return list(entries)


def arrange(settings: Settings, entries: list[Entry]) -> list[Entry]:
    """In the order asked for."""
    if settings.sort != "none":
        key = _key(settings)
        entries.sort(key=key, reverse=settings.reverse)
    if settings.directories_first and settings.sort != "none":
        entries.sort(key=lambda entry: not entry.leads_to_dir)
    return entries


def _key(settings: Settings) -> Callable[[Entry], Any]:
    match settings.sort:
        case "time":
            when = settings.time if settings.time != "birth" else "mtime"
            return lambda e: (-getattr(e.stat, when) if e.stat else 0, e.name)
        case "size":
            return lambda e: (-e.stat.size if e.stat else 0, e.name)
        case "extension":
            return lambda e: (_extension(e.name), e.name)
        case "version":
            return lambda e: (version_key(fsencode(e.name)), e.name)
        case "width":
            return lambda e: (display_width(render_name(settings, e.name)), e.name)
    return lambda e: e.name


def _extension(name: str) -> str:
    return name[dot:] if (dot := name.rfind(".")) >= 0 else ""


def render_name(settings: Settings, name: str) -> str:
    """A name in the quoting style asked for."""
    utf8 = settings.utf8
    match settings.quoting:
        case "literal":
            return hide(name, utf8=utf8) if settings.hide_control else name
        case "shell":
            text = shell_escape(name, utf8=utf8, escapes=False)
        case "shell-always":
            text = shell_escape(name, always=True, utf8=utf8, escapes=False)
        case "shell-escape":
            return shell_escape(name, utf8=utf8)
        case "shell-escape-always":
            return shell_escape(name, always=True, utf8=utf8)
        case "c":
            return '"' + c_escape(name, utf8=utf8, also='"') + '"'
        case "c-maybe":
            text = c_escape(name, utf8=utf8, also='"')
            return name if text == name else f'"{text}"'
        case "escape":
            return c_escape(name, utf8=utf8, also=" ")
        case "clocale":
            return f"\u2018{c_escape(name)}\u2019" if utf8 else '"' + c_escape(name, utf8=False, also='"') + '"'
        case _:
            return quote(name, {"LC_ALL": "C.UTF-8" if utf8 else "C"})
    return hide(text, utf8=utf8) if settings.hide_control else text


def is_link(entry: Entry) -> bool:
    return entry.kind == S_IFLNK
