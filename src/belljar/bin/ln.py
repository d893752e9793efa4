"""ln - make links between files

Usage: ln [OPTION]... [-T] TARGET LINK_NAME
  or:  ln [OPTION]... TARGET
  or:  ln [OPTION]... TARGET... DIRECTORY
  or:  ln [OPTION]... -t DIRECTORY TARGET...

Create hard links by default, symbolic links with --symbolic. By default, each destination (name of new link) should
not already exist. When creating hard links, each TARGET must exist.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EEXIST
from belljar.abi.errors import SysError
from belljar.abi.paths import basename, dirname
from belljar.bin._backup import BACKUP_HELP, SUFFIX_HELP, Backup, parse_backup
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.bin._kit.asking import ask
from belljar.bin._kit.quoting import quote_if_odd, quote_name
from belljar.bin._kit.realpath import real_path, relative_to
from belljar.bin._target import inside, split_operands
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    backup: str | None = value("--backup", BACKUP_HELP, metavar="CONTROL", bare="")
    simple_backup: bool = flag("-b", "like --backup but does not accept an argument")
    directory: bool = flag("-d", "-F", "--directory", "allow the superuser to attempt to hard link directories")
    overwrite: str | None = choice(
        {"-f": "force", "--force": "force", "-i": "ask", "--interactive": "ask"},
        "-f: remove existing destination files; -i: prompt whether to remove destinations",
    )
    logical: bool = choice(
        {"-L": True, "--logical": True, "-P": False, "--physical": False},
        "dereference TARGETs that are symbolic links; -P: make hard links directly to symbolic links",
        default=False,
    )
    no_dereference: bool = flag("-n", "--no-dereference", "treat LINK_NAME as a normal file if it is a symbolic link")
    relative: bool = flag("-r", "--relative", "with -s, create links relative to link location")
    symbolic: bool = flag("-s", "--symbolic", "make symbolic links instead of hard links")
    suffix: str | None = value("-S", "--suffix", SUFFIX_HELP, metavar="SUFFIX")
    target_directory: str | None = value(
        "-t", "--target-directory", "specify the DIRECTORY in which to create the links", metavar="DIRECTORY"
    )
    no_target_directory: bool = flag("-T", "--no-target-directory", "treat LINK_NAME as a normal file always")
    verbose: bool = flag("-v", "--verbose", "print name of each linked file")


@utility("ln", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.relative and not options.symbolic:
        raise UsageError("cannot do --relative without --symbolic", hint=False)
    backup = parse_backup(process, options.backup, options.suffix, wanted=options.simple_backup)
    if len(operands) == 1 and options.target_directory is None and not options.no_target_directory:
        operands = [operands[0], "./" + basename(operands[0])]
        directory: str | None = None
        targets = operands[:1]
    else:
        targets, directory = split_operands(
            process,
            operands,
            into=options.target_directory,
            whole=options.no_target_directory,
            follow=not options.no_dereference,
            access="failed to access",
        )
    linker = Linker(process, options, backup)
    if directory is None:
        return 0 if linker.link(targets[0], operands[1]) else 1
    status = 0
    made: set[str] = set()
    for target in targets:
        link = inside(directory, target)
        if link in made and not backup.enabled:
            process.warn(f"will not overwrite just-created {quote_name(link)} with {quote_name(target)}")
            status = 1
        elif linker.link(target, link):
            made.add(link)
        else:
            status = 1
    return status


class Linker:
    def __init__(self, process: Process, options: Options, backup: Backup) -> None:
        self._process = process
        self._options = options
        self._backup = backup

    def link(self, target: str, link: str) -> bool:
        """Whether it was made; what went wrong is said."""
        process, options, fs = self._process, self._options, self._process.fs
        process.budget.charge()
        if not options.symbolic and not self._linkable(target):
            return False
        content = self._relative(target, link) if options.relative else target
        saved = ""
        try:
            try:
                self._make(content, link)
            except SysError as error:
                if error.errno != EEXIST or (options.overwrite is None and not self._backup.enabled):
                    raise
                if not self._may_replace(target, link):
                    return False
                if self._backup.enabled:
                    saved = self._backup.save(process, link)
                else:
                    fs.unlink(link)
                self._make(content, link)
        except SysError as error:
            self._explain(error, content, link)
            return False
        if options.verbose:
            arrow = "->" if options.symbolic else "=>"
            before = f"{quote_name(saved)} ~ " if saved else ""
            process.print(f"{before}{quote_name(link)} {arrow} {quote_name(content)}")
        return True

    def _make(self, target: str, link: str) -> None:
        if self._options.symbolic:
            self._process.fs.symlink(target, link)
        else:
            self._process.fs.link(target, link, follow=self._options.logical)

    def _linkable(self, target: str) -> bool:
        try:
            stat = self._process.fs.stat(target, follow=self._options.logical)
        except SysError as error:
            self._process.warn(f"failed to access {quote_name(target)}: {error.reason}")
            return False
        if stat.is_dir and not self._options.directory:
            self._process.warn(f"{quote_if_odd(target)}: hard link not allowed for directory")
            return False
        return True

    def _may_replace(self, target: str, link: str) -> bool:
        process, fs = self._process, self._process.fs
        old = fs.stat(link, follow=False)
        if old.is_dir:
            process.warn(f"{quote_if_odd(link)}: cannot overwrite directory")
            return False
        if not self._options.symbolic or not old.is_symlink:
            new = fs.try_stat(target, follow=self._options.logical or self._options.symbolic)
            same = new is not None and (new.dev, new.ino) == (old.dev, old.ino)
            if same and (not self._options.symbolic or self._same_entry(target, link)):
                if not self._options.symbolic and not self._same_entry(target, link) and old.nlink > 1:
                    return self._options.overwrite != "ask" or self._agreed(link)
                process.warn(f"{quote_name(target)} and {quote_name(link)} are the same file")
                return False
        return self._options.overwrite != "ask" or self._agreed(link)

    def _agreed(self, link: str) -> bool:
        return ask(self._process, f"replace {quote_name(link)}")

    def _same_entry(self, a: str, b: str) -> bool:
        """Whether two paths are one name in one directory."""
        if basename(a) != basename(b):
            return False
        try:
            return self._process.fs.resolve(dirname(a)) == self._process.fs.resolve(dirname(b))
        except SysError:
            return False

    def _relative(self, target: str, link: str) -> str:
        try:
            base = real_path(self._process, dirname(link), "any")
            return relative_to(real_path(self._process, target, "any"), base)
        except SysError:
            return target

    def _explain(self, error: SysError, target: str, link: str) -> None:
        if self._options.symbolic:
            shown = quote_name(link) + ("" if target else " -> ''")
            self._process.warn(f"failed to create symbolic link {shown}: {error.reason}")
        else:
            shown = quote_name(link) + ("" if error.errno == EEXIST else f" => {quote_name(target)}")
            self._process.warn(f"failed to create hard link {shown}: {error.reason}")
