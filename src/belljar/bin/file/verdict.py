"""The description of a file that `file` prints."""

from belljar.abi.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    text: str
    mime: str
    encoding: str = "binary"
