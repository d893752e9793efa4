"""look - display lines beginning with a given string

Usage: look [OPTION]... STRING [FILE]

Print the lines of FILE, which must be sorted, that start with STRING. The default FILE is /usr/share/dict/words, with
only letters and digits compared, and case ignored.
"""

from __future__ import annotations

from bisect import bisect_left

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.kernel.process import Process

_KEPT = b"".join(bytes([b]) for b in range(256) if chr(b).isalnum() and b < 128) + b" \t"
_DROPPED = bytes(set(range(256)) - set(_KEPT))


@dataclass(frozen=True, slots=True)
class Options:
    alternative: bool = flag("-a", "--alternative", "use the alternative dictionary")
    alphanum: bool = flag("-d", "--alphanum", "compare only blanks and alphanumeric characters")
    ignore_case: bool = flag("-f", "--ignore-case", "ignore case differences when comparing")
    terminate: str | None = value("-t", "--terminate", "define the string-termination character", metavar="CHAR")


@utility("look", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not 1 <= len(operands) <= 2:
        raise UsageError("bad usage")
    default = process.env.get("WORDLIST") or "/usr/share/dict/words"
    name = operands[1] if len(operands) > 1 else default
    plain = options.alphanum or len(operands) == 1
    fold = options.ignore_case or len(operands) == 1
    wanted = fsencode(operands[0])
    if options.terminate:
        end = wanted.find(fsencode(options.terminate)[:1])
        wanted = wanted[: end + 1] if end >= 0 else wanted

    def key(line: bytes) -> bytes:
        text = line.translate(None, _DROPPED) if plain else line
        return text.lower() if fold else text

    try:
        lines = process.read_file(name).split(b"\n")
    except SysError as error:
        raise UsageError(f"{name}: {error.reason}", hint=False) from error
    if lines[-1] == b"":
        lines.pop()
    process.budget.charge(len(lines) // 64 + 1)
    start = key(wanted)
    at = first = bisect_left(lines, start, key=key)
    while at < len(lines) and key(lines[at]).startswith(start):
        process.budget.charge()
        process.stdout.write(lines[at] + b"\n")
        at += 1
    return 0 if at > first else 1
