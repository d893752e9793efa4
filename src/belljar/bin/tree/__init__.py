"""tree - list contents of directories in a tree-like format

Usage: tree [OPTION]... [DIRECTORY]...

List the contents of the given directories (the current one by default) as an indented tree, with a report of how many
directories and files there were.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.bin.tree.render import JsonWriter, TextWriter, Writer, XmlWriter
from belljar.bin.tree.scan import Scanner, Selection
from belljar.kernel.process import Process

_SORTS = ("name", "version", "size", "mtime", "ctime")


@dataclass(frozen=True, slots=True)
class Options:
    all: bool = flag("-a", "all files are listed")
    directories: bool = flag("-d", "list directories only")
    follow: bool = flag("-l", "follow symbolic links like directories")
    full: bool = flag("-f", "print the full path prefix for each file")
    one_file_system: bool = flag("-x", "stay on current filesystem only")
    level: str | None = value("-L", "descend only level directories deep", metavar="level")
    pattern: str | None = value("-P", "list only those files that match the pattern given", metavar="pattern")
    ignore: str | None = value("-I", "do not list files that match the given pattern", metavar="pattern")
    ignore_case: bool = flag("--ignore-case", "ignore case when pattern matching")
    match_directories: bool = flag("--matchdirs", "include directory names in -P pattern matching")
    prune: bool = flag("--prune", "prune empty directories from the output")
    no_report: bool = flag("--noreport", "turn off file/directory count at end of tree listing")
    charset: str | None = value("--charset", "use charset X for indentation line output", metavar="X")
    file_limit: str | None = value("--filelimit", "do not descend dirs with more than # files in them", metavar="#")
    output: str | None = value("-o", "output to file instead of stdout", metavar="filename")
    hide: bool = flag("-q", "print non-printable characters as '?'")
    literal: bool = flag("-N", "print non-printable characters as is")
    quote: bool = flag("-Q", "quote filenames with double quotes")
    permissions: bool = flag("-p", "print the protections for each file")
    user: bool = flag("-u", "displays file owner or UID number")
    group: bool = flag("-g", "displays file group owner or GID number")
    size: bool = flag("-s", "print the size in bytes of each file")
    human: str | None = choice({"-h": "human", "--si": "si"}, "print the size in a more human readable way")
    usage: bool = flag("--du", "compute size of directories by their contents")
    date: bool = flag("-D", "print the date of last modification or (-c) status change")
    time_format: str | None = value("--timefmt", "print and format time according to the format", metavar="format")
    classify: bool = flag("-F", "appends '/', '=', '*', '@', '|' or '>' as per ls -F")
    inodes: bool = flag("--inodes", "print inode number of each file")
    device: bool = flag("--device", "print device ID number to which each file belongs")
    sort: str | None = choice(
        {"-v": "version", "-t": "mtime", "-c": "ctime", "-U": "none"},
        "-v: sort by version; -t: by last modification time; -c: by last status change time; -U: leave unsorted",
    )
    reverse: bool = flag("-r", "reverse the order of the sort")
    grouping: str | None = choice(
        {"--dirsfirst": "directories", "--filesfirst": "files"}, "list directories (files) before files (directories)"
    )
    sort_word: str | None = value("--sort", "select sort: name,version,size,mtime,ctime", metavar="name")
    no_indent: bool = flag("-i", "don't print indentation lines")
    ansi: bool = flag("-A", "(accepted, ignored)")
    color: bool | None = choice({"-n": False, "-C": True}, "-n: turn colorization off always; -C: on always")
    form: str = choice({"-J": "json", "-X": "xml"}, "-J: prints out a JSON representation; -X: XML", default="text")


@utility("tree", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    selection = _selection(options)
    scanner = Scanner(process, selection)
    writers: dict[str, type[Writer]] = {"text": TextWriter, "json": JsonWriter, "xml": XmlWriter}
    lines: list[str] = []
    writer = writers[options.form](process, options, process.print if options.output is None else lines.append)
    writer.start()
    status = 0
    for path in operands or ["."]:
        branch = scanner.scan(path)
        if branch.error:
            status = 2
        writer.tree(branch)
    writer.finish()
    if options.output is not None:
        try:
            process.write_file(options.output, "\n".join([*lines, ""]).encode("utf-8", "surrogateescape"))
        except SysError as error:
            raise UsageError(f"invalid filename '{options.output}': {error.reason}", hint=False) from None
    return status


def _selection(options: Options) -> Selection:
    level: int | None = None
    if options.level is not None:
        if not (options.level.isascii() and options.level.isdecimal()) or int(options.level[:18]) < 1:
            raise UsageError("Invalid level, must be greater than 0.", hint=False)
        level = int(options.level[:18])
    limit = 0
    if options.file_limit is not None and options.file_limit.isascii() and options.file_limit.isdecimal():
        limit = int(options.file_limit[:18])
    sort = options.sort or "name"
    if options.sort_word is not None:
        if options.sort_word not in _SORTS:
            known = ",".join(_SORTS)
            message = f"Sort type '{options.sort_word}' not valid, should be one of: {known}"
            raise UsageError(message, hint=False)
        sort = options.sort_word
    return Selection(
        all=options.all,
        directories=options.directories,
        follow=options.follow,
        one_file_system=options.one_file_system,
        level=level,
        patterns=tuple(options.pattern.split("|")) if options.pattern is not None else (),
        ignored=tuple(options.ignore.split("|")) if options.ignore is not None else (),
        ignore_case=options.ignore_case,
        match_directories=options.match_directories,
        prune=options.prune,
        limit=limit,
        sort=sort,
        reverse=options.reverse,
        grouping=options.grouping,
        usage=options.usage,
    )
