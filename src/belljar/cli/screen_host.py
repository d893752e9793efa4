"""Where the command line writes."""

import os
import sys


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def complain(text: str) -> None:
    sys.stderr.write(text + "\n")


def colour() -> bool:
    return sys.stdout.isatty()


def close_quietly() -> None:
    """Send what is still buffered nowhere, so that nothing complains at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
