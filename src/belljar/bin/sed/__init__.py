"""sed - stream editor for filtering and transforming text

Usage: sed [OPTION]... {script-only-if-no-other-script} [input-file]...

If no -e, --expression, -f, or --file option is given, then the first non-option argument is taken as the sed
script to interpret. All remaining arguments are names of input files; if no input files are specified, then the
standard input is read.
"""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import Program, UsageError, flag, many, value
from belljar.bin._kit.locale import is_utf8
from belljar.bin._kit.options import parse as parse_options
from belljar.bin._kit.program import version
from belljar.bin.sed.bulk import bulk_operation, run_bulk
from belljar.bin.sed.compile import compile_script
from belljar.bin.sed.machine import Fatal, Machine, Settings
from belljar.bin.sed.parse import parse
from belljar.bin.sed.reader import ScriptError, Source, Syntax
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    quiet: bool = flag("-n", "--quiet", "--silent", "suppress automatic printing of pattern space")
    scripts: tuple[str, ...] = many(
        "-e", "--expression", "add the script to the commands to be executed", metavar="SCRIPT"
    )
    files: tuple[str, ...] = many("-f", "--file", "add the contents of FILE to the commands", metavar="FILE")
    follow_symlinks: bool = flag("--follow-symlinks", "follow symlinks when processing in place")
    in_place: str | None = value(
        "-i", "--in-place", "edit files in place (makes backup if SUFFIX supplied)", metavar="SUFFIX", bare=""
    )
    line_length: str | None = value(
        "-l", "--line-length", "specify the line-wrap length for the `l' command", metavar="N"
    )
    posix: bool = flag("--posix", "disable all GNU extensions")
    extended: bool = flag("-E", "-r", "--regexp-extended", "use extended regular expressions in the script")
    separate: bool = flag("-s", "--separate", "consider files as separate rather than as a single continuous stream")
    sandbox: bool = flag("--sandbox", "operate in sandbox mode (disable e/r/w commands)")
    unbuffered: bool = flag("-u", "--unbuffered", "load minimal amounts of data and flush the output often")
    null_data: bool = flag("-z", "--null-data", "separate lines by NUL characters")


def run(process: Process, args: list[str]) -> int:
    try:
        parsed = parse_options(Options, args)
    except UsageError as error:
        process.warn(str(error))
        process.error(usage())
        return 1
    if parsed.asked == "help":
        process.stdout.write(main.help().encode())
        return 0
    if parsed.asked == "version":
        process.print(version("sed"))
        return 0
    options, operands = Options(**parsed.values), parsed.operands
    if not options.scripts and not options.files and not operands:
        process.error(usage())
        return 1
    try:
        return edit(process, options, scripts(process, options, operands, args), operands)
    except (ScriptError, Fatal) as error:
        process.stdout.flush()
        process.warn(str(error))
        return error.status


def usage() -> str:
    """The help without the line that says what sed is."""
    return main.help()[main.help().index("Usage:") :]


def edit(process: Process, options: Options, sources: list[Source], files: list[str]) -> int:
    syntax = Syntax(options.extended, options.posix, options.sandbox, is_utf8(process.env), options.null_data)
    script = parse(sources, syntax)
    settings = Settings(
        quiet=options.quiet or script.quiet,
        separate=options.separate,
        in_place=options.in_place,
        follow_symlinks=options.follow_symlinks,
        null_data=options.null_data,
        unbuffered=options.unbuffered,
        posix=options.posix or "POSIXLY_CORRECT" in process.env,
        line_length=line_length(options.line_length or process.env.get("COLS", "")),
    )
    if options.in_place is not None and not files:
        raise Fatal("no input files")
    machine = Machine(process, settings, files or ["-"])
    bulk = bulk_operation(script, machine)
    if bulk is not None:
        run_bulk(machine, bulk)
        machine.finish()
        return machine.status
    return machine.run(compile_script(script, machine))


def line_length(text: str) -> int:
    if not text:
        return 70
    if not text.isdecimal():
        raise Fatal(f"invalid line length: {text}", 1)
    return int(text[:9])


def scripts(process: Process, options: Options, operands: list[str], args: list[str]) -> list[Source]:
    """The pieces of the script in the order of the command line."""
    if not options.scripts and not options.files:
        return [Source(operands.pop(0))]
    expressions, files = iter(options.scripts), iter(options.files)
    sources: list[Source] = []
    for kind in order(args, len(options.scripts) + len(options.files)):
        if kind == "e":
            sources.append(Source(next(expressions)))
            continue
        name = next(files)
        try:
            text = process.read_file(name).decode("utf-8", "surrogateescape")
        except SysError as error:
            raise Fatal(f"couldn't open file {name}: {error.reason}") from error
        # a backslash before the final newline begins an empty line of text
        sources.append(Source(text if text.endswith("\\\n") else text.removesuffix("\n"), name))
    return sources


def order(args: list[str], count: int) -> list[str]:
    """Return which of the first `count` script options are -e, which -f."""
    kinds: list[str] = []
    index = 0
    while index < len(args) and len(kinds) < count:
        arg = args[index]
        index += 1
        if arg.startswith("--"):
            name, equals, _ = arg.partition("=")
            if len(name) > 3 and "--expression".startswith(name):
                kinds.append("e")
            elif len(name) > 3 and "--file".startswith(name):
                kinds.append("f")
            elif not (len(name) > 3 and "--line-length".startswith(name)):
                continue
            index += not equals
        elif arg.startswith("-"):
            for position, letter in enumerate(arg[1:], 2):
                if letter in "efl":
                    kinds += [letter] if letter != "l" else []
                    index += position == len(arg)
                if letter in "efli":
                    break
    return kinds


main = Program("sed", __doc__, Options, run)
