"""basename - strip directory and suffix from file names

Usage: basename NAME [SUFFIX]
  or:  basename OPTION... NAME...

Print NAME with any leading directory components removed. If specified, also remove a trailing SUFFIX.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import basename
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    multiple: bool = flag("-a", "--multiple", "support multiple arguments and treat each as a NAME")
    suffix: str | None = value("-s", "--suffix", "remove a trailing SUFFIX; implies -a", metavar="SUFFIX")
    zero: bool = flag("-z", "--zero", "end each output line with NUL, not newline")


@utility("basename", Options, order="first-operand-ends")
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    names, suffix = operands, options.suffix or ""
    if not options.multiple and options.suffix is None:
        if len(operands) > 2:
            raise UsageError(f"extra operand {quote(operands[2], process.env)}")
        names, suffix = operands[:1], "".join(operands[1:])
    for name in names:
        base = basename(name)
        process.print(base.removesuffix(suffix) or base, end="\0" if options.zero else "\n")
    return 0
