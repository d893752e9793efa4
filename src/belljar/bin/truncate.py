"""truncate - shrink or extend the size of a file to the specified size

Usage: truncate OPTION... FILE...

Shrink or extend the size of each FILE to the specified size. A FILE argument that does not exist is created. SIZE may
also be prefixed by one of: '+' extend by, '-' reduce by, '<' at most, '>' at least, '/' round down to multiple of, '%'
round up to multiple of.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EFBIG, ENOENT, EOVERFLOW, strerror
from belljar.abi.errors import SysError
from belljar.abi.flags import FILE_MAX, O_CLOEXEC, O_CREAT, O_NONBLOCK, O_WRONLY
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.quoting import quote, quote_name
from belljar.bin._kit.sizes import parse_size
from belljar.kernel.process import Process

_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Options:
    no_create: bool = flag("-c", "--no-create", "do not create any files")
    blocks: bool = flag("-o", "--io-blocks", "treat SIZE as number of IO blocks instead of bytes")
    reference: str | None = value("-r", "--reference", "base size on RFILE", metavar="RFILE")
    size: str | None = value("-s", "--size", "set or adjust the file size by SIZE bytes", metavar="SIZE")


@utility("truncate", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    env = process.env
    if options.size is None and options.reference is None:
        raise UsageError(f"you must specify either {quote('--size', env)} or {quote('--reference', env)}")
    relation, size = _parse(process, options.size) if options.size is not None else ("+", 0)
    if options.reference is not None and options.size is not None and not relation:
        raise UsageError(f"you must specify a relative {quote('--size', env)} with {quote('--reference', env)}")
    if options.blocks and options.size is None:
        raise UsageError(f"{quote('--io-blocks', env)} was specified but {quote('--size', env)} was not")
    if not operands:
        raise UsageError("missing file operand")
    if relation in ("/", "%") and size == 0:
        raise UsageError("division by zero", hint=False)
    if options.blocks:
        size *= _BLOCK
    base: int | None = None
    if options.reference is not None:
        try:
            base = process.fs.stat(options.reference).size
        except SysError as error:
            process.warn(f"cannot stat {quote_name(options.reference)}: {error.reason}")
            return 1
    status = 0
    for path in operands:
        process.budget.charge()
        if not _truncate(process, options, path, base, relation, size):
            status = 1
    return status


def _parse(process: Process, text: str) -> tuple[str, int]:
    """Return how the size relates to the old one, and the number."""
    stripped = text.lstrip()
    relation = stripped[:1] if stripped[:1] in ("<", ">", "/", "%", "+", "-") else ""
    digits = stripped[1:].lstrip() if relation else stripped
    size = parse_size(digits) if digits[:1].isdecimal() else None
    if size is None:
        raise UsageError(f"Invalid number: {quote(text, process.env)}", hint=False)
    if size > FILE_MAX:
        shown = quote(text, process.env)
        raise UsageError(f"Invalid number: {shown}: {strerror(EOVERFLOW)}", hint=False)
    return relation, size


def _truncate(process: Process, options: Options, path: str, base: int | None, relation: str, size: int) -> bool:
    create = 0 if options.no_create else O_CREAT
    try:
        fd = process.open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | create, 0o666)
    except SysError as error:
        if options.no_create and error.errno == ENOENT:
            return True
        process.warn(f"cannot open {quote_name(path)} for writing: {error.reason}")
        return False
    try:
        old = base if base is not None else process.fstat(fd).size
        new = _adjust(relation, old, size)
        if new > FILE_MAX:
            process.warn(f"overflow extending size of file {quote_name(path)}")
            return False
        try:
            process.fds[fd].truncate(max(new, 0))
        except SysError as error:
            reason = strerror(EFBIG) if error.name == "EINVAL" else error.reason
            process.warn(f"failed to truncate {quote_name(path)} at {new} bytes: {reason}")
            return False
    finally:
        process.close(fd)
    return True


def _adjust(relation: str, old: int, size: int) -> int:
    match relation:
        case "":
            return size
        case "+":
            return old + size
        case "-":
            return max(old - size, 0)
        case "<":
            return min(old, size)
        case ">":
            return max(old, size)
        case "/":
            return old // size * size
        case _:
            return -(-old // size) * size
