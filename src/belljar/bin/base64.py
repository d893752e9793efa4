"""base64 - base64 encode/decode data and print to standard output

Usage: base64 [OPTION]... [FILE]

Base64 encode or decode FILE, or standard input, to standard output.
"""

from dataclasses import dataclass

from belljar.bin._encode import CODECS, run
from belljar.bin._kit import flag, utility, value
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    decode: bool = flag("-d", "--decode", "decode data")
    ignore_garbage: bool = flag("-i", "--ignore-garbage", "when decoding, ignore non-alphabet characters")
    wrap: str = value(
        "-w", "--wrap", "wrap encoded lines after COLS characters (0: never)", metavar="COLS", default="76"
    )


@utility("base64", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    return run(
        process,
        CODECS["base64"],
        operands,
        decode=options.decode,
        ignore_garbage=options.ignore_garbage,
        wrap=options.wrap,
    )
