"""Where a response goes: standard output or a file, named by the user, the URL or the server."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

from belljar.abi.errno import EEXIST
from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_EXCL, O_TRUNC, O_WRONLY
from belljar.bin._url import Url
from belljar.bin.curl.errors import WRITE_ERROR, CurlError
from belljar.bin.curl.options import Operation, Target
from belljar.kernel.process import Process

NO_CLOBBER_MAX = 100


class Sink:
    """The destination of one transfer; the file is made when there is something to write, or at the end."""

    def __init__(self, process: Process, operation: Operation, name: str | None, warn: Callable[[str], None]) -> None:
        self._process = process
        self._operation = operation
        self.name = name
        """None is standard output."""
        self.written = 0
        self._fd = 1 if name is None else -1
        self._warn = warn
        self._append = False
        self._finished = False
        self.may_rename = False
        """-J: the server's name is taken instead, if it gives one."""

    def resume(self) -> int:
        """-C -: how much there is already; what comes is added to it."""
        self._append = True
        if self.name is None:
            return 0
        try:
            return self._process.fs.stat(self.name).size
        except SysError:
            return 0

    def append(self) -> None:
        self._append = True

    def restart(self) -> None:
        """For another try: a file begins anew."""
        if self.name is not None and self._fd >= 0:
            self.close()
            self._operation.flags.discard("no-clobber")
        self.written = 0
        self._finished = False

    def write(self, data: bytes) -> None:
        """Raises CurlError."""
        if self._fd < 0:
            self._open(len(data))
        done = 0
        try:
            while done < len(data):
                done += self._process.write(self._fd, data[done:] if done else data)
        except SysError:
            message = f"Failure writing output to destination, passed {len(data)} returned {done}"
            raise CurlError(WRITE_ERROR, message) from None
        self.written += len(data)

    def finish(self) -> None:
        """All is written: an empty file is a file, too."""
        if self._fd < 0 and not self._finished:
            self._open(0)
        self._finished = True
        self.close()

    def close(self) -> None:
        if self.name is not None and self._fd >= 0:
            with suppress(SysError):
                self._process.close(self._fd)
            self._fd = -1

    def remove(self) -> None:
        """--remove-on-error."""
        if self.name is not None and self.written:
            with suppress(SysError):
                self._process.fs.unlink(self.name)

    def _open(self, size: int) -> None:
        assert self.name is not None
        operation = self._operation
        mode = 0o666
        if (text := operation.values.get("create-file-mode")) is not None and re.fullmatch(r"[0-7]{1,4}", text):
            mode = int(text, 8)
        exclusive = operation.flag("no-clobber") or self.may_rename
        flags = O_WRONLY | O_CREAT | (O_APPEND if self._append else O_EXCL if exclusive else O_TRUNC)
        try:
            if operation.flag("create-dirs"):
                self._process.fs.makedirs(self.name.rpartition("/")[0], 0o750)
            try:
                self._fd = self._process.open(self.name, flags, mode)
            except SysError as error:
                if error.errno != EEXIST or not operation.flag("no-clobber"):
                    raise
                self._fd = self._open_next(flags, mode)
        except SysError as error:
            self._warn(f"Failed to open the file {self.name}: {error.reason}")
            raise CurlError(WRITE_ERROR, f"client returned ERROR on write of {size} bytes") from None

    def _open_next(self, flags: int, mode: int) -> int:
        """NAME.1, NAME.2, ... the first that is free."""
        base = self.name
        for number in range(1, NO_CLOBBER_MAX + 1):
            self.name = f"{base}.{number}"
            try:
                return self._process.open(self.name, flags, mode)
            except SysError as error:
                if error.errno != EEXIST:
                    raise
        raise SysError(EEXIST, base)


def file_name(operation: Operation, target: Target, url: Url, fill: Callable[[str], str]) -> str | None:
    """Return where the body of a URL goes; None is standard output. Raises CurlError."""
    by_url = target.remote_name or (operation.flag("remote-name-all") and not target.has_output)
    if by_url:
        # curl's name for a URL that has none.
        name = url.path.rstrip("/").rpartition("/")[2] or "curl_response"
    elif target.output is None or target.output == "-":
        return None
    else:
        name = fill(target.output)
    directory = operation.values.get("output-dir")
    return f"{directory}/{name}" if directory and name != "/dev/null" else name
