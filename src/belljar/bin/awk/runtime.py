"""The state of a running awk program: variables, the record, streams, and what assigning a special variable does."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from belljar.bin.awk.errors import AwkFatal, AwkSyntaxError
from belljar.bin.awk.input import MainInput
from belljar.bin.awk.io import Streams, World
from belljar.bin.awk.lexer import decode_escapes
from belljar.bin.awk.order import sort_keys, table_order
from belljar.bin.awk.patterns import Pattern, compile_pattern
from belljar.bin.awk.reader import Separator, Source
from belljar.bin.awk.record import Record, Splitter, find_fields, make_splitter, parse_widths, split_csv, split_widths
from belljar.bin.awk.values import UNINIT, Array, Conversion, Value, numeric, strnum, to_number, truth, whole
from belljar.regex import RegexError

Hook = Callable[[Value], None]
DEFAULT_TIME_FORMAT = "%a %b %e %H:%M:%S %Z %Y"


class Separators:
    """OFS, ORS and OFMT as text, ready for print."""

    __slots__ = ("ofmt", "ofs", "ors")

    def __init__(self) -> None:
        self.ofs = " "
        self.ors = "\n"
        self.ofmt = "%.6g"


class Runtime:
    """Everything compiled code refers to."""

    def __init__(self, world: World, name: str, encoding: str, *, posix: bool = False, csv: bool = False) -> None:
        self.world = world
        self.name = name
        self.where = "cmd. line"
        self.posix = posix
        self.csv = csv
        self.charge = world.charge
        self.charge_size = world.charge_size
        self.conversion = Conversion()
        self.record = Record(self.conversion, world.charge)
        self.separators = Separators()
        self.streams = Streams(world, encoding, self.warn)
        self.input = MainInput(self)
        self.cells: dict[str, list[Value]] = {}
        self.arrays: dict[str, Array] = {}
        self.functions: dict[str, Any] = {}
        self.section = ""
        self.exit_status = 0
        self.cases_matter = False
        self.ignore_case = False
        self.splitting = "FS"
        self.random = Random(1)
        self.seed = 1.0
        self.depth = 0
        self.file_name = ""
        self._hooks: dict[str, Hook] = {
            "NF": lambda value: self.record.set_nf(to_number(value)),
            "NR": self._set_nr,
            "FNR": self._set_fnr,
            "FS": self._set_fs,
            "RS": self._set_rs,
            "OFS": self._set_ofs,
            "ORS": self._set_ors,
            "OFMT": self._set_ofmt,
            "CONVFMT": lambda value: self.conversion.set_format(self.conversion.string(value)),
            "FPAT": self._set_fpat,
            "FIELDWIDTHS": self._set_widths,
            "IGNORECASE": self._set_ignore_case,
        }
        self._start_values()

    def _start_values(self) -> None:
        for name, value in (
            ("FS", " "),
            ("OFS", " "),
            ("ORS", "\n"),
            ("RS", "\n"),
            ("SUBSEP", "\x1c"),
            ("CONVFMT", "%.6g"),
            ("OFMT", "%.6g"),
            ("FPAT", "[^[:space:]]+"),
            ("FIELDWIDTHS", ""),
            ("FILENAME", ""),
            ("RT", ""),
            ("ERRNO", ""),
            ("TEXTDOMAIN", "messages"),
        ):
            self.cells[name] = [value]
        for name, number in (
            ("NF", 0.0),
            ("NR", 0.0),
            ("FNR", 0.0),
            ("RSTART", 0.0),
            ("RLENGTH", -1.0),
            ("ARGIND", 0.0),
        ):
            self.cells[name] = [number]
        for name in ("IGNORECASE", "BINMODE", "LINT"):
            self.cells[name] = [0.0]
        environ = self.array("ENVIRON")
        for key, text in self.world.environment.items():
            environ[key] = strnum(text)
        procinfo = self.array("PROCINFO")
        procinfo.update(
            {
                "version": "5.2.1",
                "strftime": DEFAULT_TIME_FORMAT,
                "FS": "FS",
                "platform": "posix",
                "pid": float(self.world.pid),
                "ppid": float(self.world.ppid),
            }
        )
        if self.csv:
            self.record.general = self.record.splitter = split_csv  # type: ignore[assignment]
            self.splitting = "CSV"

    # -- variables ----------------------------------------------------------------------------------------------

    def cell(self, name: str) -> list[Value]:
        """The place of a global scalar."""
        found = self.cells.get(name)
        if found is None:
            found = self.cells[name] = [UNINIT]
        return found

    def array(self, name: str) -> Array:
        """The global array of that name."""
        found = self.arrays.get(name)
        if found is None:
            found = self.arrays[name] = {}
        return found

    def hook(self, name: str) -> Hook | None:
        """Return the function to call when this variable is assigned."""
        return self._hooks.get(name)

    def assign(self, name: str, text: str) -> None:
        """`name=text` from the command line."""
        if name in self.functions:
            raise AwkFatal(f"cannot use function `{name}' as variable name")
        if name in self.arrays and name not in self.cells:
            raise AwkFatal(f"cannot assign to array `{name}'")
        value = strnum(decode_escapes(text, self.streams.encoding != "utf-8"))
        self.cell(name)[0] = value
        hook = self._hooks.get(name)
        if hook is not None:
            hook(value)

    def _set_nr(self, value: Value) -> None:
        number = whole(to_number(value))
        self.record.nr_base += number - self.record.nr
        self.record.nr = number

    def _set_fnr(self, value: Value) -> None:
        self.record.nr_base = self.record.nr - whole(to_number(value))

    def _set_ofs(self, value: Value) -> None:
        if self.record.text is None:
            self.record.rebuild()
        self.record.ofs = self.separators.ofs = self.conversion.string(value)

    def _set_ors(self, value: Value) -> None:
        self.separators.ors = self.conversion.string(value)

    def _set_ofmt(self, value: Value) -> None:
        self.separators.ofmt = self.conversion.string(value)

    # -- splitting ----------------------------------------------------------------------------------------------

    def _set_fs(self, _value: Value) -> None:
        self.splitting = "FS"
        self._resplit()

    def _resplit(self) -> None:
        self.array("PROCINFO")["FS"] = self.splitting
        self.record.set_splitter(self._splitter())

    def _splitter(self) -> Splitter:
        if self.splitting == "CSV":
            return split_csv  # type: ignore[return-value]
        text = self.conversion.string
        try:
            if self.splitting == "FPAT":
                pattern = compile_pattern(text(self.cells["FPAT"][0]), self.ignore_case)
                return lambda record: find_fields(pattern, record)[0]  # type: ignore[return-value]
            if self.splitting == "FIELDWIDTHS":
                widths = parse_widths(text(self.cells["FIELDWIDTHS"][0]))
                return lambda record: split_widths(widths, record)  # type: ignore[return-value]
            separator = text(self.cells["FS"][0])
            return make_splitter(separator, self.ignore_case, self.streams.separator.kind == "paragraph")
        except RegexError as error:
            raise AwkFatal(f"invalid regexp: {error}: /{text(self.cells['FS'][0])}/") from error

    def _set_fpat(self, _value: Value) -> None:
        self.splitting = "FPAT"
        self._resplit()

    def _set_widths(self, _value: Value) -> None:
        self.splitting = "FIELDWIDTHS"
        self._resplit()

    def _set_rs(self, value: Value) -> None:
        separator = Separator(self.conversion.string(value), self.ignore_case)
        if separator.kind == "regex":
            self.dynamic_pattern(separator.text)
        was = self.streams.separator.kind
        self.streams.set_separator(separator)
        if self.input.reader is not None:
            self.input.reader.change_separator(separator)
        if "paragraph" in (was, separator.kind):
            self._resplit()

    def _set_ignore_case(self, value: Value) -> None:
        self.ignore_case = truth(value)
        self._resplit()
        self._set_rs(self.cells["RS"][0])

    # -- patterns -----------------------------------------------------------------------------------------------

    def dynamic_pattern(self, source: str, line: int = 0) -> Pattern:
        try:
            return compile_pattern(source, self.ignore_case)
        except RegexError as error:
            raise AwkFatal(f"invalid regexp: {error}: /{source}/", line) from error

    def compile_constant(self, source: str, line: int) -> Pattern:
        try:
            return compile_pattern(source)
        except RegexError as error:
            raise AwkSyntaxError(f"{self.name}: {self.where}:{line}: error: {error}: /{source}/\n") from error

    # -- input --------------------------------------------------------------------------------------------------

    def set_file(self, name: str, index: int) -> None:
        self.record.nr_base = self.record.nr
        self.file_name = name
        self.cells["FILENAME"][0] = name
        self.cells["ARGIND"][0] = float(index)

    def is_directory(self, source: Source, name: str) -> bool:
        """Opening a directory succeeds; only reading shows what it is."""
        check = getattr(source, "is_directory", None)
        return bool(check is not None and name and check())

    # -- arrays -------------------------------------------------------------------------------------------------

    def traversal(self, array: Array, line: int) -> list[str]:
        """The subscripts in the order `for (k in array)` takes them."""
        rule = self.arrays["PROCINFO"].get("sorted_in")
        if rule is not None:
            text = self.conversion.string(rule)
            if text and text != "@unsorted":
                return self.sorted_keys(array, text, line)
        return table_order(array)

    def sorted_keys(self, array: Array, rule: str, line: int) -> list[str]:
        self.charge(len(array) >> 2)
        return sort_keys(array, rule, self.conversion, self.functions, line)

    def compare(self, compare: Callable[[Any, Any], bool], left: Value, right: Value) -> bool:
        """awk's rule: as numbers when both are or look like ones, else as strings."""
        if type(left) is not str and type(right) is not str:
            first = numeric(left)
            if first is not None:
                second = numeric(right)
                if second is not None:
                    return compare(first, second)
        text = self.conversion.string
        if self.ignore_case:
            return compare(text(left).lower(), text(right).lower())
        return compare(text(left), text(right))

    # -- the rest -----------------------------------------------------------------------------------------------

    def reseed(self, seed: float) -> float:
        old, self.seed = self.seed, seed
        self.random.seed(seed)
        return old

    def large_string(self, size: int) -> None:
        """A long string is about to be built, or just was."""
        self.charge_size(size)
        self.charge(size >> 10)

    def default_time_format(self) -> str:
        return self.conversion.string(self.arrays["PROCINFO"].get("strftime", DEFAULT_TIME_FORMAT))

    def prefix(self, line: int) -> str:
        place = f"{self.where}:{line}: " if line else ""
        if self.section in ("", "END") and self.record.nr:
            name = self.file_name or "-"
            place += f"(FILENAME={name} FNR={self.record.nr - self.record.nr_base}) "
        return f"{self.name}: {place}"

    def warn(self, message: str, line: int) -> None:
        self.streams.stdout.flush()
        self.streams.stderr.write(f"{self.prefix(line)}warning: {message}\n")

    def warn_plain(self, message: str) -> None:
        self.streams.stdout.flush()
        self.streams.stderr.write(f"{self.name}: warning: {message}\n")
