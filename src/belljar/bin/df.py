"""df - report file system space usage

Usage: df [OPTION]... [FILE]...

Show information about the file system on which each FILE resides, or all file systems by default.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.records import StatFs
from belljar.bin._kit import UsageError, choice, flag, many, utility, value
from belljar.bin._kit.human import HUMAN, SI, BlockSize, bad_block_size, default_block_size, parse_block_size
from belljar.bin._kit.quoting import quote, quote_if_odd
from belljar.kernel.process import Process
from belljar.kernel.vfs.namespace import Mount, Place
from belljar.kernel.vfs.resolve import path_of
from belljar.libc.width import display_width

_FIELDS = {
    name: ()
    for name in (
        "source", "fstype", "itotal", "iused", "iavail", "ipcent", "size", "used", "avail", "pcent", "file", "target",
    )
}  # fmt: skip
_TITLES = {
    "source": "Filesystem",
    "fstype": "Type",
    "size": "1K-blocks",
    "used": "Used",
    "avail": "Available",
    "pcent": "Use%",
    "itotal": "Inodes",
    "iused": "IUsed",
    "iavail": "IFree",
    "ipcent": "IUse%",
    "file": "File",
    "target": "Mounted on",
}
_LEAST = {"source": 14, "fstype": 4, "pcent": 4, "ipcent": 4, "file": 0, "target": 0}
_LEFT = ("source", "fstype", "file", "target")


@dataclass(frozen=True, slots=True)
class Options:
    all: bool = flag("-a", "--all", "include pseudo, duplicate, inaccessible file systems")
    block_size: str | None = value("-B", "--block-size", "scale sizes by SIZE before printing them", metavar="SIZE")
    scale: str | None = choice(
        {"-h": "human", "--human-readable": "human", "-H": "si", "--si": "si", "-k": "1K", "-m": "1M"},
        "-h: print sizes in powers of 1024; -H: in powers of 1000; -k: like -B1K; -m: like -B1M",
    )
    inodes: bool = flag("-i", "--inodes", "list inode information instead of block usage")
    local: bool = flag("-l", "--local", "limit listing to local file systems")
    sync: bool = flag("--sync", "--no-sync", "(ignored)")
    output: str | None = value("--output", "use the output format defined by FIELD_LIST", metavar="FIELD_LIST", bare="")
    portable: bool = flag("-P", "--portability", "use the POSIX output format")
    total: bool = flag("--total", "elide all entries insignificant to available space, and produce a grand total")
    types: tuple[str, ...] = many("-t", "--type", "limit listing to file systems of type TYPE", metavar="TYPE")
    print_type: bool = flag("-T", "--print-type", "print file system type")
    excluded: tuple[str, ...] = many("-x", "--exclude-type", "limit listing to file systems not of type TYPE")
    verbose: bool = flag("-v", "(ignored)")


@dataclass(frozen=True, slots=True)
class Row:
    source: str
    kind: str
    figures: StatFs
    file: str
    target: str


@utility("df", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    fields = _fields(process, options)
    unit = _unit(process, options)
    status = 0
    rows: list[Row] = []
    if operands:
        for path in operands:
            try:
                mount = process.fs.resolve(path).mount
            except SysError as error:
                process.warn(f"{quote_if_odd(path)}: {error.reason}")
                status = 1
                continue
            rows += _row(process, options, mount, path)
    else:
        for mount in process.fs.namespace.mounts():
            rows += [row for row in _row(process, options, mount, "-") if options.all or row.figures.blocks]
    if not rows:
        if not status:
            process.warn("no file systems processed")
        return 1
    if options.total:
        rows.append(_total(rows))
    titles = dict(_TITLES)
    titles["size"], titles["avail"] = _size_titles(options, unit)
    if options.portable:
        titles["pcent"] = "Capacity"
    table = [[titles[field] for field in fields]]
    table += [[_cell(field, row, unit) for field in fields] for row in rows]
    _print(process, fields, table)
    return status


def _fields(process: Process, options: Options) -> list[str]:
    if options.output is not None:
        for name, given in (("-i", options.inodes), ("-P", options.portable), ("-T", options.print_type)):
            if given:
                raise UsageError(f"options {name} and --output are mutually exclusive")
        if not options.output:
            return list(_FIELDS)
        found: list[str] = []
        for name in options.output.split(","):
            if name not in _FIELDS:
                shown = quote(name, process.env)
                raise UsageError(f"option --output: field {shown} unknown")
            if name in found:
                raise UsageError(f"option --output: field {quote(name, process.env)} used more than once")
            found.append(name)
        return found
    figures = ["itotal", "iused", "iavail", "ipcent"] if options.inodes else ["size", "used", "avail", "pcent"]
    return ["source", *(["fstype"] if options.print_type else []), *figures, "target"]


def _unit(process: Process, options: Options) -> BlockSize:
    if options.scale == "human":
        return HUMAN
    if options.scale == "si":
        return SI
    text = options.block_size or options.scale or ""
    if text:
        found = parse_block_size(text)
        if found is None:
            raise UsageError(bad_block_size("-B", text), hint=False)
        return found
    return BlockSize(1024) if options.portable else default_block_size(process.env, "DF_BLOCK_SIZE")


def _size_titles(options: Options, unit: BlockSize) -> tuple[str, str]:
    if unit.size == 0:
        return "Size", "Avail"
    if options.output is not None:
        return _blocks_title(unit), "Avail"
    if options.portable:
        return f"{unit.size}-blocks", "Available"
    return _blocks_title(unit), "Available"


def _blocks_title(unit: BlockSize) -> str:
    size, power = unit.size, 0
    while size % 1024 == 0 and size:
        size, power = size // 1024, power + 1
    if power:
        return f"{size}{'KMGTPE'[power - 1]}-blocks"
    while size % 1000 == 0 and size:
        size, power = size // 1000, power + 1
    return f"{size}{('kMGTPE'[power - 1] + 'B') if power else 'B'}-blocks"


def _row(process: Process, options: Options, mount: Mount, file: str) -> list[Row]:
    figures = mount.server.statfs()
    if options.types and figures.kind not in options.types:
        return []
    if figures.kind in options.excluded:
        return []
    target = path_of(process.fs, Place(mount, mount.root)) or "/"
    return [Row(mount.source, figures.kind, figures, file, target)]


def _total(rows: list[Row]) -> Row:
    def add(name: str) -> int:
        return sum(getattr(row.figures, name) * (row.figures.block_size if "block" in name else 1) for row in rows)

    figures = StatFs("-", 1, add("blocks"), add("blocks_free"), add("files"), add("files_free"))
    return Row("total", "-", figures, "-", "-")


def _cell(field: str, row: Row, unit: BlockSize) -> str:
    figures = row.figures
    size, free = figures.blocks * figures.block_size, figures.blocks_free * figures.block_size
    match field:
        case "source":
            return row.source
        case "fstype":
            return row.kind
        case "file":
            return row.file
        case "target":
            return row.target
        case "pcent":
            return _percent(size - free, size)
        case "ipcent":
            return _percent(figures.files - figures.files_free, figures.files)
        case "size" | "used" | "avail":
            return unit.show({"size": size, "used": size - free, "avail": free}[field])
    counts = {"itotal": figures.files, "iused": figures.files - figures.files_free, "iavail": figures.files_free}
    return str(counts[field]) if unit.size else unit.show(counts[field])


def _percent(used: int, total: int) -> str:
    return f"{-(-used * 100 // total)}%" if total else "-"


def _print(process: Process, fields: list[str], table: list[list[str]]) -> None:
    widths = [
        max(_LEAST.get(field, 5), *(display_width(row[index]) for row in table)) for index, field in enumerate(fields)
    ]
    for row in table:
        cells = [
            text.ljust(width) if field in _LEFT else text.rjust(width)
            for text, width, field in zip(row, widths, fields, strict=True)
        ]
        process.print(" ".join(cells).rstrip())
