"""How sqlite3 shows the rows of a result, in each of its output modes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from belljar.abi.dataclass import dataclass
from belljar.libc.width import display_width

Value = None | int | float | str | bytes
Row = Sequence[Value]

MODES = (
    "ascii",
    "box",
    "column",
    "csv",
    "html",
    "insert",
    "json",
    "line",
    "list",
    "markdown",
    "quote",
    "table",
    "tabs",
)
_PLAIN_CSV = re.compile(r"[!#-&(-+\--~]+")
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(slots=True)
class Settings:
    """Settings of `.mode`, `.headers` and the like."""

    mode: str = "list"
    headers: bool | None = None
    """None: as the mode has it."""
    separator: str = "|"
    row_separator: str = "\n"
    null: str = ""
    table: str = "table"

    def set_mode(self, mode: str) -> None:
        self.mode = mode
        pairs = {"csv": (",", "\r\n"), "tabs": ("\t", "\n"), "ascii": ("\x1f", "\x1e"), "list": ("|", "\n")}
        if mode in pairs:
            self.separator, self.row_separator = pairs[mode]
        if mode == "quote":
            self.separator, self.row_separator = ",", "\n"
        if mode == "tabs":
            self.mode = "list"


def number(value: float) -> str:
    """As SQLite prints it: 15 digits, and always recognisable as not an integer."""
    if value != value:
        return ""
    if value in (float("inf"), float("-inf")):
        return "Inf" if value > 0 else "-Inf"
    text = f"{value:.15g}"
    mantissa, mark, exponent = text.partition("e")
    return (mantissa if "." in mantissa else mantissa + ".0") + mark + exponent


def as_text(value: Value, null: str) -> str:
    if value is None:
        return null
    if isinstance(value, bytes):
        return value.partition(b"\0")[0].decode("utf-8", "surrogateescape")
    return number(value) if isinstance(value, float) else str(value).partition("\0")[0]


def literal(value: Value) -> str:
    """As SQL would write it."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return number(value) if isinstance(value, float) else str(value)


def name(text: str) -> str:
    return text if _PLAIN_NAME.fullmatch(text) else '"' + text.replace('"', '""') + '"'


def render(settings: Settings, columns: list[str], rows: Iterable[Row]) -> Iterator[str]:
    """The text of a result, piece by piece."""
    mode = settings.mode
    if mode in ("column", "box", "table", "markdown"):
        yield from _table(settings, columns, rows)
    elif mode == "json":
        yield from _json(columns, rows)
    elif mode == "line":
        yield from _lines(settings, columns, rows)
    else:
        shown = _SHOWN[mode]
        headed = bool(settings.headers)
        first = True
        for row in rows:
            if first and headed and mode != "insert":
                yield _header(settings, columns)
            first = False
            yield shown(settings, columns, row)


def _header(settings: Settings, columns: list[str]) -> str:
    if settings.mode == "html":
        return "<TR>" + "\n".join(f"<TH>{_html(column)}</TH>" for column in columns) + "\n</TR>\n"
    if settings.mode == "quote":
        return settings.separator.join(literal(column) for column in columns) + settings.row_separator
    cells = [_csv(column, settings) if settings.mode == "csv" else column for column in columns]
    return settings.separator.join(cells) + settings.row_separator


def _show_list(settings: Settings, columns: list[str], row: Row) -> str:
    return settings.separator.join([as_text(value, settings.null) for value in row]) + settings.row_separator


def _show_csv(settings: Settings, columns: list[str], row: Row) -> str:
    cells = [settings.null if value is None else _csv(as_text(value, ""), settings) for value in row]
    return settings.separator.join(cells) + settings.row_separator


def _csv(text: str, settings: Settings) -> str:
    if _PLAIN_CSV.fullmatch(text) and settings.separator not in text:
        return text
    return '"' + text.replace('"', '""') + '"'


def _show_quote(settings: Settings, columns: list[str], row: Row) -> str:
    return settings.separator.join(literal(value) for value in row) + settings.row_separator


def _show_insert(settings: Settings, columns: list[str], row: Row) -> str:
    names = f"({','.join(name(column) for column in columns)})" if settings.headers else ""
    return f"INSERT INTO {name(settings.table)}{names} VALUES({','.join(literal(value) for value in row)});\n"


def _html(text: str) -> str:
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;")):
        text = text.replace(char, entity)
    return text


def _show_html(settings: Settings, columns: list[str], row: Row) -> str:
    cells = [f"<TD>{_html(as_text(value, settings.null))}</TD>" for value in row]
    return "<TR>" + "\n".join(cells) + "\n</TR>\n"


_SHOWN = {
    "list": _show_list,
    "ascii": _show_list,
    "csv": _show_csv,
    "quote": _show_quote,
    "insert": _show_insert,
    "html": _show_html,
}


def _json(columns: list[str], rows: Iterable[Row]) -> Iterator[str]:
    names = [json.dumps(column, ensure_ascii=False) for column in columns]
    opened = False
    for row in rows:
        cells = ",".join(f"{key}:{_json_value(value)}" for key, value in zip(names, row, strict=True))
        yield (",\n" if opened else "[") + "{" + cells + "}"
        opened = True
    if opened:
        yield "]\n"


def _json_value(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return json.dumps(value.decode("utf-8", "surrogateescape"), ensure_ascii=False)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return number(value) if isinstance(value, float) else str(value)


def _lines(settings: Settings, columns: list[str], rows: Iterable[Row]) -> Iterator[str]:
    width = max(5, *(len(column) for column in columns))
    first = True
    for row in rows:
        pairs = zip(columns, row, strict=True)
        text = "".join(f"{column:>{width}} = {as_text(value, settings.null)}\n" for column, value in pairs)
        yield text if first else "\n" + text
        first = False


_BOX = {
    "box": ("┌─┬┐", "├─┼┤", "└─┴┘", "│"),
    "table": ("+-++", "+-++", "+-++", "|"),
    "markdown": ("", "|-||", "", "|"),
}


def _table(settings: Settings, columns: list[str], rows: Iterable[Row]) -> Iterator[str]:
    cells = [[as_text(value, settings.null).split("\n") for value in row] for row in rows]
    if not cells:
        return
    widths = [display_width(column) for column in columns]
    for row in cells:
        for place, lines in enumerate(row):
            widths[place] = max(widths[place], *(display_width(line) for line in lines))
    if settings.mode == "column":
        if settings.headers is not False:
            yield "  ".join(_pad(column, width) for column, width in zip(columns, widths, strict=True)) + "\n"
            yield "  ".join("-" * width for width in widths) + "\n"
        for row in cells:
            for line in _across(row):
                yield "  ".join(_pad(text, width) for text, width in zip(line, widths, strict=True)) + "\n"
        return
    top, middle, bottom, bar = _BOX[settings.mode]
    if top:
        yield _rule(top, widths)
    yield bar + bar.join(f" {_centre(c, w)} " for c, w in zip(columns, widths, strict=True)) + bar + "\n"
    yield _rule(middle, widths)
    for row in cells:
        for line in _across(row):
            yield bar + bar.join(f" {_pad(text, w)} " for text, w in zip(line, widths, strict=True)) + bar + "\n"
    if bottom:
        yield _rule(bottom, widths)


def _across(row: list[list[str]]) -> Iterator[list[str]]:
    """The lines of a row whose cells may have several."""
    for place in range(max(len(lines) for lines in row)):
        yield [lines[place] if place < len(lines) else "" for lines in row]


def _rule(marks: str, widths: list[int]) -> str:
    left, fill, cross, right = tuple(marks)
    return left + cross.join(fill * (width + 2) for width in widths) + right + "\n"


def _pad(text: str, width: int) -> str:
    return text + " " * (width - display_width(text))


def _centre(text: str, width: int) -> str:
    room = width - display_width(text)
    return " " * (room // 2) + text + " " * (room - room // 2)
