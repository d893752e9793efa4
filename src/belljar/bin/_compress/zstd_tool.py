"""zstd's behaviour, whatever name it is called by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from types import MappingProxyType

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.install import install_hint
from belljar.bin._compress import codecs
from belljar.bin._compress.codecs import ZSTD, Corrupt
from belljar.bin._compress.files import Failed, ListingOptions, Tool
from belljar.bin._kit import UsageError, flag, value
from belljar.bin._kit.options import parse
from belljar.kernel.process import Process

_MISSING = f"the zstandard package is not installed on the host; {install_hint('zstd')}"


@dataclass(frozen=True, slots=True)
class ZstdOptions(ListingOptions):
    output: str | None = value("-o", "write to a single file", metavar="OUTPUT")
    remove: bool = flag("--rm", "remove input files after success")
    threads: str | None = value("-T", "--threads", "(accepted; one is used)", metavar="NUM")
    ultra: bool = flag("--ultra", "enable levels beyond 19 (accepted)")
    long: str | None = value("--long", "(accepted)", metavar="LOG", bare="27")
    no_progress: bool = flag("--no-progress", "(accepted)")
    check: bool = flag("--check", "(always on)")
    number: str | None = value("--level", "(set by -#)", metavar="N")


def run(process: Process, args: list[str], *, decompress: bool, stdout: bool) -> int:
    # -19 is one level, not two options.
    words = [re.sub(r"^-(\d+)$", r"--level=\1", arg) for arg in args]
    try:
        parsed = parse(ZstdOptions, words)
    except UsageError:
        process.error("Incorrect parameters \n")
        return 1
    if parsed.asked:
        process.print(
            "zstd (belljar)" if parsed.asked == "version" else "Usage: zstd [OPTIONS...] [INPUT... | -] [-o OUTPUT]"
        )
        return 0
    if not codecs.HAVE_ZSTD:
        process.warn(_MISSING)
        return 127
    options = ZstdOptions(**parsed.values)
    tool = Zstd(process, options, "zstd")
    tool.level = int(options.number[:9]) if options.number else tool.level
    tool.decompressing = tool.decompressing or decompress
    tool.to_stdout = tool.to_stdout or stdout
    return tool.run(parsed.operands)


class Zstd(Tool):
    codec = ZSTD
    suffix = ".zst"
    known = MappingProxyType({".zst": "", ".tzst": ".tar"})
    options: ZstdOptions

    def say(self, text: str) -> None:
        self.process.error(f"zstd: {text} \n")

    def run(self, operands: list[str]) -> int:
        return 1 if super().run(operands) else 0

    def missing(self, name: str, error: SysError) -> int:
        self.say(f"can't stat {name} : {error.reason} -- ignored")
        return 1

    def is_directory(self, name: str) -> int:
        self.say(f"{name} is a directory -- ignored")
        return 1

    def exists(self, target: str) -> int:
        self.process.error(f"zstd: {target} already exists; overwrite (y/n) ? Not overwritten  \n \n")
        return 1

    def target(self, name: str) -> str:
        if self.options.output is not None:
            return self.options.output
        return super().target(name) if self.decompressing else name + self.suffix

    def odd_suffix(self, name: str) -> str:
        self.process.error(
            f"zstd: {name}: unknown suffix (.zst/.tzst/.gz/.tgz/.lzma/.xz/.txz/.lz4/.tlz4 expected). "
            "Can't derive the output file name. Specify it with -o dstFileName. Ignoring.\n"
        )
        raise Failed(1)

    def corrupt(self, name: str, target: str, error: Corrupt) -> int:
        shown = "/*stdin*\\" if name == "stdin" else name
        if error.kind in ("magic", "garbage") or "descriptor" in error.text:
            self.say(f"{shown}: unsupported format")
        elif error.kind in ("eof", "empty"):
            self.process.error(f"{shown} : Read error (39) : premature end \n")
        else:
            self.process.error(f"{shown} : Decoding error (36) : Data corruption detected \n")
        return 1

    def decode(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        source = iter(chunks)
        head = next(source, b"")
        everything = chain([head] if head else [], source)
        if self.options.force and self.to_stdout and not head.startswith(b"\x28\xb5\x2f\xfd"):
            return everything
        return super().decode(everything)

    def keeps(self) -> bool:
        return not self.options.remove or self.options.keep

    def done(self, name: str, target: str) -> None:
        if self.options.quiet or name == "stdin" or (target == "stdout" and not self.options.test):
            return
        if self.decompressing:
            self.process.error(f"{name:<20}: {self.written} bytes \n")
            return
        share = f"{100 * self.written / self.read:6.2f}%" if self.read else "  0.00%"
        sizes = f"({self.read:6d} B => {self.written:6d} B, {target})"
        self.process.error(f"{name:<21}:{share}   {sizes} \n")
