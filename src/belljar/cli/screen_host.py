"""The command line's output."""

import os
import sys


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def complain(text: str) -> None:
    sys.stderr.write(text + "\n")


def colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def columns() -> int:
    """Return the screen's width as `shutil` does, which takes longer to load than to ask."""
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isascii() and chosen.isdigit() and int(chosen) > 0:
        return int(chosen)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80


def hold_places() -> None:
    """Open /dev/null at closed descriptors of 0, 1 and 2, so that no file of ours gets such a number."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(fd, "w" if fd else "r", closefd=False))  # noqa: SIM115 - for good


def leave(status: int) -> int:
    """End this process as returning from `main` would, but at once: taking an interpreter apart takes 20 ms.

    Returns the status where there is something to wait for, or nothing can be written any more.
    """
    import atexit
    import threading

    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        return status
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return status
    os._exit(status)


def close_quietly() -> None:
    """Redirect buffered output to /dev/null, so that the flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
