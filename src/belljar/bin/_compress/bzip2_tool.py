"""bzip2's behaviour, whatever name it is called by."""

from __future__ import annotations

from types import MappingProxyType

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import basename
from belljar.bin._compress.codecs import BZIP2, Corrupt
from belljar.bin._compress.files import Options, Tool
from belljar.bin._kit import flag
from belljar.kernel.process import Process

_RECOVER = """
You can use the `bzip2recover' program to attempt to recover
data from undamaged sections of corrupted files.

"""
_DAMAGED = "\nIt is possible that the compressed file(s) have become corrupted.\n" + (
    "You can use the -tvv option to test integrity of such files.\n"
)


@dataclass(frozen=True, slots=True)
class BzipOptions(Options):
    small: bool = flag("-s", "--small", "use less memory (accepted)")


def run(process: Process, options: BzipOptions, operands: list[str], *, decompress: bool, stdout: bool) -> int:
    tool = Bzip2(process, options, process.name)
    if options.decompress is None:
        tool.decompressing = tool.decompressing or decompress
    tool.to_stdout = tool.to_stdout or stdout
    return tool.run(operands)


class Bzip2(Tool):
    codec = BZIP2
    suffix = ".bz2"
    known = MappingProxyType({".bz2": "", ".bz": "", ".tbz2": ".tar", ".tbz": ".tar"})

    def missing(self, name: str, error: SysError) -> int:
        self.say(f"Can't open input file {name}: {error.reason}.")
        return 1

    def is_directory(self, name: str) -> int:
        self.say(f"Input file {name} is a directory.")
        return 1

    def exists(self, target: str) -> int:
        self.say(f"Output file {target} already exists.")
        return 1

    def has_suffix(self, name: str) -> int:
        suffix = next(s for s in self.known if name.endswith(s))
        self.say(f"Input file {name} already has {suffix} suffix.")
        return 1

    def odd_suffix(self, name: str) -> str:
        if not self.options.quiet:
            self.say(f"Can't guess original name for {basename(name)} -- using {name}.out")
        return name + ".out"

    def corrupt(self, name: str, target: str, error: Corrupt) -> int:
        shown = "(stdin)" if name == "stdin" else name
        if error.kind == "garbage":
            if not self.options.quiet:
                self.process.error(f"\n{self.name}: {shown}: trailing garbage after EOF ignored\n")
            return 0
        if self.options.test:
            what = {
                "magic": "bad magic number (file not created by bzip2)",
                "format": "data integrity (CRC) error in data",
            }.get(error.kind, "file ends unexpectedly")
            self.process.error(f"{self.name}: {shown}: {what}\n{_RECOVER}")
        elif error.kind == "magic":
            self.say(f"{shown} is not a bzip2 file.")
        else:
            where = f"\tInput file = {shown}, output file = {'(stdout)' if target == 'stdout' else target}\n"
            if error.kind == "format":
                what = "Data integrity error when decompressing.\n"
            else:
                what = (
                    "Compressed file ends unexpectedly;\n\tperhaps it is corrupted?  *Possible* reason follows.\n"
                    f"{self.name}: Success\n"
                )
            removed = "" if target == "stdout" else f"{self.name}: Deleting output file {target}, if it exists.\n\n"
            tail = _RECOVER if not removed else _RECOVER + removed
            self.process.error(f"\n{self.name}: {what}{where}{_DAMAGED}{tail}")
        return 2

    def done(self, name: str, target: str) -> None:
        if not self.options.verbose:
            return
        shown = "(stdin)" if name == "stdin" else name
        head = f"  {shown}: " + " " * max(0, 7 - len(shown)) if not self.decompressing else f"  {shown}: "
        if self.options.test:
            self.process.error(f"  {shown}: {' ' * 2}ok\n")
        elif self.decompressing:
            self.process.error(f"  {shown}: {' ' * 2}done\n")
        elif self.read == 0:
            self.process.error(f"{head} no data compressed.\n")
        else:
            packed, plain = self.written, self.read
            self.process.error(
                f"{head}{plain / packed:6.3f}:1, {packed * 8 / plain:6.3f} bits/byte, "
                f"{100 * (1 - packed / plain):5.2f}% saved, {plain} in, {packed} out.\n"
            )
