"""The common part of dos2unix and unix2dos: files converted in place, or as a filter."""

from __future__ import annotations

from collections.abc import Callable

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import choice, flag
from belljar.kernel.process import Process

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Options:
    keep_date: bool = flag("-k", "--keepdate", "keep output file date")
    quiet: bool = flag("-q", "--quiet", "quiet mode, suppress all warnings")
    verbose: bool = flag("-v", "--verbose", "verbose operation")
    force: bool = flag("-f", "--force", "force conversion of binary files")
    safe: bool = flag("-s", "--safe", "skip binary files (default)")
    to_new: bool = flag("-n", "--newfile", "write to new files: INFILE OUTFILE ...")
    in_place: bool = flag("-o", "--oldfile", "write to old files (default)")
    stdout: bool = flag("-O", "--to-stdout", "write to standard output")
    extra: bool = flag("-l", "--newline", "add additional newline")
    bom: str = choice({"-b": "keep", "--keep-bom": "keep", "-r": "remove", "--remove-bom": "remove", "-m": "add",
                       "--add-bom": "add"}, "keep, remove or add a byte order mark", "")  # fmt: skip
    ascii: bool = flag("-ascii", "--ascii", "convert only line breaks (default)")
    follow: bool = flag("-F", "--follow-symlink", "follow symbolic links and convert the targets")
    skip_links: bool = flag("-S", "--skip-symlink", "keep symbolic links and targets unchanged (default)")
    replace_links: bool = flag("-R", "--replace-symlink", "replace symbolic links with converted files")


Convert = Callable[[bytes], bytes]


def convert_files(
    process: Process, options: Options, operands: list[str], convert: Convert, target: str, default_bom: str
) -> int:
    """Convert every file named, or standard input."""
    bom = options.bom or default_bom

    def whole(data: bytes) -> bytes:
        marked = data.startswith(BOM)
        body = convert(data.removeprefix(BOM))
        return BOM + body if bom == "add" or (bom == "keep" and marked) else body

    if not operands:
        process.stdout.write(whole(process.read_file("-")))
        return 0
    pairs = [(name, name) for name in operands]
    if options.to_new:
        if len(operands) % 2:
            process.warn(f"target of file {operands[-1]} not specified in new-file mode")
            return 1
        pairs = list(zip(operands[::2], operands[1::2], strict=True))
    status = 0
    for source, destination in pairs:
        status = max(status, _convert(process, options, source, destination, whole, target))
    return status


def _convert(process: Process, options: Options, source: str, destination: str, whole: Convert, target: str) -> int:
    def tell(message: str) -> None:
        if not options.quiet:
            process.warn(message)

    try:
        stat = process.fs.stat(source, follow=False)
        if stat.is_symlink and not (options.follow or options.replace_links or options.to_new or options.stdout):
            tell(f"Skipping symbolic link {source}.")
            return 0
        stat = process.fs.stat(source)
        if not stat.is_regular:
            tell(f"Skipping {source}, not a regular file.")
            return 0
        data = process.read_file(source)
        at = data.translate(_MARKS).find(1)
        if at >= 0 and not options.force:
            line = data.count(b"\n", 0, at) + 1
            tell(f"Binary symbol 0x{data[at]:02X} found at line {line}")
            tell(f"Skipping binary file {source}")
            return 0
        converted = whole(data)
        if options.stdout:
            process.stdout.write(converted)
            return 0
        process.stdout.flush()
        process.write_file(destination, converted)
        if options.keep_date:
            process.fs.utimens(destination, stat.atime, stat.mtime)
        if source == destination:
            tell(f"converting file {source} to {target} format...")
        else:
            tell(f"converting file {source} to file {destination} in {target} format...")
    except SysError as error:
        process.warn(f"{source}: {error.reason}")
        tell(f"Skipping {source}, not a regular file.")
        return error.errno
    return 0


_CONTROL = bytes(byte for byte in range(32) if byte not in (9, 10, 12, 13))
_MARKS = bytes(1 if byte in _CONTROL else 0 for byte in range(256))
