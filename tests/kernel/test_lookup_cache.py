"""Where directories are is remembered, and never longer than it holds."""

from errno import EACCES, ENOENT

import pytest

from belljar.abi.errors import SysError
from belljar.kernel.process import Process
from belljar.kernel.vfs.credentials import Credentials
from tests.kernel.rig import new_kernel, result


def test_a_directory_that_another_took_the_place_of() -> None:
    def body(process: Process) -> None:
        fs = process.fs
        fs.mkdir("/d")
        for name, child in (("/d", "old"), ("/d", "new")):
            fs.chdir(name)
            process.write_file(f"/d/{child}", b"")
            assert [entry.name for entry in fs.readdir(".")] == [child]
            assert fs.getcwd() == "/d"
            fs.rename("/d", f"/{child}")
            assert fs.getcwd() == f"/{child}"
            fs.mkdir("/d")

    result(new_kernel(), body)


def test_a_directory_that_was_removed() -> None:
    def body(process: Process) -> None:
        fs = process.fs
        fs.mkdir("/d")
        fs.chdir("/d")
        assert fs.getcwd() == "/d"
        fs.rmdir("/d")
        for act in (fs.getcwd, lambda: fs.chdir("/d")):
            with pytest.raises(SysError) as failure:
                act()
            assert failure.value.errno == ENOENT

    result(new_kernel(), body)


def test_a_directory_that_may_not_be_entered_any_more() -> None:
    def body(process: Process) -> None:
        fs = process.fs
        fs.mkdir("/d")
        fs.credentials = Credentials(1000, 1000)
        fs.chdir("/d")
        fs.credentials = Credentials()
        fs.chmod("/d", 0o700)
        fs.credentials = Credentials(1000, 1000)
        with pytest.raises(SysError) as failure:
            fs.chdir("/d")
        assert failure.value.errno == EACCES

    result(new_kernel(), body)


def test_files_made_in_a_working_directory_leave_commands_known() -> None:
    def body(process: Process) -> None:
        fs = process.fs
        fs.mkdir("/d")
        fs.mkdir("/d/e")
        fs.chdir("/d/e")
        fs.getcwd()
        before = process.kernel.lookup_cache.changes.count
        process.write_file("/d/file", b"")
        process.write_file("/d/e/file", b"")
        assert process.kernel.lookup_cache.changes.count == before

    result(new_kernel(), body)
