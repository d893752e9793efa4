"""Disk quota of a sandbox over all its in-memory servers: charged before the memory is used."""

from belljar.abi.errno import ENOSPC
from belljar.abi.errors import SysError


class Quota:
    """Bytes and names still free. A full sandbox answers ENOSPC, as a full disk does; a mount with a limit EDQUOT."""

    __slots__ = ("_errno", "bytes_limit", "bytes_used", "files_limit", "files_used")

    def __init__(self, bytes_limit: int, files_limit: int, errno: int = ENOSPC) -> None:
        self._errno = errno
        self.bytes_limit = bytes_limit
        self.files_limit = files_limit
        self.bytes_used = 0
        self.files_used = 0

    def take_bytes(self, count: int) -> None:
        """Charge; a negative count frees."""
        used = self.bytes_used + count
        if count > 0 and used > self.bytes_limit:
            raise SysError(self._errno)
        self.bytes_used = used

    def take_file(self) -> None:
        if self.files_used >= self.files_limit:
            raise SysError(self._errno)
        self.files_used += 1

    def give_file(self) -> None:
        self.files_used -= 1


class PartialQuota(Quota):
    """A part of a quota with a limit of its own on bytes: what is used counts for both, until the part is gone.

    It goes with its server, and that with the last mount, working directory or open file that it is reached by.
    """

    __slots__ = ("_whole",)

    def __init__(self, whole: Quota, bytes_limit: int) -> None:
        super().__init__(min(bytes_limit, whole.bytes_limit), whole.files_limit)
        self._whole = whole

    def take_bytes(self, count: int) -> None:
        super().take_bytes(count)
        try:
            self._whole.take_bytes(count)
        except SysError:
            self.bytes_used -= count
            raise

    def take_file(self) -> None:
        self._whole.take_file()
        super().take_file()

    def give_file(self) -> None:
        self._whole.give_file()
        super().give_file()

    def __del__(self) -> None:
        self._whole.take_bytes(-self.bytes_used)
        self._whole.files_used -= self.files_used
