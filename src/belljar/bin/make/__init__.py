"""make - maintain groups of programs

Usage: make [OPTION]... [TARGET]... [VARIABLE=VALUE]...

  -f FILE                read FILE as a makefile
  -C DIRECTORY           change to DIRECTORY before doing anything
  -n                     don't run any recipe; just print them
  -B                     unconditionally make all targets
  -k                     keep going when some targets can't be made
  -s                     don't echo recipes
  -i                     ignore errors from recipes
  -q                     run no recipe; exit status says if up to date
  -t                     touch targets instead of remaking them
  -j [N]                 accepted; recipes run one after the other
  -e                     environment variables override makefiles
  -I DIRECTORY           search DIRECTORY for included makefiles
  -o FILE, -W FILE       consider FILE very old, or infinitely new
  -r, -R                 disable the built-in rules; and variables
  -w, --no-print-directory
                         print the current directory, or don't
  --eval=STRING, --trace, --version
"""

from __future__ import annotations

from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, utility
from belljar.bin.make.build import Builder, Failure, check_missing
from belljar.bin.make.options import letters, parse
from belljar.bin.make.read import Reader, parse_assignment
from belljar.bin.make.state import State, Switches
from belljar.bin.make.variables import MakeError, Origin, Variable
from belljar.kernel.process import Process


@utility("make", usage_status=2)
def main(process: Process, args: list[str]) -> int:
    try:
        switches, asked = parse(args, process.env.get("MAKEFLAGS", ""))
    except UsageError as error:
        process.error(f"make: {error}\n{main.help()}")
        return 2
    if asked:
        process.print("GNU Make 4.3 (belljar)" if asked == "version" else main.help().rstrip())
        return 0
    home = process.fs.cwd
    level = process.env.get("MAKELEVEL", "0")
    name = f"make[{level}]" if level.isdigit() and level != "0" else "make"
    try:
        for directory in switches.directories:
            try:
                process.fs.chdir(directory)
            except SysError as error:
                process.error(f"{name}: *** {directory}: {error.reason}.  Stop.\n")
                return 2
        shown = switches.print_directory
        if shown is None:
            shown = (bool(switches.directories) or name != "make") and not switches.silent
        if shown:
            process.print(f"{name}: Entering directory '{process.fs.getcwd()}'")
        status = _make(process, switches, name, shown=shown)
        if shown:
            process.print(f"{name}: Leaving directory '{process.fs.getcwd()}'")
        return status
    finally:
        process.stdout.flush()
        process.fs.cwd = home


def _make(process: Process, switches: Switches, name: str, *, shown: bool) -> int:
    try:
        for _ in range(10):
            state = _read(process, switches, shown=shown)
            builder = Builder(state)
            if not check_missing(state, builder):
                break
        goals = switches.goals or ([state.goal] if state.goal else [])
        if not goals:
            raise MakeError("No targets" if state.makefiles else "No targets specified and no makefile found")
        status = 0
        for goal in goals:
            goal = goal[2:] if goal.startswith("./") and len(goal) > 2 else goal
            if not builder.goal(goal):
                status = 2
                if not switches.keep_going:
                    break
        builder.finish()
        return status or int(builder.question)
    except Failure:
        return 2
    except MakeError as error:
        process.stdout.flush()
        process.error(f"{error.where or name}: *** {error.message}.  Stop.\n")
        return 2


def _read(process: Process, switches: Switches, *, shown: bool) -> State:
    """Everything that is known before the first target is made."""
    state = State(process, switches)
    flags = letters(switches)
    if shown and "w" not in flags:
        flags += "w"
    assignments = " ".join(_quote(text) for text in switches.assignments)
    extra = f" -j{switches.jobs}" if switches.jobs else ""
    if switches.print_directory is False:
        extra += " --no-print-directory"
    text = flags + extra + (f" -- {assignments}" if assignments else "")
    state.scope.variables["MAKEFLAGS"] = Variable(text, True, Origin.FILE)
    state.scope.variables["MAKEOVERRIDES"] = Variable(assignments, True, Origin.FILE)
    for assignment in switches.assignments:
        parsed = parse_assignment(assignment)
        if parsed is None:
            raise MakeError(f"invalid variable assignment '{assignment}'")
        state.define(state.scope, *parsed, Origin.COMMAND_LINE)
    for line in switches.evals:
        Reader(state, "--eval").read_text(line)
    for file in switches.files or _default(process):
        try:
            if file == "-":
                Reader(state, "-").read_text(process.read_file("-").decode("utf-8", "surrogateescape"))
                state.makefiles.append("-")
                continue
            Reader(state, file).read_file(file)
        except SysError as error:
            process.stdout.flush()
            process.error(f"{state.name}: {file}: {error.reason}\n")
            raise MakeError(f"No rule to make target '{file}'") from None
    state.where = ""
    return state


def _default(process: Process) -> list[str]:
    for name in ("GNUmakefile", "makefile", "Makefile"):
        try:
            if not process.fs.stat(name).is_dir:
                return [name]
        except SysError:
            continue
    return []


def _quote(text: str) -> str:
    return text.replace("\\", "\\\\").replace(" ", "\\ ").replace("$", "$$")
