"""mv - move (rename) files

Usage: mv [OPTION]... [-T] SOURCE DEST
  or:  mv [OPTION]... SOURCE... DIRECTORY
  or:  mv [OPTION]... -t DIRECTORY SOURCE...

Rename SOURCE to DEST, or move SOURCE(s) to DIRECTORY.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EINVAL, ENOENT, EXDEV
from belljar.abi.errors import SysError
from belljar.abi.flags import W_OK
from belljar.abi.records import Stat
from belljar.bin._backup import BACKUP_HELP, SUFFIX_HELP, Backup, parse_backup
from belljar.bin._copy import Copier, Rules
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.bin._kit.asking import ask
from belljar.bin._kit.choices import update_mode
from belljar.bin._kit.quoting import quote_name
from belljar.bin._remove import Remover
from belljar.bin._target import inside, split_operands
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    backup: str | None = value("--backup", BACKUP_HELP, metavar="CONTROL", bare="")
    simple_backup: bool = flag("-b", "like --backup but does not accept an argument")
    existing: str | None = choice(
        {
            "-f": "force",
            "--force": "force",
            "-i": "ask",
            "--interactive": "ask",
            "-n": "keep",
            "--no-clobber": "keep",
        },
        "-f: do not prompt before overwriting; -i: prompt before overwrite; -n: do not overwrite an existing file",
    )
    strip: bool = flag("--strip-trailing-slashes", "remove any trailing slashes from each SOURCE argument")
    suffix: str | None = value("-S", "--suffix", SUFFIX_HELP, metavar="SUFFIX")
    target_directory: str | None = value(
        "-t", "--target-directory", "move all SOURCE arguments into DIRECTORY", metavar="DIRECTORY"
    )
    no_target_directory: bool = flag("-T", "--no-target-directory", "treat DEST as a normal file")
    newer: bool = flag("-u", "move only when the SOURCE file is newer than the destination file")
    update: str | None = value(
        "--update", "which existing files to update: all, none, none-fail, older", metavar="UPDATE", bare="older"
    )
    debug: bool = flag("--debug", "explain how a file is copied (as -v)")
    no_copy: bool = flag("--no-copy", "do not copy if renaming fails")
    exchange: bool = flag("--exchange", "exchange source and destination")
    verbose: bool = flag("-v", "--verbose", "explain what is being done")
    context: bool = flag("-Z", "(ignored)")


@utility("mv", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    backup = parse_backup(process, options.backup, options.suffix, wanted=options.simple_backup)
    if backup.enabled and options.existing == "keep":
        raise UsageError("options --backup and --no-clobber are mutually exclusive")
    sources, directory = split_operands(
        process, operands, into=options.target_directory, whole=options.no_target_directory
    )
    mover = Mover(process, options, backup)
    status = 0
    for source in sources:
        if options.strip:
            source = source.rstrip("/") or source
        target = operands[-1] if directory is None else inside(directory, source)
        if options.exchange:
            status = status if _exchange(process, options, source, target) else 1
            continue
        if not mover.move(source, target):
            status = 1
    return status


def _exchange(process: Process, options: Options, source: str, target: str) -> bool:
    """Each file gets the other's name, by way of a third."""
    between = f"{target}.exchange.{process.pid}"
    try:
        process.fs.stat(target, follow=False)
        process.fs.rename(source, between)
        process.fs.rename(target, source)
        process.fs.rename(between, target)
    except SysError as error:
        process.warn(f"cannot exchange {quote_name(source)} and {quote_name(target)}: {error.reason}")
        return False
    if options.verbose:
        process.print(f"exchanged {quote_name(source)} <-> {quote_name(target)}")
    return True


class Mover:
    def __init__(self, process: Process, options: Options, backup: Backup) -> None:
        self._process = process
        self._fs = process.fs
        self._options = options
        self._backup = backup
        self._copier = Copier(
            process,
            Rules(
                Backup("none", ""),
                recursive=True,
                follow="never",
                preserve=frozenset({"mode", "ownership", "timestamps", "links"}),
                verbose=options.verbose,
                verb="copied",
            ),
        )
        self._moved: set[str] = set()
        self._update = update_mode(process, options.update, newer=options.newer)

    def move(self, source: str, target: str) -> bool:
        """Whether it went well; what did not is said."""
        self._process.budget.charge()
        try:
            stat = self._fs.stat(source, follow=False)
        except SysError as error:
            return self._fail(f"cannot stat {quote_name(source)}: {error.reason}")
        try:
            old: Stat | None = self._fs.stat(target, follow=False)
        except SysError as error:
            if error.errno != ENOENT:
                return self._fail(f"cannot stat {quote_name(target)}: {error.reason}")
            old = None
        saved = ""
        if old is not None:
            verdict = self._check_existing(source, target, stat, old)
            if verdict is not None:
                return verdict
            if self._backup.enabled:
                try:
                    saved = self._backup.save(self._process, target)
                except SysError as error:
                    return self._fail(f"cannot backup {quote_name(target)}: {error.reason}")
        return self._rename(source, target, saved)

    def _check_existing(self, source: str, target: str, stat: Stat, old: Stat) -> bool | None:
        """Return the result if an existing destination ends the move; None to go on."""
        options = self._options
        if (stat.dev, stat.ino) == (old.dev, old.ino):
            return self._fail(f"{quote_name(source)} and {quote_name(target)} are the same file")
        if self._update == "older" and not stat.is_dir and old.mtime >= stat.mtime:
            return True
        if self._update == "none-fail":
            return self._fail(f"not replacing {quote_name(target)}")
        if options.existing == "keep" or self._update == "none":
            return True
        if not self._agreed(target, old):
            return True
        if stat.is_dir and not old.is_dir:
            shown = f"{quote_name(target)} with directory {quote_name(source)}"
            return self._fail(f"cannot overwrite non-directory {shown}")
        if old.is_dir and not stat.is_dir:
            return self._fail(f"cannot overwrite directory {quote_name(target)} with non-directory")
        if target in self._moved and not self._backup.enabled:
            return self._fail(f"will not overwrite just-created {quote_name(target)} with {quote_name(source)}")
        return None

    def _agreed(self, target: str, old: Stat) -> bool:
        """Prompt with -i, and at a terminal also before a file that can't be written to."""
        options = self._options
        if options.existing == "ask":
            return ask(self._process, self._copier.question(target, old))
        if options.existing == "force" or old.is_symlink or not self._process.isatty(0):
            return True
        try:
            self._fs.access(target, W_OK)
        except SysError:
            return ask(self._process, self._copier.question(target, old))
        return True

    def _rename(self, source: str, target: str, saved: str) -> bool:
        try:
            self._fs.rename(source, target)
        except SysError as error:
            if error.errno == EXDEV:
                return self._carry(source, target)
            if error.errno == EINVAL:
                shown = f"{quote_name(source)} to a subdirectory of itself, {quote_name(target)}"
                return self._fail(f"cannot move {shown}")
            return self._fail(f"cannot move {quote_name(source)} to {quote_name(target)}: {error.reason}")
        self._moved.add(target)
        if self._options.verbose:
            tail = f" (backup: {quote_name(saved)})" if saved else ""
            self._process.print(f"renamed {quote_name(source)} -> {quote_name(target)}{tail}")
        return True

    def _carry(self, source: str, target: str) -> bool:
        """Move to another file system: copy all, then remove the source."""
        try:
            stat = self._fs.stat(target, follow=False)
            if stat.is_dir:
                self._fs.rmdir(target)
            else:
                self._fs.unlink(target)
        except SysError as error:
            if error.errno != ENOENT:
                shown = f"{quote_name(source)} to {quote_name(target)}"
                return self._fail(f"inter-device move failed: {shown}; unable to remove target: {error.reason}")
        if not self._copier.copy(source, target):
            return False
        self._moved.add(target)
        remover = Remover(self._process, recursive=True, force=True, verbose=self._options.verbose)
        remover.remove(source)
        return not remover.failed

    def _fail(self, message: str) -> bool:
        self._process.warn(message)
        return False
