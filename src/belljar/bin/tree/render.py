"""Prints a tree: as text with lines, as JSON, or as XML."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from belljar.abi.flags import S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, S_IFSOCK
from belljar.abi.paths import fsencode
from belljar.abi.records import NANO, Stat
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.locale import is_utf8
from belljar.bin._kit.modes import render_mode
from belljar.bin._kit.users import Accounts
from belljar.bin._ls.colors import BadColors, Colors
from belljar.bin.tree.scan import Branch
from belljar.kernel.process import Process
from belljar.libc.quote import is_printable

if TYPE_CHECKING:
    from belljar.bin.tree import Options

_LINES = ("\u2502\u00a0\u00a0 ", "\u251c\u2500\u2500 ", "\u2514\u2500\u2500 ")
_PLAIN_LINES = ("|   ", "|-- ", "`-- ")
_INDICATORS = {S_IFDIR: "/", S_IFSOCK: "=", S_IFIFO: "|"}
_HALF_YEAR = 31556952 // 2 * NANO
_KINDS = {S_IFDIR: "directory", S_IFREG: "file", S_IFLNK: "link", S_IFIFO: "fifo", S_IFSOCK: "socket"}


class Writer:
    """The base of the three formats: the counts, and the columns of a file."""

    def __init__(self, process: Process, options: Options, emit: Callable[[str], None]) -> None:
        self.process = process
        self.options = options
        self.emit = emit
        self.directories = self.files = self.size = 0
        self._accounts = Accounts(process)
        self._zone = zone_of(process.env)
        self._now = process.kernel.now()

    def start(self) -> None:
        return

    def tree(self, root: Branch) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        raise NotImplementedError

    def count(self, branch: Branch) -> None:
        self.size += branch.size
        if branch.counts_as_directory:
            self.directories += 1
        else:
            self.files += 1

    def count_root(self, root: Branch) -> None:
        if root.stat is not None and not root.stat.is_dir:
            self.files += 1
        elif root.children or "filelimit" in root.error:
            self.directories += 1

    def bytes_of(self, branch: Branch) -> int:
        if self.options.usage:
            return branch.size
        return branch.stat.size if branch.stat is not None else 0

    def owner(self, stat: Stat) -> str:
        return self._accounts.user_name(stat.uid) or str(stat.uid)

    def group(self, stat: Stat) -> str:
        return self._accounts.group_name(stat.gid) or str(stat.gid)

    def time(self, stat: Stat) -> str:
        ns = stat.ctime if self.options.sort == "ctime" else stat.mtime
        template = self.options.time_format
        if template is None:
            template = "%b %e %H:%M" if self._now - _HALF_YEAR < ns <= self._now else "%b %e  %Y"
        return format_time(template, ns, self._zone)

    @property
    def shows_time(self) -> bool:
        return self.options.date or self.options.time_format is not None

    @property
    def shows_size(self) -> bool:
        return self.options.size or self.options.human is not None or self.options.usage


class TextWriter(Writer):
    def __init__(self, process: Process, options: Options, emit: Callable[[str], None]) -> None:
        super().__init__(process, options, emit)
        charset = options.charset.lower().replace("-", "") if options.charset is not None else None
        unicode = charset == "utf8" if charset is not None else is_utf8(process.env)
        self._utf8 = unicode
        self._bar, self._tee, self._corner = _LINES if unicode else _PLAIN_LINES
        self._colors = self._read_colors()

    def _read_colors(self) -> Colors | None:
        env, options = self.process.env, self.options
        wanted = options.color
        if wanted is None:
            wanted = self.process.isatty(1) and bool(env.get("LS_COLORS")) and "NO_COLOR" not in env
        if not wanted:
            return None
        try:
            colors = Colors(env, builtin=not env.get("LS_COLORS"))
        except BadColors:
            return None
        if not env.get("LS_COLORS"):
            colors.codes["or"] = "40;31;01"
        return colors

    def tree(self, root: Branch) -> None:
        self.emit(self._line(root, root.path))
        self.count_root(root)
        stack = [(iter(root.children), "", len(root.children))]
        while stack:
            children, prefix, left = stack[-1]
            child = next(children, None)
            if child is None:
                stack.pop()
                continue
            stack[-1] = (children, prefix, left - 1)
            self.count(child)
            self.process.budget.charge()
            last = left == 1
            lead = "" if self.options.no_indent else prefix + (self._corner if last else self._tee)
            self.emit(lead + self._line(child, child.path if self.options.full else child.name))
            if child.children:
                stack.append((iter(child.children), prefix + ("    " if last else self._bar), len(child.children)))

    def finish(self) -> None:
        if self.options.no_report:
            return
        directories = f"{self.directories} director{'y' if self.directories == 1 else 'ies'}"
        text = directories
        if not self.options.directories:
            text += f", {self.files} file{'' if self.files == 1 else 's'}"
        if self.options.usage:
            base = 1000 if self.options.human == "si" else 1024
            used = f" {scaled(self.size, base)}" if self.options.human else f"{self.size:>12} bytes"
            text = f"{used} used in {text}"
        self.emit(f"\n{text}")

    def _line(self, branch: Branch, name: str) -> str:
        text = self._details(branch) + self._name(branch, name)
        if branch.target is not None:
            text += " -> " + self._target(branch)
        elif self.options.classify and branch.stat is not None:
            text += _indicator(branch.stat)
        return text + (f"  [{branch.error}]" if branch.error else "")

    def _details(self, branch: Branch) -> str:
        options, stat = self.options, branch.stat
        if stat is None:
            return ""
        parts: list[str] = []
        if options.inodes:
            parts.append(f"{stat.ino:>7}")
        if options.device:
            parts.append(f"{stat.dev:>3}")
        if options.permissions:
            parts.append(render_mode(stat.mode))
        if options.user:
            parts.append(f"{self.owner(stat):<8.32}")
        if options.group:
            parts.append(f"{self.group(stat):<8.32}")
        if self.shows_size:
            parts.append(self._size(branch))
        if self.shows_time:
            parts.append(self.time(stat))
        return f"[{' '.join(parts)}]  " if parts else ""

    def _size(self, branch: Branch) -> str:
        size = self.bytes_of(branch)
        if self.options.human is None:
            return f"{size:>11}"
        return scaled(size, 1000 if self.options.human == "si" else 1024)

    def _name(self, branch: Branch, name: str) -> str:
        text = self._printable(name)
        if self._colors is None or branch.stat is None:
            return text
        ok = branch.referent is not None or not branch.stat.is_symlink
        return self._paint(text, self._colors.code(branch.name, branch.stat, branch.stat.kind, ok=ok))

    def _target(self, branch: Branch) -> str:
        assert branch.target is not None
        text = self._printable(branch.target)
        referent = branch.referent
        if self._colors is not None:
            code = self._colors.code(branch.target, referent, referent.kind) if referent is not None else None
            text = self._paint(text, code)
        return text + (_indicator(referent) if self.options.classify and referent is not None else "")

    def _paint(self, text: str, code: str | None) -> str:
        assert self._colors is not None
        if code is None:
            if self.process.env.get("LS_COLORS"):
                return text
            code = "00"
        return f"{self._colors.start(code)}{text}{self._colors.stop}"

    def _printable(self, name: str) -> str:
        options = self.options
        if not options.literal and not name.isprintable():
            name = "".join(char if is_printable(char) else self._odd(char) for char in name)
        return f'"{name}"' if options.quote else name

    def _odd(self, char: str) -> str:
        return "?" if self.options.hide else "".join(f"\\{byte:03o}" for byte in fsencode(char))


def scaled(size: int, base: int) -> str:
    """Four columns: 4.0K, 12K, 999."""
    if size < base:
        return f"{size:>4}"
    power, rest = 0, float(size)
    while rest >= base:
        power, rest = power + 1, rest / base
    unit = ("kMGTPEZY" if base == 1000 else "KMGTPEZY")[power - 1]
    return f"{rest:3.0f}{unit}" if rest >= 10 else f"{rest:3.1f}{unit}"


def _indicator(stat: Stat) -> str:
    if stat.is_regular and stat.mode & 0o111:
        return "*"
    return _INDICATORS.get(stat.kind, "")


class JsonWriter(Writer):
    def __init__(self, process: Process, options: Options, emit: Callable[[str], None]) -> None:
        super().__init__(process, options, emit)
        self._blocks: list[str] = []

    def tree(self, root: Branch) -> None:
        self.count_root(root)
        self._blocks.append(self._render(root, root.path, 1))

    def _render(self, branch: Branch, name: str, depth: int) -> str:
        self.process.budget.charge()
        pad = "" if self.options.no_indent else "  " * depth
        fields = [f'"type":{json.dumps(_kind(branch.stat))}', f'"name":{_json(name)}']
        if branch.target is not None:
            fields.append(f'"target":{_json(branch.target)}')
        if branch.stat is not None:
            fields += [f'"{key}":{text}' for key, text in self._fields(branch, branch.stat)]
        text = pad + "{" + ",".join(fields)
        if branch.error:
            return f'{text},"contents":[{{"error": {json.dumps(branch.error)}}}\n{pad}]}}'
        if not branch.children:
            return text + ("}" if depth > 1 else ',"contents":[\n' + pad + "]}" if branch.opened else "}")
        lines: list[str] = []
        for child in branch.children:
            self.count(child)
            lines.append(self._render(child, child.path if self.options.full else child.name, depth + 1))
        return f'{text},"contents":[\n' + ",\n".join(lines) + f"\n{pad}]}}"

    def _fields(self, branch: Branch, stat: Stat) -> list[tuple[str, str]]:
        options = self.options
        found: list[tuple[str, str]] = []
        if options.inodes:
            found.append(("inode", str(stat.ino)))
        if options.device:
            found.append(("dev", str(stat.dev)))
        if options.permissions:
            found += [("mode", f'"{stat.mode & 0o7777:04o}"'), ("prot", f'"{render_mode(stat.mode)}"')]
        if options.user:
            found.append(("user", _json(self.owner(stat))))
        if options.group:
            found.append(("group", _json(self.group(stat))))
        if self.shows_size:
            found.append(("size", str(self.bytes_of(branch))))
        if self.shows_time:
            found.append(("time", _json(self.time(stat))))
        return found

    def finish(self) -> None:
        lines = ["[", "\n,\n".join(self._blocks)]
        if not self.options.no_report:
            files = "" if self.options.directories else f',"files":{self.files}'
            size = f'"size":{self.size},' if self.options.usage else ""
            lines += [",", f'  {{"type":"report",{size}"directories":{self.directories}{files}}}']
        self.emit("\n".join([*lines, "]"]))


class XmlWriter(Writer):
    def start(self) -> None:
        self.emit('<?xml version="1.0" encoding="UTF-8"?>\n<tree>')

    def tree(self, root: Branch) -> None:
        self.count_root(root)
        self._render(root, root.path, 1)

    def _render(self, branch: Branch, name: str, depth: int) -> None:
        self.process.budget.charge()
        pad = "" if self.options.no_indent else "  " * depth
        kind = _kind(branch.stat)
        attributes = [("name", name)]
        if branch.target is not None:
            attributes.append(("target", branch.target))
        if branch.stat is not None:
            attributes += self._attributes(branch, branch.stat)
        head = f"{pad}<{kind}" + "".join(f' {key}="{_xml(text)}"' for key, text in attributes) + ">"
        if branch.error:
            self.emit(f"{head}<error>{_xml(branch.error)}</error>\n{pad}</{kind}>")
        elif not branch.children:
            self.emit(f"{head}</{kind}>" if depth > 1 else f"{head}\n{pad}</{kind}>")
        else:
            self.emit(head)
            for child in branch.children:
                self.count(child)
                self._render(child, child.path if self.options.full else child.name, depth + 1)
            self.emit(f"{pad}</{kind}>")

    def _attributes(self, branch: Branch, stat: Stat) -> list[tuple[str, str]]:
        options = self.options
        found: list[tuple[str, str]] = []
        if options.inodes:
            found.append(("inode", str(stat.ino)))
        if options.device:
            found.append(("dev", str(stat.dev)))
        if options.permissions:
            found += [("mode", f"{stat.mode & 0o7777:04o}"), ("prot", render_mode(stat.mode))]
        if options.user:
            found.append(("user", self.owner(stat)))
        if options.group:
            found.append(("group", self.group(stat)))
        if self.shows_size:
            found.append(("size", str(self.bytes_of(branch))))
        if self.shows_time:
            found.append(("time", self.time(stat)))
        return found

    def finish(self) -> None:
        if not self.options.no_report:
            lines = ["  <report>"]
            if self.options.usage:
                lines.append(f"    <size>{self.size}</size>")
            lines.append(f"    <directories>{self.directories}</directories>")
            if not self.options.directories:
                lines.append(f"    <files>{self.files}</files>")
            self.emit("\n".join([*lines, "  </report>"]))
        self.emit("</tree>")


def _kind(stat: Stat | None) -> str:
    return _KINDS.get(stat.kind, "unknown") if stat is not None else "unknown"


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _xml(text: str) -> str:
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&apos;")):
        text = text.replace(char, entity)
    return text
