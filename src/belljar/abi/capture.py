"""Messages of a snapshot from a worker to its owner: records of files, states of containers."""

from typing import Final

from msgspec import Struct

from belljar.abi.container_state import ContainerState

PIECE_BYTES: Final = 4 << 20
"""Size of every piece of a file but the last, on the wire and in a store."""
SMALL: Final = 64 << 10
"""The contents of a file up to this size are in its record."""
NAMES_MAX: Final = 5000
"""Names in one record: of a larger directory there are several."""
PAGE_BYTES: Final = 4 << 20
PAGE_ITEMS: Final = 100_000
"""Bytes and values in one page of records, about."""


class Record(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A file, directory, symlink or FIFO that was changed."""

    tree: int
    id: int
    """Number of the file in its tree, which no other file ever has."""
    mode: int
    """With the type."""
    uid: int
    gid: int
    mtime: int
    lower: int = 0
    """In an overlay: number of the owner's file that this was; of a directory, of the one that shows through."""
    as_lower: bool = False
    """Whether mode, owner and time are the lower file's."""
    contents: bool = True
    """Whether contents or target are here; else they are the lower file's."""
    target: bytes = b""
    size: int = 0
    data: bytes | None = None
    """Contents of a small file."""
    pieces: list[int] = []
    """Of a larger file: the pieces that are not all hole, as pairs of the first and how many follow in a row."""
    names: list[bytes] = []
    """Of a directory; in an overlay those that differ from the lower one."""
    children: list[int] = []
    """The file of each name; 0: the lower name was removed."""
    goes_on: bool = False
    """Whether these are further names of the directory of the record before."""


class CapturedTree(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One file system of the sandbox at that moment."""

    path: bytes
    tree: int
    root: int
    """Number of its root directory."""
    over: int = -1
    """The export of the owner's that it is an overlay of; -1: none."""
    kept: bool = True
    """Whether its files are the sandbox's own, and so in the capture; else they are the owner's."""


class CapturedContainer(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    state: ContainerState
    files: CapturedTree


class Begun(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A capture: everything is as it was at `time`."""

    number: int
    time: int
    trees: list[CapturedTree]
    lost: list[bytes]
    containers: list[CapturedContainer] = []
    """In the order they were made."""
