"""chmod - change file mode bits

Usage: chmod [OPTION]... MODE[,MODE]... FILE...
  or:  chmod [OPTION]... OCTAL-MODE FILE...
  or:  chmod [OPTION]... --reference=RFILE FILE...

Change the mode of each FILE to MODE. Each MODE is of the form '[ugoa]*([-+=]([rwxXst]*|[ugo]))+|[-+=][0-7]+'.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import PERMISSIONS
from belljar.bin._kit import Program, UsageError, choice, flag, utility, value
from belljar.bin._kit.modes import ModeChange, parse_mode, render_mode
from belljar.bin._kit.quoting import quote, quote_if_odd, quote_name
from belljar.bin._root import refuse_root
from belljar.bin._tree import Follow, Problem, Visit, Walk
from belljar.kernel.process import Process

_MARK = "\0"
"""Stands before a mode like -x, which would be taken for an option; no argument can hold it."""


@dataclass(frozen=True, slots=True)
class Options:
    say: str = choice(
        {"-c": "changes", "--changes": "changes", "-v": "all", "--verbose": "all"},
        "-c: report only when a change is made; -v: output a diagnostic for every file processed",
        default="",
    )
    silent: bool = flag("-f", "--silent", "--quiet", "suppress most error messages")
    root: str = choice({"--preserve-root": "preserve", "--no-preserve-root": ""}, "fail to operate on '/'", default="")
    reference: str | None = value("--reference", "use RFILE's mode instead of MODE values", metavar="RFILE")
    recursive: bool = flag("-R", "--recursive", "change files and directories recursively")
    dereference: bool | None = choice(
        {"--dereference": True, "-h": False, "--no-dereference": False},
        "affect the referent of each symbolic link (this is the default), or (-h) leave links alone",
    )
    traverse: str = choice(
        {"-H": "operands", "-L": "always", "-P": "never"},
        "with -R, traverse symlinks to directories: -H those given, -L every, -P none",
        default="operands",
    )


@utility("chmod", Options)
def _chmod(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    text = ""
    if options.reference is None:
        text, *operands = operands
        minus = text.startswith(_MARK)
        text = text.removeprefix(_MARK)
        if not operands:
            raise UsageError(f"missing operand after {quote(text, process.env)}")
        change = parse_mode(text)
        if change is None:
            raise UsageError(f"invalid mode: {quote(text, process.env)}")
    else:
        minus = False
        try:
            change = ModeChange(process.fs.stat(options.reference).mode & PERMISSIONS, True, ())
        except SysError as error:
            what = f"failed to get attributes of {quote_name(options.reference)}"
            raise UsageError(f"{what}: {error.reason}", hint=False) from None
    changer = Changer(process, options, change, surprises=minus)
    for path in operands:
        changer.change(path)
    return 1 if changer.failed else 0


def _mark_modes(args: list[str]) -> list[str]:
    """The arguments with -x and its like in front, marked; several are one mode."""
    end = args.index("--") if "--" in args else len(args)
    modes = [arg for arg in args[:end] if arg.startswith("-") and arg[1:2] and arg[1] in "rwxXstugoa,+=01234567"]
    if not modes:
        return args
    return [_MARK + ",".join(modes), *(arg for arg in args[:end] if arg not in modes), *args[end:]]


main = Program("chmod", _chmod.doc, Options, lambda process, args: _chmod.run(process, _mark_modes(args)))


class Changer:
    def __init__(self, process: Process, options: Options, change: ModeChange, *, surprises: bool) -> None:
        self._process = process
        self._options = options
        self._change = change
        self._surprises = surprises
        """Whether to say when the umask held something back."""
        follow: Follow = "never" if options.dereference is False else options.traverse  # type: ignore[assignment]
        self._walk = Walk(process, self._problem, follow=follow, max_depth=None if options.recursive else 0)
        self.failed = False

    def change(self, path: str) -> None:
        if self._options.recursive and self._options.root and refuse_root(self._process, path):
            self.failed = True
            return
        for visit in self._walk.walk(path):
            if not visit.after:
                self._visit(visit)

    def _visit(self, visit: Visit) -> None:
        process, fs = self._process, self._process.fs
        if visit.stat.is_symlink:
            if self._options.dereference is False and visit.depth == 0:
                self._fail(f"changing permissions of {quote_name(visit.path)}: Operation not supported")
                return
            if visit.depth == 0:
                self._fail(f"cannot operate on dangling symlink {quote_name(visit.path)}")
            elif self._options.say == "all":
                shown = quote_name(visit.path)
                process.print(f"neither symbolic link {shown} nor referent has been changed")
            return
        old = visit.stat.mode & PERMISSIONS
        new = self._change.apply(old, fs.umask, directory=visit.stat.is_dir)
        try:
            fs.set_mode(visit.place, new, visit.path)
        except SysError as error:
            self._fail(f"changing permissions of {quote_name(visit.path)}: {error.reason}")
            if self._options.say == "all":
                process.print(f"failed to change mode of {quote_name(visit.path)} from {_show(old)} to {_show(new)}")
            return
        if self._options.say and new != old:
            process.print(f"mode of {quote_name(visit.path)} changed from {_show(old)} to {_show(new)}")
        elif self._options.say == "all":
            process.print(f"mode of {quote_name(visit.path)} retained as {_show(old)}")
        if self._surprises:
            expected = self._change.apply(old, 0, directory=visit.stat.is_dir)
            if new & ~expected:
                shown = f"new permissions are {render_mode(new)[1:]}, not {render_mode(expected)[1:]}"
                self.failed = True
                process.warn(f"{quote_if_odd(visit.path)}: {shown}")

    def _problem(self, problem: Problem, path: str, error: SysError) -> None:
        what = "cannot read directory" if problem == "read" else "cannot access"
        self._fail(f"{what} {quote_name(path)}: {error.reason}")
        if problem == "stat" and self._options.say == "all":
            self._process.print(f"{quote_name(path)} could not be accessed")

    def _fail(self, message: str) -> None:
        self.failed = True
        if not self._options.silent:
            self._process.warn(message)


def _show(mode: int) -> str:
    return f"{mode:04o} ({render_mode(mode)[1:]})"
