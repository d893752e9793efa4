"""basenc - encode/decode data and print to standard output

Usage: basenc [OPTION]... [FILE]

Encode or decode FILE, or standard input, to standard output, in the encoding that an option names.
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._encode import CODECS, run
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    encoding: str | None = choice({f"--{name}": name for name in CODECS}, "the encoding")
    decode: bool = flag("-d", "--decode", "decode data")
    ignore_garbage: bool = flag("-i", "--ignore-garbage", "when decoding, ignore non-alphabet characters")
    wrap: str = value(
        "-w", "--wrap", "wrap encoded lines after COLS characters (0: never)", metavar="COLS", default="76"
    )


@utility("basenc", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.encoding is None:
        raise UsageError("missing encoding type")
    return run(
        process,
        CODECS[options.encoding],
        operands,
        decode=options.decode,
        ignore_garbage=options.ignore_garbage,
        wrap=options.wrap,
    )
