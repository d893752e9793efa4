"""What file says of a file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    text: str
    mime: str
    encoding: str = "binary"
