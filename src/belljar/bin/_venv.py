"""`python3 -m venv`: a directory with its own site-packages, whose commands use it."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, value
from belljar.bin._kit.options import parse
from belljar.kernel.loader import program_file
from belljar.kernel.process import Process

VERSION: Final = "3.15"
_USAGE: Final = (
    "usage: venv [-h] [--system-site-packages] [--clear] [--without-pip] [--prompt PROMPT] ENV_DIR [ENV_DIR ...]"
)


@dataclass(frozen=True, slots=True)
class Options:
    system: bool = flag("--system-site-packages", "give access to the system's site-packages too")
    clear: bool = flag("--clear", "delete what is in the directory first")
    without_pip: bool = flag("--without-pip", "leave pip out")
    prompt: str | None = value("--prompt", "what the prompt begins with", metavar="PROMPT")
    symlinks: bool = flag("--symlinks", "(accepted)")
    copies: bool = flag("--copies", "(accepted)")
    upgrade: bool = flag("--upgrade", "(accepted)")
    upgrade_deps: bool = flag("--upgrade-deps", "(accepted)")


def run(process: Process, args: list[str]) -> int:
    try:
        parsed = parse(Options, args)
    except UsageError as error:
        process.error(f"{_USAGE}\nvenv: error: {error}\n")
        return 2
    if parsed.asked == "help":
        process.print(_USAGE)
        return 0
    if not parsed.operands:
        process.error(f"{_USAGE}\nvenv: error: the following arguments are required: ENV_DIR\n")
        return 2
    options = Options(**parsed.values)
    for name in parsed.operands:
        try:
            _make(process, process.absolute(name), options)
        except SysError as error:
            process.error(f"Error: [Errno {error.errno}] {error.reason}: {name!r}\n")
            return 1
    return 0


def _make(process: Process, root: str, options: Options) -> None:
    if options.clear:
        process.run(["rm", "-rf", root])
    for directory in (*_above(root), root, *(f"{root}/{part}" for part in _PARTS)):
        with suppress(SysError):
            process.fs.mkdir(directory, 0o755)
    prompt = options.prompt or root.rpartition("/")[2]
    process.write_file(
        f"{root}/pyvenv.cfg",
        (
            f"home = /usr/bin\ninclude-system-site-packages = {str(options.system).lower()}\nversion = {VERSION}.0\n"
            f"executable = /usr/bin/python3\ncommand = /usr/bin/python3 -m venv {root}\n"
        ).encode("utf-8", "surrogateescape"),
    )
    for name in ("python", "python3", f"python{VERSION}"):
        with suppress(SysError):
            process.fs.symlink("/usr/bin/python3", f"{root}/bin/{name}")
    if not options.without_pip:
        for name in ("pip", "pip3"):
            process.write_file(f"{root}/bin/{name}", program_file("pip"), 0o755)
    text = _ACTIVATE.replace("@ROOT@", root).replace("@PROMPT@", prompt)
    process.write_file(f"{root}/bin/activate", text.encode("utf-8", "surrogateescape"))


def _above(root: str) -> list[str]:
    parts = root.strip("/").split("/")
    return ["/" + "/".join(parts[:end]) for end in range(1, len(parts))]


_PARTS: Final = ("bin", "include", "lib", f"lib/python{VERSION}", f"lib/python{VERSION}/site-packages")
_ACTIVATE: Final = """\
# Use it with ". bin/activate" in a shell.
deactivate() {
    [ -n "${_OLD_VIRTUAL_PATH+x}" ] && PATH=$_OLD_VIRTUAL_PATH && export PATH && unset _OLD_VIRTUAL_PATH
    [ -n "${_OLD_VIRTUAL_PS1+x}" ] && PS1=$_OLD_VIRTUAL_PS1 && unset _OLD_VIRTUAL_PS1
    unset VIRTUAL_ENV VIRTUAL_ENV_PROMPT
    hash -r 2> /dev/null
    [ "$1" = nondestructive ] || unset -f deactivate
}
deactivate nondestructive
VIRTUAL_ENV='@ROOT@'
VIRTUAL_ENV_PROMPT='@PROMPT@'
export VIRTUAL_ENV VIRTUAL_ENV_PROMPT
_OLD_VIRTUAL_PATH=$PATH
PATH=$VIRTUAL_ENV/bin:$PATH
export PATH
if [ -z "${VIRTUAL_ENV_DISABLE_PROMPT:-}" ] && [ -n "${PS1+x}" ]; then
    _OLD_VIRTUAL_PS1=$PS1
    PS1="(@PROMPT@) $PS1"
fi
hash -r 2> /dev/null
"""
