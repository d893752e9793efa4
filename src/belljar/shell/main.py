"""`bash` and `sh` as programs: their command line, start-up files, and where commands come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.abi.signals import Signal
from belljar.kernel.process import IGNORE, Process
from belljar.shell.control import Break, Continue, Discard, ExitShell, KilledBySignal, Return, ShellError
from belljar.shell.input import read_line
from belljar.shell.options import LETTERS, SET_OPTIONS
from belljar.shell.parse import Parser, ShellSyntaxError
from belljar.shell.programs import SyntaxFailure, options_for, report_warnings, run_script
from belljar.shell.shell import Shell
from belljar.shell.special import bind, install
from belljar.shell.variables import EXPORT, Var

VERSION_TEXT = "GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)\n"
USAGE = """Usage:\t{name} [GNU long option] [option] ...
\t{name} [GNU long option] [option] script-file ...
GNU long options:
\t--debug
\t--debugger
\t--dump-po-strings
\t--dump-strings
\t--help
\t--init-file
\t--login
\t--noediting
\t--noprofile
\t--norc
\t--posix
\t--pretty-print
\t--rcfile
\t--restricted
\t--verbose
\t--version
Shell options:
\t-ilrsD or -c command or -O shopt_option\t\t(invocation only)
\t-abefhkmnptuvxBCEHPT or -o option
"""
SET_LETTERS = "abefhkmnptuvxBCEHPT"


class Invocation(Struct):
    """The command line, read."""

    command: str | None = None
    read_stdin: bool = False
    interactive: bool | None = None
    login: bool = False
    no_profile: bool = False
    no_rc: bool = False
    rc_file: str | None = None
    options: list[tuple[str, bool]] = field(default_factory=list)
    shopts: list[tuple[str, bool]] = field(default_factory=list)
    list_options: list[tuple[str, bool]] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    ask: str = ""


class UsageError(Exception):
    """A wrong command line; the status is 2."""

    def __init__(self, message: str, *, shows_usage: bool = True) -> None:
        super().__init__(message)
        self.shows_usage = shows_usage


def parse_invocation(args: list[str]) -> Invocation:
    """Read the arguments of `bash`. UsageError."""
    found = Invocation()
    wants_command = False
    position = 0
    while position < len(args):
        arg = args[position]
        if arg in ("-", "--"):
            position += 1
            break
        if arg.startswith("--"):
            position += 1
            position += _long_option(found, arg, args[position:])
            continue
        if len(arg) < 2 or arg[0] not in "-+":
            break
        position += 1
        on = arg[0] == "-"
        for letter in arg[1:]:
            if letter == "c":
                wants_command = True
            elif letter == "s" and on:
                found.read_stdin = True
            elif letter == "i":
                found.interactive = on
            elif letter == "l" and on:
                found.login = True
            elif letter == "r" and on:
                found.shopts.append(("restricted_shell", True))
            elif letter == "D":
                found.options.append(("noexec", True))
            elif letter in "oO":
                target = found.options if letter == "o" else found.shopts
                if position >= len(args):
                    found.list_options.append((letter, on))
                    continue
                target.append((args[position], on))
                position += 1
            elif letter in SET_LETTERS:
                found.options.append((LETTERS[letter], on))
            else:
                raise UsageError(f"{arg[0]}{letter}: invalid option")
    operands = args[position:]
    if wants_command:
        if not operands:
            raise UsageError("-c: option requires an argument", shows_usage=False)
        found.command, operands = operands[0], operands[1:]
    found.operands = operands
    return found


def _long_option(found: Invocation, arg: str, following: list[str]) -> int:
    """Apply a long option; returns how many of the following arguments it takes."""
    match arg[2:]:
        case "login":
            found.login = True
        case "posix":
            found.options.append(("posix", True))
        case "noprofile":
            found.no_profile = True
        case "norc":
            found.no_rc = True
        case "version" | "help":
            found.ask = arg[2:]
        case "verbose":
            found.options.append(("verbose", True))
        case "rcfile" | "init-file":
            if not following:
                raise UsageError(f"{arg[2:]}: option requires an argument")
            found.rc_file = following[0]
            return 1
        case "noediting" | "restricted" | "dump-strings" | "dump-po-strings" | "debugger" | "pretty-print":
            pass
        case _:
            raise UsageError(f"{arg}: invalid option")
    return 0


def main(process: Process) -> int:
    """Run as `bash` or `sh`, whatever argv[0] says."""
    argv = process.argv
    zero = argv[0] if argv else "bash"
    name = zero.lstrip("-").rpartition("/")[2]
    plain = len(argv) == 3 and argv[1] == "-c" and argv[2][:1] not in ("", "-", "+")
    try:
        invocation = Invocation(argv[2]) if plain else parse_invocation(argv[1:])
    except UsageError as error:
        process.error(f"{zero}: {error}\n")
        if error.shows_usage:
            process.error(USAGE.format(name=zero))
        return 2
    if invocation.ask:
        usage = VERSION_TEXT.replace("(x86", "-(x86").replace(" -(", "-(") + USAGE.format(name=zero)
        process.stdout.write((VERSION_TEXT if invocation.ask == "version" else usage).encode())
        return 0
    shell = Shell(process)
    shell.name = zero
    shell.login = invocation.login or zero.startswith("-")
    return Session(shell, invocation, posix=name == "sh", plain=plain).run()


def _ignore_quit(_number: int) -> None:
    """Do nothing on SIGQUIT; unlike an ignored signal, a caught one is reset to the default in children."""


class _StartState(Struct):
    """The state of the last `bash -c` before its command, reused if the next one starts the same way."""

    env: Mapping[str, str]
    name: str
    last_argument: str
    byte_locale: bool


_last_start: list[_StartState] = []
TRACE_PROMPT = "+[$BASHPID] "
"""PS4 of a shell that traces because the environment has TRACE=1, as all shells that it starts do."""
_START_VARIABLES = frozenset({"BASH_ENV", "BASHOPTS", "POSIXLY_CORRECT", "SHELLOPTS", "TRACE"})
"""Environment variables that change how a shell starts."""


class Session:
    """One run of the shell, from its start-up files to its EXIT trap. `plain`: `bash -c command`, and nothing else."""

    def __init__(self, shell: Shell, invocation: Invocation, *, posix: bool, plain: bool = False) -> None:
        self.shell = shell
        self.invocation = invocation
        self.posix = posix
        self.plain = plain and not posix and not shell.login

    def run(self) -> int:
        shell = self.shell
        try:
            try:
                status = self._run()
            except ExitShell as end:
                status = end.status
            except (Return, Discard) as end:
                status = end.status
            except (Break, Continue):
                status = shell.status
            except ShellError as error:
                shell.error(str(error))
                status = error.status
            if shell.fatal:
                shell.die_of_signal()
            return shell.finish(status)
        except KilledBySignal:
            shell.die_of_signal()
        finally:
            shell.end()

    def _run(self) -> int:
        shell, invocation = self.shell, self.invocation
        if not (self.plain and self._reuse_last_start()):
            status = self._begin()
            if status is not None:
                return status
        operands = invocation.operands
        if invocation.command is not None:
            if operands:
                shell.name, shell.args = operands[0], operands[1:]
            shell.script_args = shell.args
            shell.table["BASH_EXECUTION_STRING"] = invocation.command
            shell.line = 1
            shell.from_argument = True
            return self._run_main(lambda: run_script(shell, invocation.command or "", line=1, what="-c", top=True))
        if "s" in shell.invocation_letters:
            shell.args = shell.script_args = operands
            return self._run_main(self._read_stdin)
        shell.args = shell.script_args = operands[1:]
        return self._run_script(operands[0])

    def _reuse_last_start(self) -> bool:
        """Start with the state of the last shell; False if this one starts differently."""
        shell, process = self.shell, self.shell.process
        if (
            not _last_start
            or _last_start[0].env is not process.env
            or _last_start[0].name != shell.name
            or process.handlers
        ):
            return False
        process.catch(Signal.QUIT, _ignore_quit)
        bind(shell)
        self._start_directory()
        shell.last_argument, shell.byte_locale = _last_start[0].last_argument, _last_start[0].byte_locale
        shell.invocation_letters = "c"
        shell.started = True
        return True

    def _remember(self) -> None:
        shell, process = self.shell, self.shell.process
        if (
            not shell.functions
            and process.handlers.keys() == {Signal.QUIT}
            and process.env.keys().isdisjoint(_START_VARIABLES)
        ):
            _last_start[:] = [_StartState(process.env, shell.name, shell.last_argument, shell.byte_locale)]

    def _begin(self) -> int | None:
        """Set up the shell before the first command; a status if there is none to run."""
        shell, invocation = self.shell, self.invocation
        self._import_functions()
        self._import_ignored()
        if Signal.QUIT not in shell.process.handlers:
            shell.process.catch(Signal.QUIT, _ignore_quit)
        install(shell)
        self._start_directory()
        if self.posix or shell.vars.get("POSIXLY_CORRECT") is not None:
            shell.set_option("posix", True)
        for name in (shell.process.env.get("SHELLOPTS") or "").split(":"):
            if name in SET_OPTIONS:
                shell.set_option(name, True)
        if shell.process.env.get("TRACE") == "1":
            shell.set_option("xtrace", True)
            if "PS4" not in shell.process.env:
                shell.vars.set("PS4", TRACE_PROMPT)
        for name in (shell.process.env.get("BASHOPTS") or "").split(":"):
            if name in shell.shopts:
                shell.set_shopt(name, True)
        operands = invocation.operands
        stdin_tty = shell.process.isatty(0) and shell.process.isatty(2)
        reads_stdin = invocation.command is None and (invocation.read_stdin or not operands)
        if invocation.interactive or (invocation.interactive is None and reads_stdin and stdin_tty):
            self._become_interactive()
        if shell.login:
            shell.set_shopt("login_shell", True)
        status = self._apply_options()
        if status is not None:
            return status
        shell.last_argument = shell.process.env.get("_") or shell.name
        shell.invocation_letters = ("c" if invocation.command is not None else "") + ("s" if reads_stdin else "")
        self._run_startup_files()
        shell.started = True
        if self.plain:
            self._remember()
        return None

    def _run_main(self, run: Callable[[], int]) -> int:
        try:
            return run()
        except SyntaxFailure as failure:
            return failure.status

    def _apply_options(self) -> int | None:
        shell = self.shell
        for name, on in self.invocation.options:
            if name not in SET_OPTIONS:
                shell.process.error(f"{shell.name}: line 0: {shell.name}: {name}: invalid option name\n")
                return 2
            shell.set_option(name, on)
        for name, on in self.invocation.shopts:
            if name not in shell.shopts:
                shell.process.error(f"{shell.name}: line 0: {name}: invalid shell option name\n")
                return 2
            shell.set_shopt(name, on)
        for letter, on in self.invocation.list_options:
            shell.run_text(f"set {'-' if on else '+'}o" if letter == "o" else f"shopt {'' if on else '-p'}")
        return None

    def _become_interactive(self) -> None:
        shell = self.shell
        shell.interactive = True
        shell.set_shopt("expand_aliases", True)
        shell.options = {**shell.options, "history": True, "histexpand": True, "emacs": True}
        if shell.process.isatty(0):
            shell.set_option("monitor", True)
        home = shell.vars.get("HOME") or ""
        for name, default in (
            ("PS1", "\\s-\\v\\$ "),
            ("PS2", "> "),
            ("HISTFILE", f"{home}/.bash_history"),
            ("HISTSIZE", "500"),
            ("HISTFILESIZE", "500"),
        ):
            if shell.vars.get(name) is None:
                shell.vars.set(name, default)

    def _import_functions(self) -> None:
        for name, value in self.shell.process.env.items():
            if name.startswith("BASH_FUNC_") and name.endswith("%%"):
                self._import_function(name[10:-2], value)

    def _import_ignored(self) -> None:
        """Signals ignored from the start can't be trapped."""
        shell = self.shell
        ignored = {number for number, handler in shell.process.handlers.items() if handler is IGNORE}
        if ignored:
            from belljar.abi.signals import signal_name

            shell.traps.inherited_ignores = frozenset(signal_name(number) for number in ignored)
            shell.traps.commands.update(dict.fromkeys(sorted(shell.traps.inherited_ignores), ""))

    def _import_function(self, name: str, text: str) -> None:
        shell = self.shell
        if not text.startswith("() {"):
            return
        try:
            run_script(shell, f"{name} {text}", line=1, what="")
        except SyntaxFailure:
            return
        if name in shell.functions:
            shell.functions[name].exported = True

    def _start_directory(self) -> None:
        """PWD from the environment if it really is the current directory, else the true path."""
        shell = self.shell
        fs = shell.process.fs
        try:
            actual = fs.getcwd()
        except SysError:
            actual = None
        inherited = shell.vars.get("PWD")
        if inherited is not None and inherited.startswith("/"):
            try:
                if fs.resolve(inherited) == fs.cwd:
                    actual = inherited
            except SysError:
                pass
        if actual is not None:
            shell.table["PWD"] = Var(actual, EXPORT)

    def _run_startup_files(self) -> None:
        shell, invocation = self.shell, self.invocation
        if shell.login and not invocation.no_profile:
            self._source_if_there("/etc/profile")
            for name in (".bash_profile", ".bash_login", ".profile"):
                if self._source_if_there(f"{shell.vars.get('HOME') or ''}/{name}"):
                    break
        elif shell.interactive and not invocation.no_rc and not shell.posix:
            self._source_if_there(invocation.rc_file or f"{shell.vars.get('HOME') or ''}/.bashrc")
        # POSIX: ENV for interactive shells; otherwise BASH_ENV for the others.
        if shell.interactive == shell.posix:
            file = shell.vars.get("ENV" if shell.posix else "BASH_ENV")
            if file:
                self._source_if_there(shell.expand_string(file))

    def _source_if_there(self, path: str) -> bool:
        if (data := self.shell.process.try_read(path)) is None:
            return False
        self.shell.source(path, fsdecode(data), None)
        return True

    def _run_script(self, path: str) -> int:
        shell = self.shell
        process = shell.process
        found = path
        try:
            if "/" not in path and not process.fs.exists(path):
                found = shell.search_path(path, shell.vars.get("PATH")) or path
            if process.fs.stat(found).is_dir:
                process.error(f"{path}: {path}: Is a directory\n")
                return 126
            data = process.read_file(found)
        except SysError as error:
            process.error(f"{shell.name}: {path}: {error.reason}\n")
            return 127 if error.name in ("ENOENT", "ENOTDIR") else 126
        if b"\0" in data[:80].partition(b"\n")[0]:
            process.error(f"{path}: {path}: cannot execute binary file\n")
            return 126
        shell.name = path
        shell.script = path
        return self._run_main(lambda: run_script(shell, fsdecode(data.replace(b"\0", b"")), line=1, what="", top=True))

    def _read_stdin(self) -> int:
        """Commands from standard input, each read only as far as it goes: the rest is the commands' own input."""
        from belljar.shell.compile.commands import compile_command

        shell = self.shell
        if shell.interactive:
            from belljar.shell.interactive import run_interactive

            return run_interactive(shell)

        def next_line() -> str | None:
            data = read_line(shell.process, 0)
            if shell.options["verbose"]:
                shell.process.error(fsdecode(data))
            return fsdecode(data.replace(b"\0", b"")) if data else None

        options = options_for(shell)
        parser = Parser(next_line, options)
        status = 0
        while True:
            options_for(shell, options)
            try:
                node = parser.next_command()
            except ShellSyntaxError as error:
                before = shell.status
                report_warnings(shell, parser)
                shell.report_syntax(error, "")
                if error.mild:
                    shell.status = status = 1
                    continue
                return before if error.ends else error.status
            report_warnings(shell, parser)
            if node is None:
                return status
            if shell.noexec:
                continue
            shell.command_number += 1
            try:
                status = compile_command(node)(shell)
            except Discard as error:
                shell.loops = 0
                status = shell.status = error.status
