"""What to run when a package of one of belljar's extras is missing: the one place that says so."""

from __future__ import annotations


def install_hint(extra: str = "") -> str:
    """The end of a message about a missing package. `extra`: the one that brings it; "" if belljar always needs it.

    belljar-sandbox is not on PyPI yet, and `belljar` there is somebody else's package, so the command is for a
    checkout. It names no path of the host: guests read some of these messages.
    """
    what = f"'.[{extra}]'" if extra else "."
    return f"in belljar's checkout, run: pip install -e {what}"
