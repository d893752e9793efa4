"""sort - sort lines of text files

Usage: sort [OPTION]... [FILE]...
       sort [OPTION]... --files0-from=F

Write sorted concatenation of all FILE(s) to standard output. With no FILE, or when FILE is -, read standard input.
KEYDEF is F[.C][OPTS][,F[.C][OPTS]] for start and stop position, where F is a field number and C a character position
in the field; both are origin 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from heapq import merge as heap_merge
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from belljar.abi.dataclass import dataclass, replace
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, flag, line_batches, many, utility, value
from belljar.bin._kit.files0 import files0_entries
from belljar.bin._kit.quoting import quote, quote_if_odd
from belljar.bin.sort.debug import underlined
from belljar.bin.sort.keys import Key, KeySpec, check_orders, comparer, extractor, numeric, parse_key
from belljar.kernel.process import Process

_MOST_FILES = 1021
_WORDS = {"general-numeric": "g", "human-numeric": "h", "month": "M", "numeric": "n", "random": "R", "version": "V"}


@dataclass(frozen=True, slots=True)
class Options:
    ignore_leading_blanks: bool = flag("-b", "--ignore-leading-blanks", "ignore leading blanks")
    dictionary_order: bool = flag("-d", "--dictionary-order", "consider only blanks and alphanumeric characters")
    ignore_case: bool = flag("-f", "--ignore-case", "fold lower case to upper case characters")
    general_numeric: bool = flag("-g", "--general-numeric-sort", "compare according to general numerical value")
    ignore_nonprinting: bool = flag("-i", "--ignore-nonprinting", "consider only printable characters")
    month: bool = flag("-M", "--month-sort", "compare (unknown) < 'JAN' < ... < 'DEC'")
    human_numeric: bool = flag("-h", "--human-numeric-sort", "compare human readable numbers (e.g., 2K 1G)")
    numeric: bool = flag("-n", "--numeric-sort", "compare according to string numerical value")
    random: bool = flag("-R", "--random-sort", "shuffle, but group identical keys")
    random_source: str | None = value("--random-source", "get random bytes from FILE", metavar="FILE")
    reverse: bool = flag("-r", "--reverse", "reverse the result of comparisons")
    sort: str | None = value("--sort", "sort according to WORD: general-numeric, human-numeric, ...", metavar="WORD")
    version_sort: bool = flag("-V", "--version-sort", "natural sort of (version) numbers within text")
    batch_size: str | None = value("--batch-size", "merge at most NMERGE inputs at once", metavar="NMERGE")
    check: str | None = value("--check", "check for sorted input; do not sort", metavar="WHEN", bare="diagnose-first")
    check_first: bool = flag("-c", "check for sorted input; do not sort")
    check_quiet: bool = flag("-C", "like -c, but do not report first bad line")
    compress: str | None = value("--compress-program", "(ignored)", metavar="PROG")
    debug: bool = flag("--debug", "underline the part of each line that is compared")
    files0: str | None = value("--files0-from", "read input from the NUL-terminated names in file F", metavar="F")
    keys: tuple[str, ...] = many("-k", "--key", "sort via a key", metavar="KEYDEF")
    merge: bool = flag("-m", "--merge", "merge already sorted files; do not sort")
    outputs: tuple[str, ...] = many("-o", "--output", "write result to FILE instead of standard output", metavar="FILE")
    stable: bool = flag("-s", "--stable", "stabilize sort by disabling last-resort comparison")
    buffer_size: str | None = value("-S", "--buffer-size", "(ignored)", metavar="SIZE")
    separators: tuple[str, ...] = many("-t", "--field-separator", "use SEP for fields", metavar="SEP")
    temporary: tuple[str, ...] = many("-T", "--temporary-directory", "(ignored)", metavar="DIR")
    parallel: str | None = value("--parallel", "(ignored)", metavar="N")
    unique: bool = flag("-u", "--unique", "output only the first of an equal run; with -c, check for strict ordering")
    zero: bool = flag("-z", "--zero-terminated", "line delimiter is NUL, not newline")


_POSITION = r"(\d{1,18})\d*(?:\.(\d{1,18})\d*)?([bdfgiMhnRrV]*)"


def spell_out_keys(args: list[str]) -> list[str]:
    """The obsolete +POS1 [-POS2], counted from 0, as -k."""
    done: list[str] = []
    index = 0
    while index < len(args):
        arg = args[index]
        index += 1
        if arg == "--":
            return [*done, arg, *args[index:]]
        start = re.fullmatch(r"\+" + _POSITION, arg, re.ASCII)
        if start is None or (done and done[-1] in ("-t", "-k", "-o", "-S", "-T")):
            done.append(arg)
            continue
        key = f"{int(start[1]) + 1}.{int(start[2] or 0) + 1}{start[3]}"
        end = re.fullmatch("-" + _POSITION, args[index], re.ASCII) if index < len(args) else None
        if end is not None:
            index += 1
            chars = int(end[2] or 0)
            key += f",{int(end[1]) + 1}.{chars}{end[3]}" if chars else f",{int(end[1])}{end[3]}"
        done += ["-k", key]
    return done


_CHECKS: Final = ("quiet", "silent", "diagnose-first")


@utility("sort", Options, usage_status=2, rewrite=spell_out_keys)
def main(process: Process, options: Options, operands: list[str]) -> int:
    check_numbers(process, options)
    if options.debug and options.outputs:
        raise UsageError("options '-o --debug' are incompatible", hint=False)
    for name, text, words in (("sort", options.sort, sorted(_WORDS)), ("check", options.check, _CHECKS)):
        if text is not None and len([word for word in words if word.startswith(text)]) != 1:
            listed = "".join(f"\n  - \u2018{word}\u2019" for word in words)
            listed = listed.replace("\n  - \u2018silent", ", \u2018silent")
            process.warn(f"invalid argument \u2018{text}\u2019 for \u2018--{name}\u2019\nValid arguments are:{listed}")
            process.error(f"Try '{process.name} --help' for more information.\n")
            return 1
    ordering = Ordering(process, options)
    names = operands or ["-"]
    if options.files0 is not None:
        if operands:
            process.warn(f"extra operand '{operands[0]}'")
            process.error("file operands cannot be combined with --files0-from\n")
            process.error(f"Try '{process.name} --help' for more information.\n")
            return 2
        try:
            if options.files0 != "-":
                process.close(process.open(options.files0))
        except SysError as error:
            raise UsageError(f"open failed: {options.files0}: {error.reason}", hint=False) from None
        entries = files0_entries(process, options.files0)
        found = list(entries) if entries is not None else [None]
        if not found:
            raise UsageError(f"no input from '{options.files0}'", hint=False)
        names = [name for name in found if name is not None]
        if len(names) < len(found):
            return 2
    if len(set(options.outputs)) > 1:
        raise UsageError("multiple output files specified", hint=False)
    quiet = options.check_quiet or options.check in ("quiet", "silent")
    loud = options.check_first or (options.check is not None and not quiet)
    if quiet or loud:
        clash = "c" * loud + "C" * quiet + "o" * bool(options.outputs)
        if len(clash) > 1:
            raise UsageError(f"options '-{clash}' are incompatible", hint=False)
        if len(names) > 1:
            raise UsageError(f"extra operand '{names[1]}' not allowed with -c", hint=False)
        return ordering.check(names[0], quiet=quiet)
    for name in names:
        if name != "-":
            try:
                process.fs.access(name, 4)
            except SysError as error:
                raise UsageError(f"cannot read: {quote_if_odd(name)}: {error.reason}", hint=False) from None
    lines: Iterable[bytes] = ordering.merged(names) if options.merge else ordering.sorted(names)
    if options.debug:
        rules = f"using {quote(_locale(process), process.env)} sorting rules"
        process.warn(f"text ordering performed {rules if _locale(process) else 'using simple byte comparison'}")
        for warning in ordering.warnings():
            process.warn(warning)
        lines = ordering.underlined(lines)
    write(process, options, lines, ordering.newline)
    return 0


def _locale(process: Process) -> str:
    """The name of the locale that texts are ordered by; empty for C and POSIX."""
    env = process.env
    name = env.get("LC_ALL") or env.get("LC_COLLATE") or env.get("LANG") or "C"
    return "" if name in ("C", "POSIX") else name


def check_numbers(process: Process, options: Options) -> None:
    """Numbers that change nothing here must be right all the same."""
    if options.parallel is not None:
        if not re.fullmatch(r"\+?\d+", options.parallel, re.ASCII):
            raise UsageError(f"invalid --parallel argument '{options.parallel}'", hint=False)
        if int(options.parallel[:20]) == 0:
            raise UsageError("number in parallel must be nonzero", hint=False)
    if options.buffer_size is not None:
        match = re.fullmatch(r"\+?\d+(.*)", options.buffer_size, re.ASCII | re.DOTALL)
        if match is None:
            raise UsageError(f"invalid -S argument '{options.buffer_size}'", hint=False)
        if not re.fullmatch(r"%|b|[kKmMGTPEZYRQ]?", match[1]):
            raise UsageError(f"invalid suffix in -S argument '{options.buffer_size}'", hint=False)
    if options.batch_size is not None:
        shown = quote(options.batch_size, process.env)
        if not re.fullmatch(r"\+?\d+", options.batch_size, re.ASCII):
            raise UsageError(f"invalid --batch-size argument '{options.batch_size}'", hint=False)
        if int(options.batch_size[:30]) < 2:
            process.warn(f"invalid --batch-size argument {shown}")
            raise UsageError(f"minimum --batch-size argument is {quote('2', process.env)}", hint=False)
        if int(options.batch_size[:30]) > _MOST_FILES:
            process.warn(f"--batch-size argument {shown} too large")
            raise UsageError(
                f"maximum --batch-size argument with current rlimit is {quote(str(_MOST_FILES), process.env)}",
                hint=False,
            )


def write(process: Process, options: Options, lines: Iterable[bytes], newline: bytes) -> None:
    if not options.outputs:
        for block in _blocks(lines, newline):
            process.stdout.write(block)
        return
    # The output may be one of the inputs: everything is read before it is opened.
    data = list(_blocks(lines, newline))
    try:
        process.write_file(options.outputs[0], b"".join(data))
    except SysError as error:
        raise UsageError(f"open failed: {options.outputs[0]}: {error.reason}", hint=False) from None


def _blocks(lines: Iterable[bytes], newline: bytes) -> Iterator[bytes]:
    if isinstance(lines, list):
        for start in range(0, len(lines), 1 << 14):
            yield newline.join(lines[start : start + (1 << 14)]) + newline
        return
    block: list[bytes] = []
    for line in lines:
        block.append(line)
        if len(block) >= 1 << 10:
            yield newline.join(block) + newline
            block = []
    if block:
        yield newline.join(block) + newline


@dataclass(frozen=True, slots=True)
class Pass:
    """One stable sort, by one key."""

    key: Key | None
    reverse: bool


class Ordering:
    """How lines compare, by the options; and what is done with that."""

    def __init__(self, process: Process, options: Options) -> None:
        self._process = process
        self.newline = b"\0" if options.zero else b"\n"
        self._unique = options.unique
        self._separator = _separator(options.separators)
        orders = _global_orders(options)
        check_orders(orders)
        specs = [parse_key(text) for text in options.keys]
        # A key without orders of its own takes the global ones.
        specs = [
            replace(s, orders=orders, skip_start="b" in orders, skip_end="b" in orders) if not s.orders else s
            for s in specs
        ] or [KeySpec(orders=orders, skip_start="b" in orders, skip_end="b" in orders)]
        salt = b""
        if any("R" in spec.orders for spec in specs):
            salt = _random_bytes(process, options.random_source)
        self._keyed = bool(options.keys)
        self._specs = [spec for spec in specs if options.keys or spec.orders.strip("r")]
        self._passes = [Pass(self._key(spec, salt), spec.reverse) for spec in specs]
        plain = len(self._passes) == 1 and self._passes[0].key is None
        if not (plain or options.stable or options.unique):
            self._passes.append(Pass(None, options.reverse))
        self._last_resort = not (options.stable or options.unique) or not self._specs

    def _key(self, spec: KeySpec, salt: bytes) -> Key | None:
        if "n" in spec.orders:
            return numeric(spec, self._separator)
        compare = comparer(spec.orders, salt)
        if spec.whole_line:
            return compare
        extract = extractor(spec, self._separator)
        if compare is None:
            return extract
        return lambda line: compare(extract(line))

    def _read(self, names: list[str]) -> list[bytes]:
        budget = self._process.budget
        lines: list[bytes] = []
        size = 0
        for name in names:
            try:
                for batch in line_batches(self._process, name, self.newline):
                    lines += batch
                    size += sum(map(len, batch)) + 8 * len(batch)
                    budget.charge(len(batch) // 8 + 1)
                    budget.charge_size(size)
            except SysError as error:
                raise UsageError(f"read failed: {name}: {error.reason}", hint=False) from None
        return lines

    def sorted(self, names: list[str]) -> list[bytes]:
        lines = self._read(names)
        for step in reversed(self._passes):
            lines.sort(key=step.key, reverse=step.reverse)
        return [next(group) for _, group in groupby(lines, self._identity())] if self._unique else lines

    def warnings(self) -> Iterator[str]:
        """Yield --debug's warnings about the keys."""
        numeric = [spec for spec in self._specs if set(spec.orders) & set("ghn")]
        for number, spec in enumerate(self._specs if self._separator is None and self._keyed else (), 1):
            (_, start), (end_field, end) = spec.start, spec.end
            implicit = spec in numeric or "M" in spec.orders
            if end_field == 1 and end:
                continue
            if (not spec.skip_start and (not implicit or start > 1)) or (end and not spec.skip_end):
                yield f"leading blanks are significant in key {number}; consider also specifying 'b'"
        if numeric:
            point = quote(".", self._process.env)
            yield f"note numbers use {point} as a decimal point in this locale"

    def underlined(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines, each with what its keys are."""
        return underlined(lines, self._specs, self._separator, last_resort=self._last_resort)

    def _identity(self) -> Key:
        keys = [step.key for step in self._passes]
        if len(keys) == 1:
            return keys[0] or _itself
        return lambda line: tuple(key(line) if key else line for key in keys)

    def merged(self, names: list[str]) -> Iterator[bytes]:
        streams = [
            ((self._rank(line), line) for line in line_batches(self._process, name, self.newline).lines())
            for name in names
        ]
        pairs: Iterator[tuple[Any, bytes]] = heap_merge(*streams, key=itemgetter(0))
        if self._unique:
            pairs = (next(group) for _, group in groupby(pairs, itemgetter(0)))
        for _, line in pairs:
            self._process.budget.charge()
            yield line

    def _rank(self, line: bytes) -> tuple[Any, ...]:
        return tuple(
            _Reversed(step.key(line) if step.key else line) if step.reverse else (step.key(line) if step.key else line)
            for step in self._passes
        )

    def check(self, name: str, *, quiet: bool) -> int:
        """0 if in order, else 1 after saying where it is not."""
        last: tuple[Any, ...] | None = None
        shown = "-" if name == "-" else name
        for number, line in enumerate(line_batches(self._process, name, self.newline).lines(), 1):
            self._process.budget.charge()
            rank = self._rank(line)
            if last is not None and (rank < last or (self._unique and not last < rank)):
                if not quiet:
                    text = line.decode("utf-8", "surrogateescape")
                    self._process.error(f"{self._process.name}: {shown}:{number}: disorder: {text}\n")
                return 1
            last = rank
        return 0


class _Reversed:
    """A key that compares the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)


def _itself(line: bytes) -> bytes:
    return line


def _separator(given: tuple[str, ...]) -> bytes | None:
    found: bytes | None = None
    for text in given:
        raw = b"\0" if text == "\\0" else fsencode(text)
        if not raw:
            raise UsageError("empty tab", hint=False)
        if len(raw) > 1:
            raise UsageError(f"multi-character tab \u2018{text}\u2019", hint=False)
        if found is not None and raw != found:
            raise UsageError("incompatible tabs", hint=False)
        found = raw
    return found


def _global_orders(options: Options) -> str:
    orders = "".join(
        letter
        for letter, given in zip(
            "bdfgiMhnRrV",
            (
                options.ignore_leading_blanks, options.dictionary_order, options.ignore_case,
                options.general_numeric, options.ignore_nonprinting, options.month, options.human_numeric,
                options.numeric, options.random, options.reverse, options.version_sort,
            ),
            strict=True,
        )
        if given
    )  # fmt: skip
    if options.sort is not None:
        full = [word for word in _WORDS if word.startswith(options.sort)]
        orders += _WORDS[full[0]]
    return orders


def _random_bytes(process: Process, source: str | None) -> bytes:
    if source is None:
        return process.kernel.machine.entropy.random_bytes(16)
    try:
        fd = process.open(source)
    except SysError as error:
        raise UsageError(f"open failed: {source}: {error.reason}", hint=False) from None
    try:
        return process.read(fd, 16)
    finally:
        process.close(fd)
