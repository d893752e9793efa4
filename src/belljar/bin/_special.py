"""Making FIFOs with a mode, for mkfifo and mknod."""

from __future__ import annotations

from belljar.abi.flags import S_IFIFO
from belljar.bin._kit import UsageError
from belljar.bin._kit.modes import parse_mode
from belljar.kernel.process import Process


def special_mode(process: Process, text: str | None) -> int | None:
    """The permissions that -m asks for; None without it."""
    if text is None:
        return None
    change = parse_mode(text)
    if change is None:
        raise UsageError("invalid mode", hint=False)
    mode = change.apply(0o666, process.fs.umask, directory=False)
    if mode & ~0o777:
        raise UsageError("mode must specify only file permission bits", hint=False)
    return mode


def make_fifo(process: Process, path: str, mode: int | None) -> None:
    process.fs.mknod(path, S_IFIFO | 0o666)
    if mode is not None:
        process.fs.chmod(path, mode)
