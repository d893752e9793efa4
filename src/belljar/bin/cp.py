"""cp - copy files and directories

Usage: cp [OPTION]... [-T] SOURCE DEST
  or:  cp [OPTION]... SOURCE... DIRECTORY
  or:  cp [OPTION]... -t DIRECTORY SOURCE...

Copy SOURCE to DEST, or multiple SOURCE(s) to DIRECTORY.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._backup import BACKUP_HELP, SUFFIX_HELP, parse_backup
from belljar.bin._copy import Copier, Rules, preserve_attributes
from belljar.bin._kit import UsageError, choice, flag, many, utility, value
from belljar.bin._kit.choices import pick, update_mode
from belljar.bin._kit.quoting import quote_name
from belljar.bin._target import inside, split_operands
from belljar.kernel.process import Process

_ATTRIBUTES = {"mode": (), "timestamps": (), "ownership": (), "links": (), "context": (), "xattr": (), "all": ()}
_USUAL = frozenset({"mode", "ownership", "timestamps"})
_ALL = _USUAL | {"links"}
_SPARSE = {"never": (), "auto": (), "always": ()}


@dataclass(frozen=True, slots=True)
class Options:
    archive: bool = flag("-a", "--archive", "same as -dR --preserve=all")
    attributes_only: bool = flag("--attributes-only", "don't copy the file data, just the attributes")
    backup: str | None = value("--backup", BACKUP_HELP, metavar="CONTROL", bare="")
    simple_backup: bool = flag("-b", "like --backup but does not accept an argument")
    copy_contents: bool = flag("--copy-contents", "copy contents of special files when recursive")
    links: bool = flag("-d", "same as --no-dereference --preserve=links")
    force: bool = flag("-f", "--force", "if an existing destination file cannot be opened, remove it and try again")
    existing: str = choice(
        {"-i": "ask", "--interactive": "ask", "-n": "keep", "--no-clobber": "keep"},
        "-i: prompt before overwrite; -n: do not overwrite an existing file",
        default="overwrite",
    )
    follow: str | None = choice(
        {
            "-H": "operands",
            "-L": "always",
            "--dereference": "always",
            "-P": "never",
            "--no-dereference": "never",
        },
        "-H: follow symbolic links in SOURCE; -L: always follow symbolic links; -P: never",
    )
    hard: bool = flag("-l", "--link", "hard link files instead of copying")
    preserve_usual: bool = flag("-p", "same as --preserve=mode,ownership,timestamps")
    preserve: str | None = value(
        "--preserve",
        "preserve the specified attributes",
        metavar="ATTR_LIST",
        bare="mode,ownership,timestamps",
    )
    no_preserve: tuple[str, ...] = many("--no-preserve", "don't preserve the specified attributes", metavar="ATTR_LIST")
    parents: bool = flag("--parents", "use full source file name under DIRECTORY")
    recursive: bool = flag("-R", "-r", "--recursive", "copy directories recursively")
    reflink: str | None = value("--reflink", "(accepted; contents are always copied)", metavar="WHEN", bare="always")
    remove_destination: bool = flag("--remove-destination", "remove each existing destination file before opening it")
    sparse: str = value("--sparse", "control creation of sparse files", metavar="WHEN", default="auto")
    strip: bool = flag("--strip-trailing-slashes", "remove any trailing slashes from each SOURCE argument")
    symbolic: bool = flag("-s", "--symbolic-link", "make symbolic links instead of copying")
    suffix: str | None = value("-S", "--suffix", SUFFIX_HELP, metavar="SUFFIX")
    target_directory: str | None = value(
        "-t", "--target-directory", "copy all SOURCE arguments into DIRECTORY", metavar="DIRECTORY"
    )
    no_target_directory: bool = flag("-T", "--no-target-directory", "treat DEST as a normal file")
    newer: bool = flag("-u", "copy only when the SOURCE file is newer than the destination file")
    update: str | None = value(
        "--update", "which existing files to update: all, none, none-fail, older", metavar="UPDATE", bare="older"
    )
    debug: bool = flag("--debug", "explain how a file is copied (as -v)")
    verbose: bool = flag("-v", "--verbose", "explain what is being done")
    one_file_system: bool = flag("-x", "--one-file-system", "stay on this file system")
    context: bool = flag("-Z", "(ignored)")
    context_of: str | None = value("--context", "(ignored)", metavar="CTX", bare="")


@utility("cp", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    rules = _rules(process, options)
    sources, directory = split_operands(
        process, operands, into=options.target_directory, whole=options.no_target_directory
    )
    if options.parents and directory is None:
        raise UsageError("with --parents, the destination must be a directory")
    copier = Copier(process, rules)
    status = 0
    seen: set[str] = set()
    for source in sources:
        if options.strip:
            source = source.rstrip("/") or source
        if directory is None:
            target = operands[-1]
        elif options.parents:
            target = directory.rstrip("/") + "/" + source.strip("/")
            if not _make_parents(process, rules, source.strip("/"), directory, absolute=source.startswith("/")):
                status = 1
                continue
        else:
            target = inside(directory, source)
        known = source
        while known.startswith("./"):
            known = known[2:].lstrip("/")
        if known in seen and not rules.backup.enabled:
            kind = "directory" if process.fs.is_dir(source) else "file"
            process.warn(f"warning: source {kind} {quote_name(source)} specified more than once")
            continue
        seen.add(known)
        if not copier.copy(source, target):
            status = 1
    return status


def _rules(process: Process, options: Options) -> Rules:
    if options.reflink is not None:
        pick(process, "--reflink", options.reflink, {"auto": (), "always": (), "never": ()})
    if options.context_of is not None:
        process.warn("warning: ignoring --context; it requires an SELinux-enabled kernel")
    backup = parse_backup(process, options.backup, options.suffix, wanted=options.simple_backup)
    if backup.enabled and options.existing == "keep":
        raise UsageError("options --backup and --no-clobber are mutually exclusive")
    if options.hard and options.symbolic:
        raise UsageError("cannot make both hard and symbolic links")
    update = update_mode(process, options.update, newer=options.newer)
    recursive = options.recursive or options.archive
    follow = options.follow
    if follow is None:
        follow = "never" if recursive or options.links else "always"
        if options.hard and not recursive:
            follow = "never"
    return Rules(
        backup,
        recursive=recursive,
        follow=follow,  # type: ignore[arg-type]
        preserve=_preserved(process, options),
        default_modes="mode" in _listed(process, "--no-preserve", options.no_preserve),
        force=options.force,
        existing={"none": "keep", "none-fail": "fail"}.get(update, options.existing),  # type: ignore[arg-type]
        update=update == "older",
        link="hard" if options.hard else "symbolic" if options.symbolic else "",
        remove_destination=options.remove_destination,
        verbose=options.verbose,
        one_file_system=options.one_file_system,
        attributes_only=options.attributes_only,
        copy_contents=options.copy_contents,
        sparse=pick(process, "--sparse", options.sparse, _SPARSE),  # type: ignore[arg-type]
    )


def _preserved(process: Process, options: Options) -> frozenset[str]:
    wanted = _listed(process, "--preserve", () if options.preserve is None else (options.preserve,))
    if options.archive:
        wanted |= _ALL
    if options.preserve_usual:
        wanted |= _USUAL
    if options.links:
        wanted |= {"links"}
    return frozenset(wanted - _listed(process, "--no-preserve", options.no_preserve))


def _listed(process: Process, option: str, lists: tuple[str, ...]) -> set[str]:
    wanted: set[str] = set()
    for names in lists:
        for name in names.split(","):
            word = pick(process, option, name, _ATTRIBUTES)
            wanted |= _ALL if word == "all" else {word}
    return wanted


def _make_parents(process: Process, rules: Rules, source: str, directory: str, *, absolute: bool) -> bool:
    """The directories above a source, below the destination, with the modes they have."""
    fs = process.fs
    end = 0
    while (end := source.find("/", end + 1)) != -1:
        above, made = source[:end], f"{directory.rstrip('/')}/{source[:end]}"
        original = "/" + above if absolute else above
        try:
            stat = fs.stat(original)
        except SysError as error:
            process.warn(f"failed to get attributes of {quote_name(original)}: {error.reason}")
            return False
        try:
            if not process.fs.is_dir(made):
                fs.mkdir(made, stat.mode & 0o777)
                if rules.verbose:
                    process.print(f"{original} -> {made}")
        except SysError as error:
            process.warn(f"cannot make directory {quote_name(made)}: {error.reason}")
            return False
        preserve_attributes(process, made, stat, rules.preserve)
    return True
