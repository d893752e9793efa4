"""envsubst - substitute environment variables in shell format strings

Usage: envsubst [OPTION] [SHELL-FORMAT]

Copy standard input to standard output, with $VARIABLE and ${VARIABLE} replaced by the values of environment variables.
With a SHELL-FORMAT only the variables that it names are replaced.
"""

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._kit import UsageError, flag, utility
from belljar.kernel.process import Process

_VARIABLE = re.compile(rb"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")


@dataclass(frozen=True, slots=True)
class Options:
    variables: bool = flag("-v", "--variables", "output the variables occurring in SHELL-FORMAT")


@utility("envsubst", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) > 1:
        raise UsageError("too many arguments", hint=False)
    if options.variables:
        if not operands:
            raise UsageError("missing arguments", hint=False)
        for name in _names(fsencode(operands[0])):
            process.print(name)
        return 0
    wanted = set(_names(fsencode(operands[0]))) if operands else None

    def value(match: re.Match[bytes]) -> bytes:
        name = fsdecode(match[1] or match[2])
        if wanted is not None and name not in wanted:
            return match[0]
        return fsencode(process.env.get(name, ""))

    # A variable's name never goes on after a newline, so lines can be handed on one by one.
    rest = b""
    for chunk in process.chunks("-"):
        process.budget.charge(len(chunk) >> 8)
        whole, newline, rest = (rest + chunk).rpartition(b"\n")
        process.budget.charge_size(len(rest))
        process.stdout.write(_VARIABLE.sub(value, whole + newline))
    process.stdout.write(_VARIABLE.sub(value, rest))
    return 0


def _names(text: bytes) -> list[str]:
    return [fsdecode(match[1] or match[2]) for match in _VARIABLE.finditer(text)]
