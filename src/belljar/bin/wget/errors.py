"""How the download of one URL ends: saved, or failed with the status to exit with."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._url import Url

FILE_ERROR, NETWORK_ERROR, TLS_ERROR, AUTH_ERROR, SERVER_ERROR = 3, 4, 5, 6, 8


class Failure(Exception):
    """A URL that could not be had; what to exit with."""

    def __init__(self, status: int, message: str = "", *, again: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.again = again
        """Another try may help."""


@dataclass(slots=True)
class Saved:
    name: str
    url: Url
    kind: str
    size: int
