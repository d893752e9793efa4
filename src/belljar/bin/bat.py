"""bat - show files, with line numbers and headers on a terminal

Usage: bat [OPTION]... [FILE]...

Where standard output is no terminal, or with -p, the files are copied as cat does.
"""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin._kit import UsageError, count, flag, many, utility, value
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    show_all: bool = flag("-A", "--show-all", "show non-printable characters")
    plain: int = count("-p", "--plain", "show plain style; twice: and no paging")
    numbers: bool = flag("-n", "--number", "show line numbers and nothing else beside")
    language: str | None = value(
        "-l", "--language", "set the language for highlighting (none here)", metavar="LANGUAGE"
    )
    highlight: tuple[str, ...] = many("-H", "--highlight-line", "highlight lines N through M (not here)", metavar="N:M")
    ranges: tuple[str, ...] = many("-r", "--line-range", "only print the lines from N to M", metavar="N:M")
    names: tuple[str, ...] = many("--file-name", "the name to show for a file", metavar="NAME")
    style: str | None = value("--style", "what to show beside the text", metavar="COMPONENTS")
    colour: str = value("--color", "when to use colors: auto, never, always", metavar="WHEN", default="auto")
    decorations: str = value("--decorations", "when to show decorations", metavar="WHEN", default="auto")
    paging: str = value("--paging", "when to use the pager", metavar="WHEN", default="auto")
    no_paging: bool = flag("-P", "--no-pager", "do not page")
    theme: str | None = value("--theme", "the color theme (none here)", metavar="THEME")
    tabs: str | None = value("--tabs", "set the tab width", metavar="T")
    wrap: str | None = value("--wrap", "the text-wrapping mode", metavar="MODE")
    width: str | None = value("--terminal-width", "the width of the terminal", metavar="WIDTH")
    force_colour: bool = flag("-f", "--force-colorization", "colors and decorations always")
    unbuffered: bool = flag("-u", "--unbuffered", "(ignored)")
    diff: bool = flag("-d", "--diff", "only show lines that have been changed (not here)")


@utility("bat", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    ranges = [_range(text) for text in options.ranges]
    decorated = options.decorations == "always" or options.force_colour
    decorated = decorated or (options.decorations == "auto" and process.isatty(1))
    parts = _components(options) if decorated and not options.plain else frozenset[str]()
    status = 0
    for index, name in enumerate(operands or ["-"]):
        try:
            if name != "-" and process.fs.stat(name).is_dir:
                raise IsADirectory
            data = process.read_file(name)
        except IsADirectory:
            process.error(f"\x1b[31m[bat error]\x1b[0m: '{name}' is a directory.\n")
            status = 1
            continue
        except SysError as error:
            process.stdout.flush()
            reason = f"{error.reason} (os error {error.errno})"
            process.error(f"\x1b[31m[bat error]\x1b[0m: '{name}': {reason}\n")
            status = 1
            continue
        shown = options.names[index] if index < len(options.names) else name
        show(process, options, data, shown, ranges, parts)
    return status


class IsADirectory(Exception):
    pass


def _components(options: Options) -> frozenset[str]:
    if options.numbers:
        return frozenset(["numbers"])
    style = options.style or "full"
    if style in ("full", "auto", "default"):
        return frozenset(["grid", "header", "numbers"])
    return frozenset(style.split(","))


def _range(text: str) -> tuple[int, int]:
    low, colon, high = text.partition(":")
    if not re.fullmatch(r"\d*(?::[+-]?\d+|:)?", text, re.ASCII) or text in ("", ":"):
        raise UsageError(f"invalid line range '{text}'", hint=False)
    start = int(low[:18]) if low else 1
    if not colon:
        return start, start
    if high.startswith("+"):
        return start, start + int(high[1:19] or "0")
    return start, int(high[:18]) if high else 1 << 62


def show(
    process: Process,
    options: Options,
    data: bytes,
    name: str,
    ranges: list[tuple[int, int]],
    parts: frozenset[str],
) -> None:
    if not ranges and not parts and not options.show_all:
        process.stdout.write(data)
        return
    lines = fsdecode(data).splitlines(keepends=True) if b"\r" not in data else fsdecode(data).split("\n")
    process.budget.charge(len(lines) // 4 + 1)
    width = int(options.width) if options.width and options.width.isdecimal() else 80
    rule = "\u2500" * 7 + "{}" + "\u2500" * (width - 8)
    grid = "grid" in parts
    bar = "\u2502 " if grid else ""
    if grid:
        process.print(rule.format("\u252c"))
    if parts & {"header", "header-filename"}:
        title = f"File: {name}" if name != "-" else "STDIN"
        process.print(f"{' ' * 7 if grid else ''}{bar}{title}")
        if grid:
            process.print(rule.format("\u253c"))
    for number, line in enumerate(lines, 1):
        if ranges and not any(low <= number <= high for low, high in ranges):
            continue
        text = _visible(line) if options.show_all else line.rstrip("\n")
        before = f"{number:4} " + ("  " if grid else "") if "numbers" in parts else ""
        process.print(f"{before}{bar}{text}" if parts else text, end="\n" if parts or line.endswith("\n") else "")
    if grid:
        process.print(rule.format("\u2534"))


_SHOWN = {" ": "\u00b7", "\n": "\u240a", "\r": "\u240d", "\0": "\u2400",
          "\x1b": "\u241b", "\x07": "\u2407", "\x08": "\u2408"}  # fmt: skip


def _visible(line: str) -> str:
    out: list[str] = []
    column = 0
    for char in line:
        if char == "\t":
            width = 4 - column % 4
            out.append("\u21b9" if width == 1 else "\u251c" + "\u2500" * (width - 2) + "\u2524")
            column += width
        else:
            out.append(_SHOWN.get(char, char))
            column += 1
    return "".join(out)
