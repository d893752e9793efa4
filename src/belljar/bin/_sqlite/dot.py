"""sqlite3's dot-commands."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Callable, Iterable
from io import StringIO
from typing import Protocol

from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin._sqlite.render import MODES, Row, Settings, literal, name
from belljar.kernel.process import Process

HELP = """\
.changes on|off          Show number of rows changed by SQL
.databases               List names and files of attached databases
.dump ?OBJECTS?          Render database content as SQL
.echo on|off             Turn command echo on or off
.exit ?CODE?             Exit this program with return-code CODE
.headers on|off          Turn display of headers on or off
.help                    Show this text
.import FILE TABLE       Import data from FILE into TABLE
.indexes ?TABLE?         Show names of indexes
.mode ?MODE? ?TABLE?     Set output mode
.nullvalue STRING        Use STRING in place of NULL values
.once FILE               Output for the next SQL command only to FILE
.output ?FILE?           Send output to FILE or stdout if FILE is omitted
.print STRING...         Print literal STRING
.quit                    Exit this program
.read FILE               Read input from FILE
.save FILE               Write the database to FILE
.schema ?PATTERN?        Show the CREATE statements matching PATTERN
.separator COL ?ROW?     Change the column and row separators
.show                    Show the current values for various settings
.tables ?TABLE?          List names of tables matching LIKE pattern TABLE
"""


class Quit(Exception):
    """`.quit`, `.exit CODE`."""

    def __init__(self, status: int = 0) -> None:
        self.status = status


class DotError(Exception):
    """An error in a dot-command: the message after `Error: `."""


class Session(Protocol):
    """The interface of the program that runs the commands."""

    process: Process
    settings: Settings
    echo: bool
    bail: bool
    changes: bool
    path: str
    errors: int

    def rows(self, sql: str, parameters: Row = ()) -> list[Row]: ...
    def write(self, text: str) -> None: ...
    def redirect(self, path: str | None, *, once: bool = False) -> None: ...
    def run_text(self, text: str) -> None: ...
    def save(self, path: str) -> None: ...
    def insert_many(self, sql: str, rows: Iterable[Row]) -> None: ...


def run(session: Session, line: str) -> None:
    """Run one command line. DotError, Quit."""
    try:
        words = shlex.split(line[1:], posix=True)
    except ValueError:
        words = line[1:].split()
    command = words[0] if words else ""
    matches = [full for full in COMMANDS if full.startswith(command)] if command else []
    if command not in COMMANDS and not (len(command) > 2 and len(matches) == 1):
        raise DotError(f'unknown command or invalid arguments:  "{command}". Enter ".help" for help')
    COMMANDS[command if command in COMMANDS else matches[0]](session, words[1:])


def _switch(text: str) -> bool:
    return text.lower() in ("on", "yes", "1", "true")


def _set(field: str) -> Callable[[Session, list[str]], None]:
    def change(session: Session, args: list[str]) -> None:
        if len(args) != 1:
            raise DotError(f"Usage: .{field} on|off")
        setattr(session, field, _switch(args[0]))

    return change


def _headers(session: Session, args: list[str]) -> None:
    if len(args) != 1:
        raise DotError("Usage: .headers on|off")
    session.settings.headers = _switch(args[0])


def _mode(session: Session, args: list[str]) -> None:
    if not args:
        session.write(f"current output mode: {session.settings.mode}\n")
        return
    found = [mode for mode in (*MODES, "lines", "columns", "tcl") if mode.startswith(args[0])]
    if not found:
        raise DotError(f"mode should be one of: {' '.join(MODES)}")
    session.settings.set_mode(found[0])
    session.settings.table = args[1] if len(args) > 1 else "table"


def _unescape(text: str) -> str:
    for written, char in (("\\t", "\t"), ("\\n", "\n"), ("\\r", "\r"), ("\\\\", "\\")):
        text = text.replace(written, char)
    return text


def _separator(session: Session, args: list[str]) -> None:
    if not args or len(args) > 2:
        raise DotError("Usage: .separator COL ?ROW?")
    session.settings.separator = _unescape(args[0])
    if len(args) > 1:
        session.settings.row_separator = _unescape(args[1])


def _null(session: Session, args: list[str]) -> None:
    if len(args) != 1:
        raise DotError("Usage: .nullvalue STRING")
    session.settings.null = args[0]


def _tables(session: Session, args: list[str]) -> None:
    pattern = args[0] if args else "%"
    _names(session, "type IN ('table','view') AND name NOT LIKE 'sqlite_%' AND name LIKE ?", pattern)


def _indexes(session: Session, args: list[str]) -> None:
    _names(session, "type = 'index' AND tbl_name LIKE ?", args[0] if args else "%")


def _names(session: Session, condition: str, pattern: str) -> None:
    sql = f"SELECT name FROM sqlite_schema WHERE {condition} ORDER BY 1"  # noqa: S608 - it is from this module
    found = [str(row[0]) for row in session.rows(sql, (pattern,))]
    if not found:
        return
    width = max(len(text) for text in found)
    across = max(1, 80 // (width + 2))
    rows = -(-len(found) // across)
    for row in range(rows):
        line = [f"{found[place]:<{width}}" for place in range(row, len(found), rows)]
        session.write("  ".join(line).rstrip() + "\n" if len(line) == 1 else "  ".join(line) + "\n")


def _schema(session: Session, args: list[str]) -> None:
    patterns = [arg for arg in args if not arg.startswith("-")]
    pattern = patterns[0] if patterns else "%"
    sql = (
        "SELECT sql, type, name FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_stat%' "
        "AND tbl_name LIKE ? ORDER BY rowid"
    )
    rows = session.rows(sql, (pattern,))
    for text, kind, title in rows:
        comment = ""
        if kind == "view":
            columns = [str(row[1]) for row in session.rows(f"PRAGMA table_xinfo({literal(str(title))})")]
            comment = f"\n/* {name(str(title))}({','.join(columns)}) */"
        session.write(f"{_created(str(text))}{comment};\n")


def _created(sql: str) -> str:
    """A table whose name is quoted is shown so that it can be made again."""
    if sql.startswith(("CREATE TABLE '", 'CREATE TABLE "')):
        return "CREATE TABLE IF NOT EXISTS " + sql[len("CREATE TABLE ") :]
    return sql


def _dump(session: Session, args: list[str]) -> None:
    write = session.write
    write("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n")
    tables = session.rows("SELECT name, sql FROM sqlite_schema WHERE type='table' AND sql NOT NULL ORDER BY rowid")
    wanted = [row for row in tables if not args or any(_like(session, str(row[0]), arg) for arg in args)]
    for title, sql in wanted:
        table = str(title)
        if table.startswith("sqlite_"):
            if table == "sqlite_sequence":
                write("DELETE FROM sqlite_sequence;\n")
            else:
                continue
        else:
            write(f"{_created(str(sql))};\n")
        columns = [str(row[1]) for row in session.rows(f"PRAGMA table_info({literal(table)})")]
        listed = ",".join(name(column) for column in columns)
        for row in session.rows(f"SELECT {listed} FROM {name(table)}"):  # noqa: S608
            write(f"INSERT INTO {name(table)} VALUES({','.join(literal(value) for value in row)});\n")
    others = session.rows(
        "SELECT sql, tbl_name FROM sqlite_schema "
        "WHERE sql NOT NULL AND type IN ('index','trigger','view') ORDER BY rowid"
    )
    for sql, table_name in others:
        if not args or any(_like(session, str(table_name), arg) for arg in args):
            write(f"{sql!s};\n")
    write("COMMIT;\n" if not session.errors else "ROLLBACK; -- due to errors\n")


def _like(session: Session, text: str, pattern: str) -> bool:
    return bool(session.rows("SELECT ? LIKE ?", (text, pattern))[0][0])


def _import(session: Session, args: list[str]) -> None:
    settings = session.settings
    skip, mode, names = 0, settings.mode, []
    rest = iter(args)
    for arg in rest:
        if arg in ("--csv", "-csv"):
            mode = "csv"
        elif arg in ("--ascii", "-ascii"):
            mode = "ascii"
        elif arg in ("--skip", "-skip"):
            text = next(rest, "0")
            skip = int(text) if text.isdecimal() and len(text) < 9 else 0
        elif arg in ("-v", "--schema", "-schema"):
            continue
        else:
            names.append(arg)
    if len(names) != 2:
        raise DotError("missing FILE argument. Usage:" if not names else "missing TABLE argument. Usage:")
    path, table = names
    try:
        text = fsdecode(session.process.read_file(path))
    except SysError:
        raise DotError(f'cannot open "{path}"') from None
    separator = "," if mode == "csv" and settings.mode != "csv" else settings.separator
    if len(separator) != 1:
        raise DotError("multi-character column separators not allowed for import")
    if settings.mode == "csv" and settings.row_separator == "\r\n":
        settings.row_separator = "\n"  # an import takes back the line end of CSV
    lines = list(StringIO(text, newline="\n"))
    if mode == "csv":
        rows = [row for row in csv.reader(lines, delimiter=separator) if row][skip:]
    else:
        rows = [line.rstrip("\r\n").split(separator) for line in lines][skip:]
    session.process.budget.charge(len(rows))
    if not session.rows("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)):
        if not rows:
            raise DotError(f"{path}: empty file")
        listed = ", ".join(f'"{column.replace(chr(34), chr(34) * 2)}" TEXT' for column in rows.pop(0))
        quoted = '"' + table.replace('"', '""') + '"'
        session.rows(f"CREATE TABLE {quoted}(\n{listed})")
    width = len(session.rows(f"PRAGMA table_info({literal(table)})"))
    padded: list[Row] = []
    for number, row in enumerate(rows, 1):
        if len(row) < width:
            session.process.error(
                f"{path}:{number}: expected {width} columns but found {len(row)} - filling the rest with NULL\n"
            )
        elif len(row) > width:
            session.process.error(f"{path}:{number}: expected {width} columns but found {len(row)} - extras ignored\n")
        padded.append([*row[:width], *[None] * (width - len(row))])
    session.insert_many(f"INSERT INTO {name(table)} VALUES({','.join('?' * width)})", padded)


def _output(session: Session, args: list[str]) -> None:
    session.redirect(args[0] if args and args[0] != "stdout" else None)


def _once(session: Session, args: list[str]) -> None:
    if len(args) != 1:
        raise DotError("Usage: .once FILE")
    session.redirect(args[0], once=True)


def _read(session: Session, args: list[str]) -> None:
    if len(args) != 1:
        raise DotError("Usage: .read FILE")
    try:
        text = fsdecode(session.process.read_file(args[0]))
    except SysError:
        raise DotError(f'cannot open "{args[0]}"') from None
    session.process.enter()
    try:
        session.run_text(text)
    finally:
        session.process.leave()


def _quit(session: Session, args: list[str]) -> None:
    raise Quit(int(args[0]) & 0xFF if args and args[0].isdecimal() and len(args[0]) < 9 else 0)


def _save(session: Session, args: list[str]) -> None:
    if not args:
        raise DotError("missing FILENAME argument on .save")
    session.save(args[-1])


def _databases(session: Session, args: list[str]) -> None:
    session.write(f"main: {session.process.absolute(session.path) if session.path else ''} r/w\n")


def _show(session: Session, args: list[str]) -> None:
    settings = session.settings
    values = (
        ("echo", "on" if session.echo else "off"),
        ("eqp", "off"),
        ("explain", "auto"),
        ("headers", "on" if settings.headers else "off"),
        ("mode", settings.mode),
        ("nullvalue", f'"{settings.null}"'),
        ("output", "stdout"),
        ("colseparator", '"' + settings.separator.replace("\t", "\\t") + '"'),
        ("rowseparator", '"' + settings.row_separator.replace("\n", "\\n").replace("\r", "\\r") + '"'),
        ("stats", "off"),
        ("width", ""),
        ("filename", session.path or ":memory:"),
    )
    session.write("".join(f"{key:>12}: {value}\n" for key, value in values))


def _nothing(session: Session, args: list[str]) -> None:
    """Settings of the real program's terminal and engine that make no difference here."""


COMMANDS: dict[str, Callable[[Session, list[str]], None]] = {
    "backup": _save,
    "bail": _set("bail"),
    "changes": _set("changes"),
    "databases": _databases,
    "dump": _dump,
    "echo": _set("echo"),
    "exit": _quit,
    "headers": _headers,
    "help": lambda session, args: session.write(HELP),
    "import": _import,
    "indexes": _indexes,
    "indices": _indexes,
    "mode": _mode,
    "nullvalue": _null,
    "once": _once,
    "output": _output,
    "print": lambda session, args: session.write(" ".join(args) + "\n"),
    "prompt": _nothing,
    "quit": _quit,
    "read": _read,
    "save": _save,
    "schema": _schema,
    "separator": _separator,
    "show": _show,
    "tables": _tables,
    "timeout": _nothing,
    "timer": _nothing,
    "width": _nothing,
}
