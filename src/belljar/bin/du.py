"""du - estimate file space usage

Usage: du [OPTION]... [FILE]...
  or:  du [OPTION]... --files0-from=F

Summarize device usage of the set of FILEs, recursively for directories.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.records import Stat
from belljar.bin._kit import UsageError, choice, flag, many, utility, value
from belljar.bin._kit.choices import pick
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.files0 import files0_entries
from belljar.bin._kit.human import HUMAN, SI, BlockSize, bad_block_size, default_block_size, parse_block_size
from belljar.bin._kit.quoting import quote, quote_name
from belljar.bin._kit.sizes import parse_size
from belljar.bin._tree import Problem, Visit, Walk
from belljar.kernel.process import Process
from belljar.libc.pattern import compile_pattern

_TIMES = {"atime": ("access", "use"), "ctime": ("status",), "mtime": ()}
_STYLES = {"full-iso": "%Y-%m-%d %H:%M:%S.%N %z", "long-iso": "%Y-%m-%d %H:%M", "iso": "%Y-%m-%d"}


@dataclass(frozen=True, slots=True)
class Options:
    null: bool = flag("-0", "--null", "end each output line with NUL, not newline")
    all: bool = flag("-a", "--all", "write counts for all files, not just directories")
    apparent: bool = flag("--apparent-size", "print apparent sizes rather than device usage")
    block_size: str | None = value("-B", "--block-size", "scale sizes by SIZE before printing them", metavar="SIZE")
    bytes: bool = flag("-b", "--bytes", "equivalent to '--apparent-size --block-size=1'")
    total: bool = flag("-c", "--total", "produce a grand total")
    follow: str = choice(
        {
            "-D": "operands",
            "-H": "operands",
            "--dereference-args": "operands",
            "-L": "always",
            "--dereference": "always",
            "-P": "never",
            "--no-dereference": "never",
        },
        "-D: dereference only symlinks that are listed on the command line; -L: dereference all; -P: none",
        default="never",
    )
    max_depth: str | None = value("-d", "--max-depth", "print the total only if N or fewer levels down", metavar="N")
    files0: str | None = value("--files0-from", "summarize the NUL-terminated file names in F", metavar="F")
    scale: str | None = choice(
        {"-h": "human", "--human-readable": "human", "--si": "si", "-k": "1K", "-m": "1M"},
        "-h: print sizes in human readable format; --si: powers of 1000; -k: like -B1K; -m: like -B1M",
    )
    inodes: bool = flag("--inodes", "list inode usage information instead of block usage")
    count_links: bool = flag("-l", "--count-links", "count sizes many times if hard linked")
    separate: bool = flag("-S", "--separate-dirs", "for directories do not include size of subdirectories")
    summarize: bool = flag("-s", "--summarize", "display only a total for each argument")
    threshold: str | None = value(
        "-t", "--threshold", "exclude entries smaller than SIZE if positive, or greater if negative", metavar="SIZE"
    )
    time: str | None = value("--time", "show time of the last modification", metavar="WORD", bare="mtime")
    time_style: str | None = value("--time-style", "show times using STYLE", metavar="STYLE")
    exclude_from: tuple[str, ...] = many("-X", "--exclude-from", "exclude files that match any pattern in FILE")
    exclude: tuple[str, ...] = many("--exclude", "exclude files that match PATTERN", metavar="PATTERN")
    one_file_system: bool = flag("-x", "--one-file-system", "skip directories on different file systems")


@utility("du", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.files0 is not None:
        if operands:
            shown = quote(operands[0], process.env)
            raise UsageError(f"extra operand {shown}\nfile operands cannot be combined with --files0-from")
        names = files0_entries(process, options.files0) or iter([None])
    else:
        names = iter(operands or ["."])
    usage = Usage(process, options)
    for path in names:
        if path is None:
            usage.status = 1
        else:
            usage.measure(path)
    if options.total:
        usage.show(usage.grand, usage.latest, "total")
    return usage.status


class Usage:
    def __init__(self, process: Process, options: Options) -> None:
        self._process = process
        self._options = options
        self._apparent = options.apparent or options.bytes
        self._unit = _unit(process, options)
        self._depth = self._max_depth()
        self._threshold = self._parse_threshold()
        self._time = pick(process, "--time", options.time, _TIMES) if options.time is not None else ""
        self._time_format = self._parse_style()
        self._zone = zone_of(process.env)
        self._seen: set[tuple[int, int]] = set()
        patterns = [*options.exclude]
        for name in options.exclude_from:
            patterns += process.read_file(name).decode("utf-8", "surrogateescape").splitlines()
        self._excludes = [compile_pattern(pattern, extglob=False).matches for pattern in patterns]
        if options.inodes and self._apparent:
            process.warn("warning: options --apparent-size and -b are ineffective with --inodes")
        self.grand = 0
        self.latest = 0
        self.status = 0

    def _max_depth(self) -> int | None:
        options, env = self._options, self._process.env
        depth: int | None = None
        if options.max_depth is not None:
            if not (options.max_depth.isascii() and options.max_depth.isdecimal()):
                raise UsageError(f"invalid maximum depth {quote(options.max_depth, env)}")
            depth = int(options.max_depth[:18])
        if options.summarize:
            if options.all:
                raise UsageError("cannot both summarize and show all entries")
            if depth == 0:
                self._process.warn("warning: summarizing is the same as using --max-depth=0")
            elif depth is not None:
                message = f"warning: summarizing conflicts with --max-depth={depth}"
                raise UsageError(message)
            depth = 0
        return depth

    def _parse_threshold(self) -> int | None:
        text = self._options.threshold
        if text is None:
            return None
        size = parse_size(text)
        if size is None or text == "-0":
            raise UsageError(f"invalid --threshold argument '{text}'", hint=False)
        return size

    def _parse_style(self) -> str:
        style = self._options.time_style or self._process.env.get("TIME_STYLE", "long-iso")
        if style.startswith("+"):
            return style[1:]
        return _STYLES[pick(self._process, "time style", style.removeprefix("posix-"), dict.fromkeys(_STYLES, ()))]

    def measure(self, operand: str) -> None:
        """Add up a tree, printing on the way back; what is printed of it depends on the options."""
        options = self._options
        walk = Walk(
            self._process,
            self._problem,
            follow=options.follow,  # type: ignore[arg-type]
            one_file_system=options.one_file_system,
        )
        sums: list[int] = []
        own: list[int] = []
        times: list[int] = []
        for visit in walk.walk(operand):
            if self._excluded(visit):
                visit.prune = True
                continue
            if visit.stat.is_dir and not visit.after:
                size = self._size(visit.stat)
                sums.append(size)
                own.append(size)
                times.append(self._when(visit.stat))
                continue
            if visit.after:
                size, alone, when = sums.pop(), own.pop(), times.pop()
                if sums:
                    sums[-1] += size
                    times[-1] = max(times[-1], when)
                if self._depth is None or visit.depth <= self._depth:
                    self.show(alone if options.separate else size, when, visit.path)
            else:
                size, when = self._size(visit.stat, link=True), self._when(visit.stat)
                if size < 0:
                    continue
                if sums:
                    sums[-1] += size
                    own[-1] += size
                    times[-1] = max(times[-1], when)
                if (options.all or visit.depth == 0) and (self._depth is None or visit.depth <= self._depth):
                    self.show(size, when, visit.path)
            if visit.depth == 0:
                self.grand += size
                self.latest = max(self.latest, when)

    def _excluded(self, visit: Visit) -> bool:
        return any(matches(visit.path) or matches(visit.path.rpartition("/")[2]) for matches in self._excludes)

    def _size(self, stat: Stat, *, link: bool = False) -> int:
        """Return a file's size; -1 for another link to a file that was counted."""
        if link and stat.nlink > 1 and not self._options.count_links:
            key = (stat.dev, stat.ino)
            if key in self._seen:
                return -1
            self._seen.add(key)
        if self._options.inodes:
            return 1
        return stat.size if self._apparent else stat.blocks * 512

    def _when(self, stat: Stat) -> int:
        return int(getattr(stat, self._time or "mtime"))

    def show(self, size: int, when: int, path: str) -> None:
        limit = self._threshold
        if limit is not None and (size < limit if limit >= 0 else size > -limit):
            return
        shown = str(size) if self._options.inodes and self._unit.size else self._unit.show(size)
        time = f"\t{format_time(self._time_format, when, self._zone)}" if self._time else ""
        self._process.print(f"{shown}{time}\t{path}", end="\0" if self._options.null else "\n")

    def _problem(self, problem: Problem, path: str, error: SysError) -> None:
        if problem == "loop":
            return
        what = "cannot read directory" if problem == "read" else "cannot access"
        self._process.stdout.flush()
        self._process.warn(f"{what} {quote_name(path)}: {error.reason}")
        self.status = 1


def _unit(process: Process, options: Options) -> BlockSize:
    if options.scale == "human":
        return HUMAN
    if options.scale == "si":
        return SI
    text = options.block_size or (options.scale or "")
    if text:
        found = parse_block_size(text)
        if found is None:
            raise UsageError(bad_block_size("-B", text), hint=False)
        return found
    return BlockSize(1) if options.bytes else default_block_size(process.env, "DU_BLOCK_SIZE")
