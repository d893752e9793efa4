"""Names of file types, as stat and rm print them."""

from typing import Final

from belljar.abi.flags import S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, S_IFSOCK
from belljar.abi.records import Stat

_NAMES: Final = {
    S_IFDIR: "directory",
    S_IFLNK: "symbolic link",
    S_IFIFO: "fifo",
    S_IFSOCK: "socket",
    S_IFCHR: "character special file",
    S_IFBLK: "block special file",
}


def kind_name(stat: Stat) -> str:
    if stat.kind == S_IFREG:
        return "regular file" if stat.size else "regular empty file"
    return _NAMES.get(stat.kind, "weird file")
