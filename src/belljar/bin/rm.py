"""rm - remove files or directories

Usage: rm [OPTION]... [FILE]...

Remove (unlink) the FILE(s). By default, rm does not remove directories; use -r to remove each listed directory, too,
along with all of its contents.
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.bin._kit.asking import ask
from belljar.bin._kit.choices import pick
from belljar.bin._kit.quoting import quote_name
from belljar.bin._remove import Remover, is_dot
from belljar.bin._root import refuse_root
from belljar.kernel.process import Process

_WHEN = {"never": ("no", "none"), "once": (), "always": ("yes",)}


@dataclass(frozen=True, slots=True)
class Options:
    prompt: str | None = choice(
        {"-f": "force", "--force": "force", "-i": "always", "-I": "once"},
        "-f: ignore nonexistent files, never prompt; -i: prompt before every removal; -I: prompt once",
    )
    interactive: str | None = value(
        "--interactive", "prompt according to WHEN: never, once (-I), or always (-i)", metavar="WHEN", bare="always"
    )
    one_file_system: bool = flag("--one-file-system", "skip directories on other file systems")
    root: str | None = value(
        "--preserve-root", "do not remove '/' (the default)", metavar="all", default="preserve", bare="preserve"
    )
    no_root: bool = flag("--no-preserve-root", "do not treat '/' specially")
    recursive: bool = flag("-r", "-R", "--recursive", "remove directories and their contents recursively")
    directories: bool = flag("-d", "--dir", "remove empty directories")
    verbose: bool = flag("-v", "--verbose", "explain what is being done")


@utility("rm", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    prompt = options.prompt
    if options.interactive is not None:
        prompt = pick(process, "--interactive", options.interactive, _WHEN)
    if options.root not in ("preserve", "all"):
        raise UsageError(f"unrecognized --preserve-root argument: {quote_name(options.root or '')}", hint=False)
    force = prompt == "force"
    if not operands:
        if force:
            return 0
        raise UsageError("missing operand")
    if prompt == "once" and (options.recursive or len(operands) > 3):
        count = f"{len(operands)} argument{'s' if len(operands) > 1 else ''}"
        if not ask(process, f"remove {count}{' recursively' if options.recursive else ''}"):
            return 0
    remover = Remover(
        process,
        recursive=options.recursive,
        empty_directories=options.directories,
        force=force,
        interactive=prompt == "always",
        verbose=options.verbose,
        one_file_system=options.one_file_system,
    )
    status = 0
    for path in operands:
        if is_dot(path) and options.recursive:
            process.warn(f"refusing to remove '.' or '..' directory: skipping {quote_name(path)}")
            status = 1
        elif options.recursive and not options.no_root and refuse_root(process, path):
            status = 1
        else:
            remover.remove(path)
    return 1 if remover.failed else status
