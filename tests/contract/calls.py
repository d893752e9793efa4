"""Short forms of the calls that the battery makes again and again."""

from collections.abc import Callable

import pytest

from belljar.abi.errors import SysError
from belljar.abi.flags import O_CREAT, O_RDONLY, O_TRUNC, O_WRONLY
from belljar.kernel.vfs.view import View


def read(view: View, path: str, flags: int = O_RDONLY) -> bytes:
    file = view.open(path, flags).retain()
    try:
        parts = []
        while data := file.read(1 << 16):
            parts.append(data)
        return b"".join(parts)
    finally:
        file.release()


def write(view: View, path: str, data: bytes, flags: int = O_WRONLY | O_CREAT | O_TRUNC, mode: int = 0o644) -> None:
    file = view.open(path, flags, mode).retain()
    try:
        while data:
            data = data[file.write(data) :]
    finally:
        file.release()


def names(view: View, path: str) -> list[str]:
    return sorted(entry.name for entry in view.readdir(path))


def fails(errno: int, call: Callable[..., object], *arguments: object, **options: object) -> None:
    """The call must end with exactly this errno."""
    with pytest.raises(SysError) as caught:
        call(*arguments, **options)
    assert caught.value.errno == errno, f"{caught.value.name} instead"
