"""install - copy files and set attributes

Usage: install [OPTION]... [-T] SOURCE DEST
  or:  install [OPTION]... SOURCE... DIRECTORY
  or:  install [OPTION]... -t DIRECTORY SOURCE...
  or:  install [OPTION]... -d DIRECTORY...

Copy files into the place you choose, set permission modes and owner/group, and create all components of the given
DIRECTORY(ies).
"""

from collections.abc import Callable

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import dirname
from belljar.bin._backup import BACKUP_HELP, SUFFIX_HELP, Backup, parse_backup
from belljar.bin._copy import Copier, Rules
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.modes import parse_mode
from belljar.bin._kit.quoting import quote, quote_name
from belljar.bin._kit.users import Accounts
from belljar.bin._target import inside, split_operands
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    backup: str | None = value("--backup", BACKUP_HELP, metavar="CONTROL", bare="")
    simple_backup: bool = flag("-b", "like --backup but does not accept an argument")
    ignored: bool = flag("-c", "(ignored)")
    compare: bool = flag("-C", "--compare", "compare content of source and destination, and do not modify if the same")
    directories: bool = flag("-d", "--directory", "treat all arguments as directory names; create all of them")
    leading: bool = flag("-D", "create all leading components of DEST except the last, then copy SOURCE to DEST")
    group: str | None = value("-g", "--group", "set group ownership", metavar="GROUP")
    mode: str | None = value("-m", "--mode", "set permission mode (as in chmod), instead of rwxr-xr-x", metavar="MODE")
    owner: str | None = value("-o", "--owner", "set ownership (super-user only)", metavar="OWNER")
    preserve: bool = flag("-p", "--preserve-timestamps", "apply times of SOURCE files to the destination files")
    strip: bool = flag("-s", "--strip", "(accepted; there are no symbol tables here)")
    strip_program: str | None = value("--strip-program", "(ignored)", metavar="PROGRAM")
    suffix: str | None = value("-S", "--suffix", SUFFIX_HELP, metavar="SUFFIX")
    target_directory: str | None = value(
        "-t", "--target-directory", "copy all SOURCE arguments into DIRECTORY", metavar="DIRECTORY"
    )
    no_target_directory: bool = flag("-T", "--no-target-directory", "treat DEST as a normal file")
    verbose: bool = flag("-v", "--verbose", "print the name of each created file or directory")
    context: bool = flag("-Z", "--preserve-context", "(ignored)")


@utility("install", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    installer = Installer(process, options)
    if options.directories:
        if options.target_directory is not None:
            raise UsageError("target directory not allowed when installing a directory", hint=False)
        if not operands:
            raise UsageError("missing file operand")
        return 0 if all([installer.directory(path, final=True) for path in operands]) else 1
    if options.leading and options.target_directory is not None and not installer.directory(options.target_directory):
        return 1
    sources, directory = split_operands(
        process,
        operands,
        into=options.target_directory,
        whole=options.no_target_directory,
        access="failed to access",
    )
    status = 0
    for source in sources:
        target = operands[-1] if directory is None else inside(directory, source)
        made = not options.leading or directory is not None or installer.directory(dirname(target))
        if not made or not installer.file(source, target):
            status = 1
    return status


class Installer:
    def __init__(self, process: Process, options: Options) -> None:
        self._process = process
        self._options = options
        change = parse_mode(options.mode if options.mode is not None else "755")
        if change is None:
            raise UsageError(f"invalid mode {quote(options.mode or '', process.env)}", hint=False)
        self._change = change
        self._backup = parse_backup(process, options.backup, options.suffix, wanted=options.simple_backup)
        accounts = Accounts(process)
        self._uid = self._account("user", options.owner, accounts.user)
        self._gid = self._account("group", options.group, accounts.group)

    def _account(self, kind: str, name: str | None, find: Callable[[str], int | None]) -> int:
        if name is None:
            return -1
        found = find(name)
        if found is None:
            raise UsageError(f"invalid {kind} {quote(name, self._process.env)}", hint=False)
        return found

    def directory(self, path: str, *, final: bool = False) -> bool:
        """Make a directory with those above it; `final` ones get the mode and owner asked for."""
        fs = self._process.fs
        parts = path.rstrip("/").split("/")
        for end in range(1, len(parts) + 1):
            above = "/".join(parts[:end])
            if not above or parts[end - 1] in ("", "."):
                continue
            self._process.budget.charge()
            try:
                try:
                    if fs.stat(above).is_dir:
                        continue
                except SysError as error:
                    if error.name != "ENOENT":
                        raise
                fs.mkdir(above, 0o755)
                if self._options.verbose:
                    self._process.print(f"{self._process.name}: creating directory {quote_name(above)}")
            except SysError as error:
                self._process.warn(f"cannot create directory {quote(above, self._process.env)}: {error.reason}")
                return False
        return not final or self._dress(path, directory=True)

    def file(self, source: str, target: str) -> bool:
        process, options, fs = self._process, self._options, self._process.fs
        process.budget.charge()
        try:
            stat = fs.stat(source)
            if stat.is_dir:
                process.warn(f"omitting directory {quote_name(source)}")
                return False
            if options.compare and self._same(source, target):
                return True
            saved = self._clear(source, target)
        except SysError as error:
            process.warn(f"cannot stat {quote_name(source)}: {error.reason}")
            return False
        if saved is None:
            return False
        if options.verbose:
            tail = f" (backup: {quote_name(saved)})" if saved else ""
            process.print(f"{quote_name(source)} -> {quote_name(target)}{tail}")
        preserve = frozenset({"timestamps"}) if options.preserve else frozenset[str]()
        copier = Copier(process, Rules(Backup("none", ""), preserve=preserve, default_modes=True))
        return copier.copy(source, target) and self._dress(target, directory=False)

    def _clear(self, source: str, target: str) -> str | None:
        """Put the old file away: the name of its backup, "" without one; None if it may not be replaced."""
        process, fs = self._process, self._process.fs
        if (old := fs.try_stat(target, follow=False)) is None:
            return ""
        new = fs.stat(source)
        if (old.dev, old.ino) == (new.dev, new.ino):
            process.warn(f"{quote_name(source)} and {quote_name(target)} are the same file")
            return None
        if old.is_dir:
            process.warn(f"cannot overwrite directory {quote_name(target)} with non-directory")
            return None
        if self._backup.enabled:
            return self._backup.save(process, target)
        fs.unlink(target)
        if self._options.verbose:
            process.print(f"removed {quote_name(target)}")
        return ""

    def _same(self, source: str, target: str) -> bool:
        process, fs = self._process, self._process.fs
        if (old := fs.try_stat(target, follow=False)) is None:
            return False
        mode = self._change.apply(0, 0, directory=False)
        if not old.is_regular or old.mode & 0o7777 != mode or self._uid not in (-1, old.uid):
            return False
        return self._gid in (-1, old.gid) and process.read_file(source) == process.read_file(target)

    def _dress(self, path: str, *, directory: bool) -> bool:
        fs = self._process.fs
        try:
            if self._uid != -1 or self._gid != -1:
                fs.chown(path, self._uid, self._gid)
        except SysError as error:
            self._process.warn(f"cannot change ownership of {quote_name(path)}: {error.reason}")
            return False
        try:
            fs.chmod(path, self._change.apply(0, 0, directory=directory))
        except SysError as error:
            self._process.warn(f"cannot change permissions of {quote_name(path)}: {error.reason}")
            return False
        return True
