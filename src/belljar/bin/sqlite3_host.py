"""sqlite3 - a command-line interface to SQLite databases

Usage: sqlite3 [OPTIONS] FILENAME [SQL]...

The database is read from the file, worked on in memory, and written back when it changed. SQL cannot reach any
other file: ATTACH, VACUUM INTO and extensions are refused.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress

from belljar.abi.errno import ENOENT
from belljar.abi.errors import BudgetExceeded, SysError
from belljar.abi.flags import O_CREAT, O_TRUNC, O_WRONLY, POLLIN
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._kit import utility
from belljar.bin._sqlite.dot import DotError, Quit, run
from belljar.bin._sqlite.render import Row, Settings, render
from belljar.kernel.process import Process

INSTRUCTIONS = 2000
"""SQLite VM instructions between two checks of the budget."""
FORBIDDEN_PRAGMAS = frozenset(
    "temp_store temp_store_directory data_store_directory max_page_count hard_heap_limit soft_heap_limit mmap_size "
    "cache_size cache_spill threads page_size writable_schema trusted_schema".split()
)
CHANGES = frozenset(
    (
        sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE, sqlite3.SQLITE_CREATE_INDEX,
        sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_CREATE_TRIGGER, sqlite3.SQLITE_CREATE_VIEW,
        sqlite3.SQLITE_CREATE_VTABLE, sqlite3.SQLITE_DROP_INDEX, sqlite3.SQLITE_DROP_TABLE,
        sqlite3.SQLITE_DROP_TRIGGER, sqlite3.SQLITE_DROP_VIEW, sqlite3.SQLITE_DROP_VTABLE,
        sqlite3.SQLITE_ALTER_TABLE, sqlite3.SQLITE_REINDEX, sqlite3.SQLITE_ANALYZE, sqlite3.SQLITE_ATTACH,
        sqlite3.SQLITE_PRAGMA,
    )
)  # fmt: skip
"""Statements that may change the file."""
MODE_OPTIONS = frozenset("ascii box column csv html json line list markdown quote table tabs".split())
_NEAR = re.compile(r'near "(.*?)": |no such column: (?:\w+\.)?(\S+)', re.DOTALL)


class SqlError(Exception):
    """A statement failed: SQLite's message, its code, and whether it was found wrong before it ran."""

    def __init__(self, message: str, code: int, *, parsing: bool) -> None:
        super().__init__(message)
        self.code = code
        self.parsing = parsing


class Stop(Exception):
    """An error that ends the program."""

    def __init__(self, status: int) -> None:
        self.status = status


class Database:
    """One database file of the guest, in memory."""

    def __init__(self, process: Process, path: str, *, read_only: bool) -> None:
        self.process = process
        self.path = path
        self._changed = False
        self._starting = True
        self._spent: BudgetExceeded | None = None
        data = self._load()  # before there is a connection to be closed
        self._connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
        connection = self._connection
        connection.text_factory = fsdecode
        connection.set_progress_handler(self._breathe, INSTRUCTIONS)
        connection.set_authorizer(self._authorize)
        most = process.budget.limits.expansion_bytes
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(most, 1 << 30))
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 2)
        if data:
            if data[18:20] == b"\x02\x02":  # a write-ahead log would be a second file
                data = data[:18] + b"\x01\x01" + data[20:]
            connection.deserialize(data)
        # Temporary tables and sorts stay in memory as well, and memory is limited.
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"PRAGMA hard_heap_limit = {2 * most + (64 << 20)}")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        self._changed = self._starting = False

    def close(self) -> None:
        self._connection.close()

    def _load(self) -> bytes:
        if self.path in ("", ":memory:"):
            return b""
        try:
            return self.process.read_file(self.path)
        except SysError as error:
            parent = self.path.rpartition("/")[0] if "/" in self.path else "."
            if error.errno == ENOENT:
                with suppress(SysError):
                    if self.process.fs.stat(parent or "/").is_dir:
                        return b""
            raise

    def save(self, path: str | None = None) -> None:
        """Write the database back if it may have changed. SysError."""
        target = self.path if path is None else path
        if path is None and (not self._changed or self._connection.in_transaction or target in ("", ":memory:")):
            return
        data = self._connection.serialize()
        self.process.budget.charge_size(len(data))
        if data:
            self.process.write_file(target, data, 0o644, O_WRONLY | O_CREAT | O_TRUNC)
        self._changed = False

    def _breathe(self) -> int:
        """Called by SQLite while it works: pay, and let others run. An exception can't pass through C."""
        try:
            self.process.budget.charge(INSTRUCTIONS // 10)
        except BudgetExceeded as spent:
            self._spent = spent
            return 1
        return 1 if self.process.fatal is not None else 0

    def _authorize(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if self._starting:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_ATTACH and first not in ("", ":memory:"):
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_PRAGMA and second is not None and (first or "").lower() in FORBIDDEN_PRAGMAS:
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in ("load_extension", "fts3_tokenizer"):
            return sqlite3.SQLITE_DENY
        if action in CHANGES and not (action == sqlite3.SQLITE_PRAGMA and second is None):
            self._changed = True
        return sqlite3.SQLITE_OK

    def query(self, sql: str, parameters: Row = ()) -> tuple[list[str], Iterator[Row]]:
        """Run a statement: its columns (none if it gives no rows) and its rows. SqlError."""
        try:
            cursor = self._connection.execute(_utf8(sql), _bindable(parameters))
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            raise self._explain(sql, error) from None
        columns = [str(column[0]) for column in cursor.description or ()]
        return columns, self._fetch(sql, cursor)

    def _fetch(self, sql: str, cursor: sqlite3.Cursor) -> Iterator[Row]:
        budget = self.process.budget
        while True:
            try:
                row = cursor.fetchone()
            except sqlite3.Error as error:
                raise self._explain(sql, error) from None
            if row is None:
                return
            budget.charge()
            yield row

    def _explain(self, sql: str, error: Exception) -> SqlError:
        if self._spent is not None:
            raise self._spent
        self.process.check_fatal()
        code = int(getattr(error, "sqlite_errorcode", 1)) & 0xFF
        parsing = code == sqlite3.SQLITE_AUTH
        if code == 1:
            try:
                self._connection.execute(f"EXPLAIN {sql}").close()
            except (sqlite3.Error, ValueError):
                parsing = True
        return SqlError(str(error), code, parsing=parsing or code == sqlite3.SQLITE_NOTADB)

    def insert_many(self, sql: str, rows: Iterable[Row]) -> None:
        outer = self._connection.in_transaction
        if not outer:
            self._connection.execute("BEGIN")
        try:
            self._connection.executemany(_utf8(sql), map(_bindable, rows))
        except (sqlite3.Error, ValueError) as error:
            raise self._explain(sql, error) from None
        finally:
            if not outer and self._connection.in_transaction:
                self._connection.execute("COMMIT")

    @property
    def total_changes(self) -> int:
        return self._connection.total_changes


class Shell:
    """Runs what the command line and the input say, on one database."""

    def __init__(self, process: Process, database: Database, settings: Settings) -> None:
        self.process = process
        self.database = database
        self.settings = settings
        self.path = database.path
        self.echo = self.bail = self.changes = False
        self.errors = 0
        self._output: int | None = None
        self._once = False

    # For the dot-commands.

    def rows(self, sql: str, parameters: Row = ()) -> list[Row]:
        return list(self.database.query(sql, parameters)[1])

    def insert_many(self, sql: str, rows: Iterable[Row]) -> None:
        self.database.insert_many(sql, rows)

    def save(self, path: str) -> None:
        self.database.save(path)

    def write(self, text: str) -> None:
        if self._output is None:
            self.process.stdout.write(fsencode(text))
        else:
            self.process.write_all(self._output, fsencode(text))

    def redirect(self, path: str | None, *, once: bool = False) -> None:
        if self._output is not None:
            self.process.close(self._output)
        self._output, self._once = None, once
        if path is not None:
            self._output = self.process.open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)

    # Running.

    def run_argument(self, text: str) -> None:
        """SQL or a dot-command from the command line; the first error ends the program. Stop, Quit."""
        if text.startswith("."):
            if not self._dot(text):
                raise Stop(1)
            return
        rest = text
        for statement in split(self.process, text):
            try:
                self._statement(statement)
            except SqlError as error:
                what = "in prepare" if error.parsing else "stepping"
                self.process.stdout.flush()
                self.process.error(f"Error: {what}, {_message(error)}{_context(error, rest)}\n")
                raise Stop(error.code or 1) from None
            rest = rest[len(statement) :]

    def run_text(self, text: str) -> None:
        """Lines of SQL and dot-commands. Stop, Quit."""
        pending = ""
        started = 1
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            self.process.budget.charge()
            stripped = line.strip()
            if not pending.strip():
                if stripped.startswith("."):
                    if self.echo:
                        self.write(stripped + "\n")
                    if not self._dot(stripped):
                        self._failed()
                    continue
                pending, started = "", number
                if not stripped or stripped.startswith("--"):
                    continue
            pending += line
            if ";" in line or stripped.lower() in ("go", "/"):
                pending = self._complete(pending, started)
        if pending.strip():
            self._complete(pending + "\n;", started)

    def _complete(self, text: str, line: int) -> str:
        """Run the statements that are complete; what is left."""
        self.process.budget.charge_size(len(text))
        self.process.budget.charge(1 + len(text) // 256)
        if not _is_complete(text):
            return text
        if self.echo:
            self.write(text)
        rest = text.rstrip()
        for statement in split(self.process, text):
            try:
                self._statement(statement)
            except SqlError as error:
                what = "Parse" if error.parsing else "Runtime"
                self.process.stdout.flush()
                self.process.error(
                    f"{what} error near line {line}: {_message(error)}{_context(error, rest.lstrip())}\n"
                )
                self._failed()
                return ""
            rest = rest[len(statement) :]
        return ""

    def _failed(self) -> None:
        self.errors += 1
        if self.bail:
            raise Stop(1)

    def _statement(self, sql: str) -> None:
        if not sql.strip().strip(";").strip():
            return
        before = self.database.total_changes
        columns, rows = self.database.query(sql)
        if columns:
            for text in render(self.settings, columns, rows):
                self.write(text)
        else:
            list(rows)
        if self.changes:
            self.write(
                f"changes: {self.database.total_changes - before}   total_changes: {self.database.total_changes}\n"
            )
        if self._once:
            self.redirect(None)

    def _dot(self, line: str) -> bool:
        try:
            run(self, line)
        except (DotError, SqlError) as error:
            self.process.stdout.flush()
            self.process.error(f"Error: {error}\n")
            return False
        except SysError as error:
            self.process.stdout.flush()
            self.process.error(f'Error: cannot open "{error.path}"\n')
            return False
        return True


def _utf8(text: str) -> str:
    """The text as SQLite can take it: bytes that are no UTF-8 become question marks."""
    return text.encode("utf-8", "replace").decode()


def _bindable(row: Row) -> list[object]:
    return [_utf8(cell) if isinstance(cell, str) else cell for cell in row]


def _is_complete(sql: str) -> bool:
    return sqlite3.complete_statement(_utf8(sql).replace("\0", " "))


def _message(error: SqlError) -> str:
    return str(error) if error.parsing and error.code != sqlite3.SQLITE_NOTADB else f"{error} ({error.code})"


def _context(error: SqlError, sql: str) -> str:
    """The place SQLite points at, under the statement."""
    found = _NEAR.match(str(error))
    if found is None or not error.parsing:
        return ""
    token = found[1] if found[1] is not None else found[2]
    match = re.search(rf"(?<!\w){re.escape(token)}(?!\w)", sql) or re.search(re.escape(token), sql)
    if match is None:
        return ""
    at = match.start()
    cut = max(0, at - 50)
    shown, at = sql[cut : cut + 78], at - cut
    shown = re.sub(r"\s", " ", shown)
    if at < 25:
        return f"\n  {shown}\n  {' ' * at}^--- error here"
    return f"\n  {shown}\n  {' ' * (at - 14)}error here ---^"


def split(process: Process, text: str) -> Iterator[str]:
    """The statements of a text, each with its semicolon; the last may lack it."""
    start = position = 0
    while (at := text.find(";", position)) >= 0:
        position = at + 1
        piece = text[start:position]
        process.budget.charge(1 + len(piece) // 256)
        if _is_complete(piece):
            yield piece
            start = position
    if text[start:].strip():
        yield text[start:]


VALUED = frozenset("separator newline nullvalue cmd init vfs mmap lookaside pagecache maxsize nonce".split())


@utility("sqlite3")
def main(process: Process, args: list[str]) -> int:
    settings = Settings()
    names: list[str] = []
    before: list[str] = []
    flags: set[str] = set()
    rest = iter(args)
    for arg in rest:
        option = arg.removeprefix("-").removeprefix("-") if arg.startswith("-") and len(arg) > 1 else ""
        if not option:
            names.append(arg)
            continue
        if option in VALUED:
            value = next(rest, None)
            if value is None:
                process.error(f"{process.name}: Error: missing argument to {arg}\n")
                return 1
            if option == "separator":
                settings.separator = value.replace("\\t", "\t").replace("\\n", "\n")
            elif option == "newline":
                settings.row_separator = value.replace("\\n", "\n").replace("\\r", "\r")
            elif option == "nullvalue":
                settings.null = value
            elif option == "cmd":
                before.append(value)
            elif option == "init":
                before.append(f'.read "{value}"')
        elif option in MODE_OPTIONS:
            settings.set_mode(option)
            if option == "csv":  # only `.mode csv` ends rows as RFC 4180 has it
                settings.row_separator = "\n"
            if option == "column":  # `.mode column` turns them on, the option doesn't
                settings.headers = bool(settings.headers)
        elif option in ("header", "noheader"):
            settings.headers = option == "header"
        elif option == "version":
            process.print(f"{sqlite3.sqlite_version} 2022-12-28 14:03:47")
            return 0
        elif option == "help":
            process.print(str(__doc__).rstrip().partition("\n\n")[2])
            return 1
        elif option in ("bail", "echo", "readonly", "batch", "interactive", "safe", "stats", "nofollow", "deserialize"):
            flags.add(option)
        else:
            process.error(f"{process.name}: Error: unknown option: {arg}\nUse -help for a list of options.\n")
            return 1
    path = names[0] if names else ""
    try:
        database = Database(process, path, read_only="readonly" in flags)
    except SysError:
        process.error(f'Error: unable to open database "{path}": unable to open database file\n')
        return 1
    shell = Shell(process, database, settings)
    shell.bail, shell.echo = "bail" in flags, "echo" in flags
    try:
        return _run(shell, before, names[1:])
    finally:
        database.close()


def _run(shell: Shell, before: list[str], commands: list[str]) -> int:
    process = shell.process
    status = 0
    try:
        for text in (*before, *commands):
            shell.run_argument(text)
        if not commands:
            _run_input(shell)
    except Quit as end:
        status = end.status
    except Stop as end:
        status = end.status
    try:
        shell.database.save()
    except SysError as error:
        process.stdout.flush()
        process.error(f"Error: {error.reason}\n")
        return 1
    return status or min(shell.errors, 1)


def _run_input(shell: Shell) -> None:
    """Standard input: all of it, or line by line from a terminal, where changes are saved as they are made."""
    process = shell.process
    if not process.isatty(0):
        shell.run_text(fsdecode(process.read_file("-")))
        return
    process.print(f'SQLite version {sqlite3.sqlite_version}\nEnter ".help" for usage hints.')
    text = ""
    while True:
        process.stdout.write(b"sqlite> " if not text else b"   ...> ")
        process.stdout.flush()
        process.poll({0: POLLIN})
        line = fsdecode(process.read(0))
        if not line:
            process.print("")
            return
        text += line
        if _is_complete(text) or text.startswith(".") or not text.strip():
            shell.run_text(text)
            shell.database.save()
            text = ""
