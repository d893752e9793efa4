"""Where the command line writes."""

import sys


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def complain(text: str) -> None:
    sys.stderr.write(text + "\n")


def colour() -> bool:
    return sys.stdout.isatty()
