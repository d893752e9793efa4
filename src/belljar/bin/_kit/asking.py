"""Questions to the user: a prompt on standard error, the answer a line of standard input."""

from __future__ import annotations

from belljar.kernel.process import Process


def ask(process: Process, question: str) -> bool:
    """Whether the answer begins with y. The rest of standard input is left for the next question."""
    process.stdout.flush()
    process.error(f"{process.name}: {question}? ")
    first = b""
    while (char := process.read(0, 1)) not in (b"", b"\n"):
        first = first or char
    return first in (b"y", b"Y")
