"""What `session.py` needs of its surroundings, where these are an ordinary CPython."""

import builtins
import sys
import types

OWN = "<belljar>/"
"""Files of our own modules, which no traceback shows."""


def fresh_main():
    """A new `__main__`, with nothing of ours in it."""
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    return module.__dict__


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, ValueError, OSError):
            pass
