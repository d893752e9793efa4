"""The current record: $0, its fields (split only when somebody looks), NF, and how FS, FPAT and FIELDWIDTHS split."""

from __future__ import annotations

import re
from collections.abc import Callable

from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.patterns import Pattern, compile_pattern
from belljar.bin.awk.values import NUMERIC_START, Conversion, FieldText, StrNum, Value, strnum, whole

Splitter = Callable[[str], list[Value]]

ODD_SPACES = "\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    chr(code) for code in range(0x2000, 0x200B)
)
"""Characters str.split() takes for blanks and awk does not."""

_ODD = re.compile(f"[{ODD_SPACES}]")
_COUNT = re.compile(r"[0-9]{1,9}")
_WORD = re.compile(r"[^ \t\n]+")


def split_blanks(text: str) -> list[str]:
    """FS = " ": runs of blank, tab and newline separate, and count for nothing at the ends."""
    if _ODD.search(text) is None:
        return text.split()
    return _WORD.findall(text)


def split_pattern(pattern: Pattern, text: str) -> tuple[list[str], list[str]]:
    """Cut `text` at the non-empty matches; gives the pieces and what was between them."""
    if not text:
        return [], []
    pieces: list[str] = []
    separators: list[str] = []
    at = 0
    for start, end in pattern.spans(text):
        if start == end:
            continue
        pieces.append(text[at:start])
        separators.append(text[start:end])
        at = end
    pieces.append(text[at:])
    return pieces, separators


def make_splitter(fs: str, ignore_case: bool, paragraph: bool) -> Splitter:
    """The function that splits a record by FS; `paragraph`: RS is "", so newlines separate too."""
    if fs == " ":
        return split_blanks  # type: ignore[return-value]
    if fs == "":
        return list
    if len(fs) == 1 and fs != "\\" and not (ignore_case and fs.isalpha()):
        if not paragraph or fs == "\n":
            return lambda text: text.split(fs) if text else []  # type: ignore[return-value]
        return lambda text: text.replace("\n", fs).split(fs) if text else []  # type: ignore[return-value]
    source = "\\\\" if fs == "\\" else fs
    if paragraph:
        source = f"({source})|\n"
    pattern = compile_pattern(source, ignore_case)
    if pattern.literal:
        literal = pattern.literal
        return lambda text: text.split(literal) if text else []  # type: ignore[return-value]
    return lambda text: split_pattern(pattern, text)[0]  # type: ignore[return-value]


def find_fields(pattern: Pattern, text: str) -> tuple[list[str], list[str]]:
    """FPAT: the matches are the fields, what lies between are the separators (one more than fields)."""
    pieces: list[str] = []
    separators: list[str] = []
    at = 0
    last_end = -1
    for start, end in pattern.spans(text):
        if start == end and start == last_end:
            continue
        if start == end == len(text) == at and pieces:
            # An empty match at the very end is a field only after a separator.
            continue
        pieces.append(text[start:end])
        separators.append(text[at:start])
        at = last_end = end
    separators.append(text[at:])
    return pieces, separators


def parse_widths(text: str) -> list[tuple[int, int]]:
    """FIELDWIDTHS as (skip, width) pairs; `*` is width -1. Raises AwkFatal for a wrong value."""
    widths: list[tuple[int, int]] = []
    for number, item in enumerate(text.split(), 1):
        skip, _, width = item.rpartition(":")
        if width == "*" and not skip:
            widths.append((0, -1))
        elif _COUNT.fullmatch(width) and (not skip or _COUNT.fullmatch(skip)) and int(width) > 0:
            widths.append((int(skip or 0), int(width)))
        else:
            raise AwkFatal(f"invalid FIELDWIDTHS value, for field {number}, near `{item}'")
    return widths


def split_widths(widths: list[tuple[int, int]], text: str) -> list[str]:
    pieces: list[str] = []
    at = 0
    for skip, width in widths:
        at += skip
        if at >= len(text):
            break
        if width < 0:
            pieces.append(text[at:])
            break
        pieces.append(text[at : at + width])
        at += width
    return pieces


_CSV = re.compile(r'"((?:[^"]|"")*)"?([^,]*)(?:,|$)|([^,]*)(?:,|$)')


def split_csv(text: str) -> list[str]:
    """--csv: commas separate, double quotes protect, "" is a quote."""
    pieces: list[str] = []
    at = 0
    while text and at <= len(text):
        match = _CSV.match(text, at)
        if match is None:
            break
        if match.group(3) is not None:
            pieces.append(match.group(3))
        else:
            pieces.append(match.group(1).replace('""', '"') + match.group(2))
        if not match.group().endswith(",") or match.end() == at:
            break
        at = match.end()
        if at == len(text):
            pieces.append("")
            break
    return pieces


class Record:
    """$0 and its fields.

    `text` is None while $0 must be rebuilt from the fields; `fields` is None while nobody has looked at them.
    A plain str among the fields was read and may look numeric; assigned values are float or FieldText.
    """

    __slots__ = ("charge", "conversion", "fields", "general", "literal", "nr", "nr_base", "ofs", "splitter", "text")

    def __init__(self, conversion: Conversion, charge: Callable[[int], None]) -> None:
        self.text: str | None = ""
        self.literal: str | None = None
        """The string $0 was assigned: as long as it is $0, that does not look numeric, whatever it spells."""
        self.fields: list[Value] | None = None
        self.splitter: Splitter = split_blanks  # type: ignore[assignment]
        self.general: Splitter = split_blanks  # type: ignore[assignment]
        self.nr = 0
        self.nr_base = 0
        self.ofs = " "
        self.conversion = conversion
        self.charge = charge

    def split(self) -> list[Value]:
        text = self.text
        if text is None:
            text = self.rebuild()
        self.fields = fields = self.splitter(text)
        return fields

    def rebuild(self) -> str:
        fields = self.fields or []
        if len(fields) > 256:
            self.charge(len(fields) >> 4)
        try:
            text = self.ofs.join(fields)  # type: ignore[arg-type]
        except TypeError:
            string = self.conversion.string
            text = self.ofs.join([f if type(f) is str else string(f) for f in fields])
        self.text = text
        return text

    def set_text(self, text: str) -> None:
        self.text = text
        self.fields = None
        self.splitter = self.general
        self.literal = None

    def set_splitter(self, splitter: Splitter) -> None:
        """A new FS counts from the next record on: split this one by the old."""
        if self.fields is None:
            self.split()
        self.general = self.splitter = splitter

    def get_text(self) -> str:
        text = self.text
        return self.rebuild() if text is None else text

    def get_string(self, index: int) -> str:
        if index == 0:
            return self.get_text()
        value = self._field(index)
        return value if type(value) is str else self.conversion.string(value)

    def get(self, index: int) -> Value:
        """The value of $index, as it compares."""
        if index == 0:
            text = self.get_text()
            return text if text is self.literal else strnum(text)
        value = self._field(index)
        if type(value) is str:
            return strnum(value)
        return value.s if type(value) is FieldText else value

    def _field(self, index: int) -> Value:
        fields = self.fields
        if fields is None:
            fields = self.split()
        if index < 0:
            raise AwkFatal(f"attempt to access field {index}")
        return fields[index - 1] if index <= len(fields) else ""

    def set(self, index: int, value: Value) -> None:
        if index == 0:
            self.set_text(self.conversion.string(value))
            self.literal = value if type(value) is str else None
            return
        if index < 0:
            raise AwkFatal(f"attempt to access field {index}")
        fields = self.fields
        if fields is None:
            fields = self.split()
        if index > len(fields):
            self._extend(index)
        if type(value) is str:
            if value and value[0] in NUMERIC_START:
                value = FieldText(value)
        elif type(value) is StrNum:
            value = value.s
        fields[index - 1] = value
        self.text = None

    def _extend(self, count: int) -> None:
        fields = self.fields
        assert fields is not None
        grow = count - len(fields)
        if grow > 1000:
            if count > 50_000_000:
                raise AwkFatal("fatal: memory exhausted: too many fields")
            self.charge(grow)
        fields.extend([""] * grow)

    def get_nf(self) -> float:
        fields = self.fields
        if fields is None:
            fields = self.split()
        return float(len(fields))

    def set_nf(self, number: float) -> None:
        if number < 0:
            raise AwkFatal("NF set to negative value")
        fields = self.fields
        if fields is None:
            fields = self.split()
        count = whole(number)
        if count < len(fields):
            del fields[count:]
        else:
            self._extend(count)
        self.text = None
