"""rsync - copy files, sending only what changed

Usage: rsync [OPTION]... SRC [SRC]... DEST

Copy files and directories within this machine so that DEST becomes like SRC; files with the same size and modification
time are left alone. A trailing slash on SRC means its contents. There are no remote hosts here.
"""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import Program, UsageError, flag, many, utility, value
from belljar.bin._kit.options import UsageError as ParseError
from belljar.bin.rsync.filters import parse_rules
from belljar.bin.rsync.sync import Sync
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    archive: bool = flag("-a", "--archive", "archive mode is -rlptgoD")
    verbose: bool = flag("-v", "--verbose", "increase verbosity")
    quiet: bool = flag("-q", "--quiet", "suppress non-error messages")
    checksum: bool = flag("-c", "--checksum", "skip based on contents, not mod-time & size")
    recursive: bool = flag("-r", "--recursive", "recurse into directories")
    relative: bool = flag("-R", "--relative", "use relative path names")
    update: bool = flag("-u", "--update", "skip files that are newer on the receiver")
    links: bool = flag("-l", "--links", "copy symlinks as symlinks")
    copy_links: bool = flag("-L", "--copy-links", "transform symlink into referent file/dir")
    hard_links: bool = flag("-H", "--hard-links", "preserve hard links")
    perms: bool = flag("-p", "--perms", "preserve permissions")
    executability: bool = flag("-E", "--executability", "(accepted, ignored)")
    owner: bool = flag("-o", "--owner", "preserve owner (super-user only)")
    group: bool = flag("-g", "--group", "preserve group")
    devices: bool = flag("-D", "--devices", "--specials", "preserve special files")
    times: bool = flag("-t", "--times", "preserve modification times")
    dry_run: bool = flag("-n", "--dry-run", "perform a trial run with no changes made")
    whole_file: bool = flag("-W", "--whole-file", "(files are always copied whole)")
    one_file_system: bool = flag("-x", "--one-file-system", "don't cross filesystem boundaries")
    existing: bool = flag("--existing", "skip creating new files on receiver")
    ignore_existing: bool = flag("--ignore-existing", "skip updating files that exist on receiver")
    remove_source: bool = flag("--remove-source-files", "sender removes synchronized files (non-dir)")
    delete: bool = flag(
        "--delete",
        "--del",
        "--delete-before",
        "--delete-during",
        "--delete-delay",
        "--delete-after",
        "delete extraneous files from dest dirs",
    )
    delete_excluded: bool = flag("--delete-excluded", "also delete excluded files from dest dirs")
    ignore_times: bool = flag("-I", "--ignore-times", "don't skip files that match size and time")
    size_only: bool = flag("--size-only", "skip files that match in size")
    compress: bool = flag("-z", "--compress", "(accepted, ignored)")
    exclude: tuple[str, ...] = many("--exclude", "exclude files matching PATTERN", metavar="PATTERN")
    exclude_from: tuple[str, ...] = many("--exclude-from", "read exclude patterns from FILE", metavar="FILE")
    include: tuple[str, ...] = many("--include", "don't exclude files matching PATTERN", metavar="PATTERN")
    include_from: tuple[str, ...] = many("--include-from", "read include patterns from FILE", metavar="FILE")
    filter: tuple[str, ...] = many("-f", "--filter", "add a file-filtering RULE", metavar="RULE")
    prune: bool = flag("-m", "--prune-empty-dirs", "prune empty directory chains from file-list")
    mkpath: bool = flag("--mkpath", "create destination's missing path components")
    stats: bool = flag("--stats", "give some file-transfer stats")
    human: bool = flag("-h", "--human-readable", "(accepted, ignored)")
    progress: bool = flag("--progress", "show progress during transfer")
    partial: bool = flag("--partial", "--inplace", "--sparse", "-S", "(accepted, ignored)")
    partial_progress: bool = flag("-P", "same as --partial --progress")
    itemize: bool = flag("-i", "--itemize-changes", "output a change-summary for all updates")
    out_format: str | None = value("--out-format", "output updates using the specified FORMAT", metavar="FORMAT")
    info: str | None = value("--info", "(accepted, ignored)", metavar="FLAGS")
    max_size: str | None = value("--max-size", "don't transfer any file larger than SIZE", metavar="SIZE")
    min_size: str | None = value("--min-size", "don't transfer any file smaller than SIZE", metavar="SIZE")
    backup: bool = flag("-b", "--backup", "make backups (see --suffix & --backup-dir)")
    backup_dir: str | None = value("--backup-dir", "make backups into hierarchy based in DIR", metavar="DIR")
    suffix: str | None = value("--suffix", "backup suffix (default ~ w/o --backup-dir)", metavar="SUFFIX")
    link_dest: tuple[str, ...] = many("--link-dest", "hardlink to files in DIR when unchanged", metavar="DIR")
    compare_dest: tuple[str, ...] = many("--compare-dest", "also compare destination files to DIR", metavar="DIR")
    copy_dest: tuple[str, ...] = many("--copy-dest", "... and include copies of unchanged files", metavar="DIR")
    files_from: str | None = value("--files-from", "read list of source-file names from FILE", metavar="FILE")
    from0: bool = flag("-0", "--from0", "all *-from/filter files are delimited by 0s")
    list_only: bool = flag("--list-only", "list the files instead of copying them")
    dirs: bool = flag("-d", "--dirs", "transfer directories without recursing")
    chmod: str | None = value("--chmod", "affect file and/or directory permissions", metavar="CHMOD")
    shell: str | None = value("-e", "--rsh", "(no remote hosts here)", metavar="COMMAND")
    limit: str | None = value("--bwlimit", "--timeout", "--contimeout", "--max-delete", "(ignored)", metavar="N")
    plain: bool = flag(
        "--numeric-ids", "-A", "--acls", "-X", "--xattrs", "--force", "--ignore-errors", "--no-motd", "--fuzzy", "-y",
        "--no-inc-recursive", "--no-whole-file", "--append", "--protect-args", "--fsync", "-O", "--omit-dir-times",
        "-J", "--omit-link-times", "-N", "-U", "--open-noatime", "(accepted, ignored)",
    )  # fmt: skip
    no_perms: bool = flag("--no-perms", "--no-p", "do not preserve permissions")
    no_times: bool = flag("--no-times", "--no-t", "do not preserve times")
    no_owner: bool = flag("--no-owner", "--no-o", "do not preserve owner")
    no_group: bool = flag("--no-group", "--no-g", "do not preserve group")
    no_links: bool = flag("--no-links", "--no-l", "do not copy symlinks")


@utility("rsync", Options)
def _rsync(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        process.print(main.help(), end="")
        _end(process, "syntax or usage error", 1)
        return 1
    remote = next((path for path in operands if ":" in path.partition("/")[0]), None)
    if remote is not None:
        raise UsageError(f"{remote}: there are no remote hosts here", hint=False)
    try:
        rules = parse_rules(process, process.argv[1:])
    except SysError as error:
        process.warn(f"failed to open exclude file {error.path}: {error.reason} ({error.errno})")
        _end(process, "error in file IO", 11)
        return 11
    sync = Sync(process, options, rules)
    sources, target = (operands[:-1], operands[-1]) if len(operands) > 1 else (operands, None)
    if options.list_only and target is not None:
        sources, target = operands, None
    status = sync.list_only(sources) if target is None else sync.run(sources, target)
    if status:
        words = {
            23: "some files/attrs were not transferred (see previous errors)",
            3: "errors selecting input/output files, dirs",
        }
        _end(process, words.get(status, "error"), status)
    return status


def _end(process: Process, what: str, code: int) -> None:
    process.stdout.flush()
    process.error(f"rsync error: {what} (code {code})\n")


def _run(process: Process, args: list[str]) -> int:
    try:
        return _rsync.run(process, args)
    except ParseError as error:
        text = str(error)
        name = text.rpartition("'")[0].rpartition("'")[2] if "option" in text else ""
        process.error(f"rsync: {name}: unknown option\n" if "unrecognized" in text else f"rsync: {text}\n")
        _end(process, "syntax or usage error", 1)
        return 1


main = Program("rsync", _rsync.doc, Options, _run)
