"""tar - an archiving utility

Usage: tar -c|-x|-t|-r|-u|-d|-A|--delete [OPTION]... [-f ARCHIVE] [FILE]...

  -c, --create           create a new archive
  -x, --extract, --get   extract files from an archive
  -t, --list             list the contents of an archive
  -r, --append           append files to the end of an archive
  -u, --update           only append files newer than their copy in the archive
  -d, --diff, --compare  find differences between archive and file system
  -A, --concatenate      append tar files to an archive
      --delete           delete from the archive

  -f, --file=ARCHIVE     use archive file (default: standard input and output)
  -C, --directory=DIR    change to directory DIR
  -v, --verbose          list files processed; twice: in long form
  -z -j -J --zstd -a     compress with gzip, bzip2, xz, zstd; by the archive's suffix
  -T, --files-from=FILE  get names from FILE (--null: ended by NUL)
  -X, --exclude-from=FILE, --exclude=PATTERN, --exclude-vcs, --exclude-backups
      --strip-components=N, --transform=EXPRESSION, --wildcards, --no-recursion
  -k --skip-old-files --overwrite --keep-newer-files -U -O -p -m -P --same-owner --numeric-owner
      --owner --group --mode --mtime --sort=name --format=gnu|pax|ustar|v7 -h --remove-files
"""

from __future__ import annotations

from belljar.abi.errors import SysError
from belljar.bin._compress.codecs import Corrupt
from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.program import version
from belljar.bin.tar.create import Creator
from belljar.bin.tar.extract import Extractor
from belljar.bin.tar.listing import Listing
from belljar.bin.tar.options import Parser, Settings
from belljar.bin.tar.run import Fatal, Run, Selection, change_directory, operand_names
from belljar.bin.tar.stream import Sink, open_source
from belljar.bin.tar.update import Comparison, append, concatenate, delete
from belljar.kernel.process import Process
from belljar.libc.tar_header import BadHeader
from belljar.libc.tar_stream import NotArchive, Reader, UnexpectedEnd

_GZIP_WORDS = {
    "magic": "not in gzip format",
    "eof": "unexpected end of file",
    "empty": "unexpected end of file",
    "crc": "invalid compressed data--crc error",
    "length": "invalid compressed data--length error",
    "format": "invalid compressed data--format violated",
}
_XZ_WORDS = {"magic": "File format not recognized", "eof": "Unexpected end of input"}


@utility("tar", usage_status=2)
def main(process: Process, args: list[str]) -> int:
    parser = Parser()
    try:
        settings = parser.parse(args)
        if settings.asked:
            process.print(version("tar") if settings.asked == "version" else main.help().rstrip())
            return 0
        if not settings.mode:
            raise UsageError("You must specify one of the '-Acdtrux', '--delete' or '--test-label' options")
        if settings.mode == "create" and not settings.operands:
            raise UsageError("Cowardly refusing to create an empty archive")
    except UsageError as error:
        process.warn(str(error))
        if error.hint:
            process.error("Try 'tar --help' or 'tar --usage' for more information.\n")
        return 64 if str(error).startswith(("option", "unrecognized", "invalid")) else 2
    home = process.fs.cwd
    try:
        return _run(process, settings)
    except UsageError as error:
        process.warn(str(error))
        return 2
    finally:
        process.fs.cwd = home


def _run(process: Process, settings: Settings) -> int:
    run: Run | None = None
    try:
        run = Run(process, settings)
        match settings.mode:
            case "create":
                _create(run)
            case "append" | "update":
                append(run)
            case "concatenate":
                concatenate(run, [text for kind, text in operand_names(run) if kind == "name"])
            case "delete":
                selection = Selection(run, [text for kind, text in operand_names(run) if kind == "name"])
                delete(run, selection)
                selection.report()
            case _:
                _read(run)
    except Fatal:
        process.stdout.flush()
        process.warn("Error is not recoverable: exiting now")
        return 2
    except Corrupt as error:
        process.stdout.flush()
        assert run is not None
        return _broken(run, error)
    except UnexpectedEnd:
        process.stdout.flush()
        process.warn("Unexpected EOF in archive")
        process.warn("Error is not recoverable: exiting now")
        return 2
    except NotArchive:
        process.warn("This does not look like a tar archive")
        process.warn("Exiting with failure status due to previous errors")
        return 2
    process.stdout.flush()
    if run.status == 2:
        process.warn("Exiting with failure status due to previous errors")
    return run.status


def _broken(run: Run, error: Corrupt) -> int:
    """The compressed data is bad: what the child would say, then what tar says of the child."""
    process = run.process
    name = run.settings.compression or "gzip"
    if error.kind == "missing":
        process.warn("zstd: the zstandard package is not installed on the host: pip install zstandard")
    elif name == "gzip":
        process.error(f"\ngzip: stdin: {_GZIP_WORDS.get(error.kind, error.kind)}\n")
    elif name == "bzip2":
        text = "(stdin) is not a bzip2 file." if error.kind == "magic" else "Compressed file ends unexpectedly;"
        process.error(f"bzip2: {text}\n")
    elif name == "zstd":
        process.error("zstd: /*stdin*\\: unsupported format \n")
    else:
        process.error(f"xz: (stdin): {_XZ_WORDS.get(error.kind, 'Compressed data is corrupt')}\n")
    if error.kind == "eof":
        process.warn("Unexpected EOF in archive")
    else:
        process.warn(f"Child returned status {2 if name == 'bzip2' else 1}")
    process.warn("Error is not recoverable: exiting now")
    return 2


def _create(run: Run) -> None:
    try:
        sink = Sink(run.process, run.settings.file, run.codec(writing=True))
    except SysError as error:
        run.fatal(f"{run.settings.file}: Cannot open: {error.reason}")
    try:
        archive = None
        if run.settings.file != "-":
            stat = run.process.fstat(sink.fd)
            archive = (stat.dev, stat.ino)
        try:
            Creator(run, sink, archive).add_all()
            run.process.stdout.flush()
            sink.finish()
        except SysError as error:
            run.fatal(f"{run.settings.file}: Cannot write: {error.reason}")
    finally:
        sink.close()
    if "totals" in run.settings.values:
        run.process.error(f"Total bytes written: {sink.total} ({_human(sink.total)}, ?/s)\n")


def _human(size: int) -> str:
    number = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024 or unit == "TiB":
            return f"{number:.0f}{unit}" if number >= 10 or unit == "B" else f"{number:.1f}{unit}"
        number /= 1024
    return str(size)


def _read(run: Run) -> None:
    """-x, -t and -d."""
    settings, process = run.settings, run.process
    try:
        source, codec = open_source(process, settings.file, run.codec(writing=False))
    except SysError as error:
        run.fatal(f"{settings.file}: Cannot {'read' if error.name == 'EISDIR' else 'open'}: {error.reason}")
    if codec is not None:
        settings.compression = codec.name
    names: list[str] = []
    for kind, text in operand_names(run):
        if kind == "name":
            names.append(text)
        else:
            change_directory(run, text)
    if "one-top-level" in settings.values:
        top = settings.values["one-top-level"] or _stem(settings.file)
        try:
            process.fs.mkdir(top)
        except SysError as error:
            if error.name != "EEXIST":
                run.fatal(f"{top}: Cannot mkdir: {error.reason}")
        change_directory(run, top)
    selection = Selection(run, names)
    reader = Reader(source, process.budget, ignore_zeros=settings.on("ignore-zeros"))
    extractor = Extractor(run, reader)
    comparison = Comparison(run, reader)
    listing = Listing(process, settings)
    blocks = settings.on("block-number")
    try:
        for member in reader:
            if not selection.wants(member.name):
                continue
            if blocks:
                process.print(f"block {reader.start // 512}: ", end="")
            if settings.mode == "list":
                run.safe(member.name)
            if settings.mode == "extract":
                extractor.extract(member)
            elif settings.mode == "diff":
                comparison.compare(member)
            elif settings.verbose:
                listing.long(member)
            else:
                listing.short(member)
        if blocks:
            process.print(f"block {reader.start // 512}: ** Block of NULs **")
        if reader.lone_zero:
            run.warn(f"A lone zero block at {reader.start // 512 + 1}")
    except UnexpectedEnd:
        run.warn("Unexpected EOF in archive")
        run.fatal_end = True
    except BadHeader:
        run.warn("Skipping to next header")
        run.status = 2
    finally:
        extractor.finish()
    if run.fatal_end:
        raise Fatal
    selection.report()
    if source.position == 0:
        raise NotArchive


def _stem(name: str) -> str:
    base = name.rpartition("/")[2]
    for suffix in (".gz", ".bz2", ".xz", ".zst", ".lzma"):
        base = base.removesuffix(suffix)
    for suffix in (".tar", ".tgz", ".tbz2", ".tbz", ".txz", ".tzst"):
        base = base.removesuffix(suffix)
    return base
