"""Pseudo-terminals: as the standard module has them, but for `fork`, which WebAssembly has not."""

import os
import tty

__all__ = ["fork", "openpty", "spawn"]

STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO = 0, 1, 2
CHILD = 0


def openpty():
    """openpty() -> (master_fd, slave_fd)"""
    return os.openpty()


def fork():
    raise OSError(
        "pty.fork: WebAssembly has no fork here. pty.spawn runs a program on a terminal of its own, and "
        "subprocess.Popen takes the slave of pty.openpty() as stdin, stdout and stderr"
    )


def _read(fd):
    return os.read(fd, 1024)


def _copy(master, child, master_read, stdin_read):
    """Pass on what the program writes and what is typed, until the program ends."""
    import select

    sources = [master, STDIN_FILENO]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if master in ready:
            try:
                data = master_read(master)
            except OSError:
                data = b""
            if not data:
                return
            while data:
                data = data[os.write(STDOUT_FILENO, data) :]
        if STDIN_FILENO in ready:
            data = stdin_read(STDIN_FILENO)
            if not data:
                sources.remove(STDIN_FILENO)
            while data:
                data = data[os.write(master, data) :]


def spawn(argv, master_read=_read, stdin_read=_read):
    """Run a program on a terminal of its own, connected to ours; returns its wait status."""
    import subprocess

    if isinstance(argv, str):
        argv = (argv,)
    master, slave = os.openpty()
    command = ["setsid", "--ctty", "--wait", *argv]
    child = subprocess.Popen(  # noqa: S603 - what it is for
        command, stdin=slave, stdout=slave, stderr=slave, close_fds=True
    )
    os.close(slave)
    try:
        mode = tty.tcgetattr(STDIN_FILENO)
        tty.setraw(STDIN_FILENO)
    except tty.error:
        mode = None
    try:
        _copy(master, child, master_read, stdin_read)
    finally:
        if mode is not None:
            tty.tcsetattr(STDIN_FILENO, tty.TCSAFLUSH, mode)
    os.close(master)
    code = child.wait()
    return code << 8 if code >= 0 else -code
