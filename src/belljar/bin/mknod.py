"""mknod - make block or character special files

Usage: mknod [OPTION]... NAME TYPE [MAJOR MINOR]

Create the special file NAME of the given TYPE: p for a FIFO; b, c and u, for devices, are never permitted here.
"""

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFBLK, S_IFCHR
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.quoting import quote, quote_if_odd
from belljar.bin._special import make_fifo, special_mode
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    mode: str | None = value("-m", "--mode", "set file permission bits to MODE, not a=rw - umask", metavar="MODE")
    context: bool = flag("-Z", "(ignored)")


@utility("mknod", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    env = process.env
    mode = special_mode(process, options.mode)
    wanted = 2 if len(operands) < 2 or operands[1].startswith("p") else 4
    if len(operands) < wanted:
        after = f" after {quote(operands[-1], env)}" if operands else ""
        more = "\nSpecial files require major and minor device numbers." if wanted == 4 and len(operands) == 2 else ""
        raise UsageError(f"missing operand{after}{more}")
    if len(operands) > wanted:
        more = "\nFifos do not have major and minor device numbers." if wanted == 2 and len(operands) == 4 else ""
        raise UsageError(f"extra operand {quote(operands[wanted], env)}{more}")
    path, kind = operands[0], operands[1][:1]
    try:
        if kind == "p":
            make_fifo(process, path, mode)
        elif kind in ("b", "c", "u"):
            for what, text in zip(("major", "minor"), operands[2:], strict=True):
                if not re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", text, re.ASCII):
                    raise UsageError(f"invalid {what} device number {quote(text, env)}", hint=False)
            process.fs.mknod(path, (S_IFBLK if kind == "b" else S_IFCHR) | (mode or 0o666))
        else:
            raise UsageError(f"invalid device type {quote(operands[1], env)}")
    except SysError as error:
        process.warn(f"{quote_if_odd(path)}: {error.reason}")
        return 1
    return 0
