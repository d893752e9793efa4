"""dd's command line: `name=value` words."""

from __future__ import annotations

import re
from typing import Final

from belljar.abi.dataclass import dataclass, field
from belljar.bin._kit import UsageError
from belljar.bin._kit.quoting import quote
from belljar.bin._kit.sizes import unit
from belljar.kernel.process import Process

_CONVERSIONS: Final = frozenset(
    "ascii ebcdic ibm block unblock lcase ucase sparse swab sync excl nocreat notrunc noerror fdatasync fsync".split()
)
_FLAGS: Final = frozenset(
    "append binary cio direct directory dsync noatime nocache noctty nofollow nolinks nonblock sync text fullblock "
    "count_bytes skip_bytes seek_bytes".split()
)
_EXCLUSIVE: Final = (
    ("ascii", "ebcdic"),
    ("ascii", "ibm"),
    ("ebcdic", "ibm"),
    ("block", "unblock"),
    ("lcase", "ucase"),
    ("excl", "nocreat"),
)
_FACTOR: Final = re.compile(r"(\d+)(b|c|w|[kKMGTPEZYRQ](?:i?B)?|B)?")
_SIZES: Final = ("bs", "ibs", "obs", "cbs")
_COUNTS: Final = {"count": "count", "skip": "skip", "iseek": "skip", "seek": "seek", "oseek": "seek"}


@dataclass(slots=True)
class Operands:
    input: str | None = None
    output: str | None = None
    bs: int = 0
    ibs: int = 512
    obs: int = 512
    cbs: int = 0
    count: int | None = None
    skip: int = 0
    seek: int = 0
    conversions: set[str] = field(default_factory=set)
    input_flags: set[str] = field(default_factory=set)
    output_flags: set[str] = field(default_factory=set)
    status: str = ""


def parse_operands(process: Process, args: list[str]) -> Operands:
    found = Operands()
    env = process.env
    for arg in args:
        if arg == "--":
            continue
        if arg.startswith("-") and arg != "-":
            if arg.startswith("--"):
                raise UsageError(f"unrecognized option '{arg.partition('=')[0]}'")
            raise UsageError(f"invalid option -- '{arg[1]}'")
        name, equals, text = arg.partition("=")
        if not equals or not _set(process, found, name, text):
            raise UsageError(f"unrecognized operand {quote(arg, env)}")
    for first, second in _EXCLUSIVE:
        if {first, second} <= found.conversions:
            raise UsageError(f"cannot combine {_ORDER.get((first, second), f'{first} and {second}')}", hint=False)
    if found.bs:
        found.ibs = found.obs = found.bs
    process.budget.charge_size(found.cbs if found.bs else max(found.ibs, found.obs, found.cbs))
    return found


_CODES: Final = "any two of {ascii,ebcdic,ibm}"
_ORDER: Final = {
    ("lcase", "ucase"): "lcase and ucase",
    ("ascii", "ebcdic"): _CODES,
    ("ascii", "ibm"): _CODES,
    ("ebcdic", "ibm"): _CODES,
}


def _set(process: Process, found: Operands, name: str, text: str) -> bool:
    """Whether there is such an operand."""
    match name:
        case "if":
            found.input = text
        case "of":
            found.output = text
        case "conv":
            found.conversions |= _words(process, text, _CONVERSIONS, "conversion")
        case "iflag":
            found.input_flags |= _words(process, text, _FLAGS, "input flag")
        case "oflag":
            found.output_flags |= _words(process, text, _FLAGS, "output flag")
        case "status":
            if text not in ("none", "noxfer", "progress"):
                raise UsageError(f"invalid status level: {quote(text, process.env)}")
            found.status = text
        case _ if name in _SIZES:
            size = _number(process, text)
            if size == 0 and name != "cbs":
                raise _invalid(process, text)
            setattr(found, name, size)
        case _ if name in _COUNTS:
            field_name = _COUNTS[name]
            setattr(found, field_name, _number(process, text))
            if text.endswith("B") and not re.search(r"[kKMGTPEZYRQi]B\Z", text):
                flags = found.output_flags if field_name == "seek" else found.input_flags
                flags.add(f"{field_name}_bytes")
        case _:
            return False
    return True


def _words(process: Process, text: str, known: frozenset[str], what: str) -> set[str]:
    words = set(text.split(","))
    for word in text.split(","):
        if word not in known:
            raise UsageError(f"invalid {what}: {quote(word, process.env)}")
    return words


def _number(process: Process, text: str) -> int:
    """`2x80x18b`: a product of numbers with suffixes."""
    product = 1
    for factor in text.split("x"):
        match = _FACTOR.fullmatch(factor)
        if match is None:
            raise _invalid(process, text)
        product *= int(match[1][:40]) * unit(match[2] or "")
    if product >= 1 << 63:
        raise UsageError(
            f"invalid number: {quote(text, process.env)}: Value too large for defined data type", hint=False
        )
    return product


def _invalid(process: Process, text: str) -> UsageError:
    return UsageError(f"invalid number: {quote(text, process.env)}", hint=False)
