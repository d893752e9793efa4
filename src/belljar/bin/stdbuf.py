"""stdbuf - run COMMAND with modified buffering for its standard streams

Usage: stdbuf OPTION... COMMAND

MODE is L for line buffered (not for -i), 0 for unbuffered, or a number of bytes. Programs of the sandbox already write
whole lines to terminals and hand on what they have before they wait; COMMAND runs as it is.
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, utility, value
from belljar.bin._kit.numbers import bounded
from belljar.bin._kit.quoting import quote
from belljar.bin.env import become
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    input: str | None = value("-i", "--input", "adjust standard input stream buffering", metavar="MODE")
    output: str | None = value("-o", "--output", "adjust standard output stream buffering", metavar="MODE")
    error: str | None = value("-e", "--error", "adjust standard error stream buffering", metavar="MODE")


@utility("stdbuf", Options, order="first-operand-ends", usage_status=125)
def main(process: Process, options: Options, operands: list[str]) -> int:
    given = {"i": options.input, "o": options.output, "e": options.error}
    for letter, mode in given.items():
        if mode == "L" and letter == "i":
            raise UsageError("line buffering stdin is meaningless")
        if mode not in (None, "L"):
            try:
                bounded(process, mode or "", "mode", 0, (1 << 64) - 1, suffixes=True)
            except UsageError:
                raise UsageError(f"invalid mode {quote(mode or '', process.env)}", hint=False) from None
    if not operands:
        raise UsageError("missing operand")
    if all(mode is None for mode in given.values()):
        raise UsageError("you must specify a buffering mode option")
    names = {letter: f"_STDBUF_{letter.upper()}" for letter in given}
    environment = {**process.env, **{names[letter]: mode for letter, mode in given.items() if mode is not None}}
    return become(process, operands, environment, lambda name, _: f"failed to run command \u2018{name}\u2019")
