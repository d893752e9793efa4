"""tr - translate or delete characters

Usage: tr [OPTION]... STRING1 [STRING2]

Translate, squeeze, and/or delete characters from standard input, writing to standard output. Sets are strings of
characters; \\NNN (octal), \\n and the like, ranges a-z, classes [:alpha:], [=c=], and in SET2 repeats [c*] and [c*n]
are understood.
"""

import re
from collections.abc import Callable

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, flag, utility
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    complement: bool = flag("-c", "-C", "--complement", "use the complement of SET1")
    delete: bool = flag("-d", "--delete", "delete characters in SET1, do not translate")
    squeeze: bool = flag("-s", "--squeeze-repeats", "replace each repeat of a character of the last SET with one")
    truncate: bool = flag("-t", "--truncate-set1", "first truncate SET1 to length of SET2")


_CLASSES: dict[str, Callable[[int], bool]] = {
    "alnum": lambda b: b < 128 and chr(b).isalnum(),
    "alpha": lambda b: b < 128 and chr(b).isalpha(),
    "blank": lambda b: b in b" \t",
    "cntrl": lambda b: b < 32 or b == 127,
    "digit": lambda b: 48 <= b <= 57,
    "graph": lambda b: 33 <= b <= 126,
    "lower": lambda b: 97 <= b <= 122,
    "print": lambda b: 32 <= b <= 126,
    "punct": lambda b: 33 <= b <= 126 and not chr(b).isalnum(),
    "space": lambda b: 9 <= b <= 13 or b == 32,
    "upper": lambda b: 65 <= b <= 90,
    "xdigit": lambda b: chr(b) in "0123456789abcdefABCDEF",
}
_ESCAPES = {97: 7, 98: 8, 102: 12, 110: 10, 114: 13, 116: 9, 118: 11, 92: 92}


@dataclass(slots=True)
class Item:
    """A stretch of a set: characters, a class (its name kept for case conversion), or a repeat (count -1: fill)."""

    chars: bytes
    name: str = ""
    repeat: int = 1
    equivalent: bool = False
    """Whether it was written [=c=]."""


@utility("tr", Options, order="first-operand-ends")
def main(process: Process, options: Options, operands: list[str]) -> int:
    check_operands(options, operands)
    for text in operands:
        warn_of_escapes(process, fsencode(text))
    set1 = parse_set(operands[0], second=False)
    set2 = parse_set(operands[1], second=True) if len(operands) > 1 else None
    table, delete, squeeze = plan(options, set1, set2)
    pattern = re.compile(b"([" + b"".join(b"\\x%02x" % b for b in squeeze) + b"])\\1+") if squeeze else None
    last = b""
    while data := process.read(0):
        process.budget.charge(len(data) >> 12)
        data = data.translate(table, delete)
        if pattern is not None and data:
            if data[:1] == last and last[0] in squeeze:
                data = data.lstrip(last)
                if not data:
                    continue
            data = pattern.sub(rb"\1", data)
            last = data[-1:]
        process.stdout.write(data)
        if not process.fds[0].handle.seekable:
            process.stdout.flush()
    return 0


def check_operands(options: Options, operands: list[str]) -> None:
    least = 1 if options.delete != options.squeeze or (options.delete and not options.squeeze) else 2
    most = 1 if options.delete and not options.squeeze else 2
    if not operands:
        raise UsageError("missing operand")
    if len(operands) < least or (options.delete and options.squeeze and len(operands) < 2):
        after = "Two strings must be given when both deleting and squeezing repeats."
        if not options.delete:
            after = "Two strings must be given when translating."
        raise UsageError(f"missing operand after \u2018{operands[-1]}\u2019\n{after}")
    if len(operands) > most:
        extra = f"extra operand \u2018{operands[most]}\u2019"
        if most == 1 and len(operands) == 2:
            extra += "\nOnly one string may be given when deleting without squeezing repeats."
        raise UsageError(extra)


def plan(options: Options, items1: list[Item], items2: list[Item] | None) -> tuple[bytes | None, bytes, frozenset[int]]:
    """The translation table, the bytes to delete, and the bytes whose repeats shrink."""
    set1 = b"".join(item.chars * max(item.repeat, 0) for item in items1)
    if options.complement:
        chosen = set(set1)
        set1 = bytes(b for b in range(256) if b not in chosen)
    if options.delete:
        squeeze = frozenset(expand_second(items2, 0)) if options.squeeze and items2 is not None else frozenset[int]()
        return None, bytes(sorted(set(set1))), squeeze
    if items2 is None:
        return None, b"", frozenset(set1)
    if not options.complement:
        check_classes(items1, items2)
    elif any(item.name in ("upper", "lower") for item in items2):
        pass
    set2 = expand_second(items2, len(set1))
    if options.truncate:
        set1 = set1[: len(set2)]
    elif len(set2) < len(set1):
        if not set2:
            raise UsageError("when not truncating set1, string2 must be non-empty", hint=False)
        if items2[-1].name and not (items1 and items1[-1].name and not options.complement):
            raise UsageError(
                "when translating with string1 longer than string2,\n"
                "the latter string must not end with a character class",
                hint=False,
            )
        set2 += set2[-1:] * (len(set1) - len(set2))
    if options.complement and any(item.name for item in (*items1, *items2)) and len(set(set2)) > 1:
        raise UsageError(
            "when translating with complemented character classes,\n"
            "string2 must map all characters in the domain to one",
            hint=False,
        )
    table = bytearray(range(256))
    for source, target in zip(set1, set2, strict=False):
        table[source] = target
    return bytes(table), b"", frozenset(set2) if options.squeeze else frozenset()


def check_classes(items1: list[Item], items2: list[Item]) -> None:
    """In SET2 only [:upper:] and [:lower:] make sense, and only opposite one of them in SET1."""
    if any(item.equivalent for item in items2):
        raise UsageError("[=c=] expressions may not appear in string2 when translating", hint=False)
    if any(item.name and item.name not in ("upper", "lower") for item in items2):
        raise UsageError(
            "when translating, the only character classes that may appear in\nstring2 are 'upper' and 'lower'",
            hint=False,
        )
    starts1, position = {}, 0
    for item in items1:
        starts1[position] = item
        position += len(item.chars) * item.repeat
    position = 0
    for item in items2:
        if item.name:
            partner = starts1.get(position)
            if partner is None or partner.name not in ("upper", "lower"):
                raise UsageError("misaligned [:upper:] and/or [:lower:] construct", hint=False)
        position += len(item.chars) * max(item.repeat, 0)


def expand_second(items: list[Item], length: int) -> bytes:
    """SET2 as bytes; `[c*]` fills it up to the length of SET1."""
    fixed = sum(len(item.chars) * item.repeat for item in items if item.repeat >= 0)
    return b"".join(item.chars * (item.repeat if item.repeat >= 0 else max(0, length - fixed)) for item in items)


def parse_set(text: str, *, second: bool) -> list[Item]:
    raw, escaped = unescape(fsencode(text))
    items: list[Item] = []
    index = 0
    while index < len(raw):
        if raw[index : index + 1] == b"[" and not escaped[index]:
            found = _bracket(raw, escaped, index, second)
            if found is not None:
                item, index = found
                items.append(item)
                continue
        if index + 2 < len(raw) and raw[index + 1] == 45 and not escaped[index + 1]:
            low, high = raw[index], raw[index + 2]
            if low > high:
                shown = f"{_show(low)}-{_show(high)}"
                raise UsageError(f"range-endpoints of '{shown}' are in reverse collating sequence order", hint=False)
            items.append(Item(bytes(range(low, high + 1))))
            index += 3
            continue
        items.append(Item(raw[index : index + 1]))
        index += 1
    return items


def _show(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"


def warn_of_escapes(process: Process, raw: bytes) -> None:
    """Warn of a backslash at the end, and of octal numbers that are no byte."""
    for match in _ESCAPED.finditer(raw):
        if match[1] == b"":
            process.warn("warning: an unescaped backslash at end of string is not portable")
        elif match[2] and int(match[2], 8) > 255:
            digits = match[2].decode()
            process.warn(
                f"warning: the ambiguous octal escape \\{digits} is being\n\tinterpreted as the 2-byte sequence "
                f"\\0{digits[:2]}, {digits[2]}"
            )


_ESCAPED = re.compile(rb"\\(([0-7]{3})|.|\Z)", re.S)


def unescape(raw: bytes) -> tuple[bytes, list[bool]]:
    """The characters, and for each whether it was written with a backslash."""
    out, escaped = bytearray(), list[bool]()
    index = 0
    while index < len(raw):
        byte = raw[index]
        index += 1
        if byte != 92 or index == len(raw):
            out.append(byte)
            escaped.append(False)
            continue
        match = re.compile(rb"[0-7]{1,3}").match(raw, index)
        if match is not None:
            digits = match[0] if int(match[0], 8) < 256 else match[0][:2]
            out.append(int(digits, 8))
            index += len(digits)
        else:
            out.append(_ESCAPES.get(raw[index], raw[index]))
            index += 1
        escaped.append(True)
    return bytes(out), escaped


_CLASS = re.compile(rb"\[:(.*?):\]", re.S)
_REPEAT = re.compile(rb"\[(.)\*([^\]]*)\]", re.S)


def _bracket(raw: bytes, escaped: list[bool], index: int, second: bool) -> tuple[Item, int] | None:
    if raw[index + 1 : index + 2] == b":" and not escaped[index + 1]:
        match = _CLASS.match(raw, index)
        if match is not None:
            name = match[1].decode("latin-1")
            if name not in _CLASSES and not _REPEAT.match(raw, index):
                if not name:
                    raise UsageError("missing character class name '[::]'", hint=False)
                raise UsageError(f"invalid character class \u2018{name}\u2019", hint=False)
            if name in _CLASSES:
                return Item(bytes(b for b in range(256) if _CLASSES[name](b)), name), match.end()
    if raw[index + 1 : index + 2] == b"=" and not escaped[index + 1]:
        end = raw.find(b"=]", index + 2)
        if end == index + 2:
            raise UsageError("missing equivalence class character '[==]'", hint=False)
        if end == index + 3:
            return Item(raw[index + 2 : index + 3], equivalent=True), end + 2
        if end > 0 and not _REPEAT.match(raw, index):
            shown = raw[index + 2 : end].decode("latin-1")
            raise UsageError(f"{shown}: equivalence class operand must be a single character", hint=False)
    match = _REPEAT.match(raw, index)
    if match is not None and not escaped[index + 2] and not escaped[match.end() - 1]:
        digits = match[2]
        base = 8 if digits.startswith(b"0") else 10
        if len(digits) > 40 or re.search(rb"[^0-7]" if base == 8 else rb"[^0-9]", digits):
            shown = digits.decode("utf-8", "surrogateescape")
            raise UsageError(f"invalid repeat count \u2018{shown}\u2019 in [c*n] construct", hint=False)
        number = int(digits, base) if digits else 0
        if not second and not number:
            raise UsageError("the [c*] repeat construct may not appear in string1", hint=False)
        if number > 1 << 32:
            raise UsageError(f"invalid repeat count \u2018{digits.decode()}\u2019 in [c*n] construct", hint=False)
        return Item(match[1], "", number or -1), match.end()
    return None
