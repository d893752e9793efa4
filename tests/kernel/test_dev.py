"""/dev: each device behaves as its name promises."""

from errno import EACCES, ENOENT, ENOSPC, ENXIO, EROFS

from belljar.abi.flags import O_CREAT, O_RDWR, O_TRUNC, O_WRONLY, S_IFCHR, S_IFLNK
from belljar.kernel.process import Process
from belljar.kernel.status import ExitStatus
from belljar.kernel.vfs.credentials import Credentials
from tests.kernel.rig import errno_of, new_kernel, result


def test_null_takes_all_and_gives_nothing() -> None:
    def main(process: Process) -> None:
        fd = process.open("/dev/null", O_RDWR | O_CREAT | O_TRUNC)
        assert process.write(fd, b"x" * 100_000) == 100_000
        assert process.read(fd) == b""
        assert process.seek(fd, 0) == 0

    result(new_kernel(), main, uid=1000)


def test_zero_and_full() -> None:
    def main(process: Process) -> None:
        zero, full = process.open("/dev/zero", O_RDWR), process.open("/dev/full", O_RDWR)
        assert process.read(zero, 5) == process.read(full, 5) == bytes(5)
        assert len(process.read(zero, 1 << 40)) <= 1 << 26
        assert process.write(zero, b"x") == 1
        assert errno_of(process.write, full, b"x") == ENOSPC

    result(new_kernel(), main, uid=1000)


def test_random_bytes_come_from_the_machine() -> None:
    def main(process: Process) -> list[bytes]:
        fds = [process.open("/dev/random"), process.open("/dev/urandom", O_RDWR)]
        assert process.write(fds[1], b"seed") == 4
        return [process.read(fd, 32) for fd in fds]

    first, again = result(new_kernel(), main), result(new_kernel(), main)
    assert first == again
    assert first[0] != first[1]
    assert [len(data) for data in first] == [32, 32]


def test_kinds_modes_and_numbers() -> None:
    def main(process: Process) -> None:
        for name, mode, rdev in (
            ("null", S_IFCHR | 0o666, 0x103),
            ("zero", S_IFCHR | 0o666, 0x105),
            ("full", S_IFCHR | 0o666, 0x107),
            ("random", S_IFCHR | 0o666, 0x108),
            ("urandom", S_IFCHR | 0o666, 0x109),
            ("tty", S_IFCHR | 0o666, 0x500),
            ("console", S_IFCHR | 0o600, 0x501),
            ("ptmx", S_IFCHR | 0o666, 0x502),
            ("stdin", S_IFLNK | 0o777, 0),
        ):
            stat = process.fs.stat(f"/dev/{name}", follow=False)
            assert (name, stat.mode, stat.rdev) == (name, mode, rdev)
        names = {entry.name for entry in process.fs.readdir("/dev")}
        assert {"null", "fd", "stdin", "stdout", "stderr", "pts", "shm"} <= names
        assert process.fs.readlink("/dev/fd") == "/proc/self/fd"

    result(new_kernel(), main)


def test_standard_streams_by_name() -> None:
    def main(process: Process) -> None:
        assert process.pipe() == (0, 1)
        process.write_file("/dev/stdout", b"by name")
        assert process.read(0) == b"by name"
        process.write_file("/dev/fd/1", b"by number")
        process.close(1)
        assert process.read_file("/dev/stdin") == b"by number"
        assert errno_of(process.open, "/dev/fd/99") == ENOENT
        assert errno_of(process.open, "/dev/stderr") == ENOENT
        assert errno_of(process.open, "/dev/fd/00") == ENOENT

    result(new_kernel(), main, uid=1000)


def test_streams_given_by_the_host_can_be_opened_again_by_their_user() -> None:
    kernel = new_kernel()
    reader, writer = kernel.open_pipe(kernel.init)

    def main(process: Process) -> int:
        process.write_file("/dev/stdout", b"again")
        return 0

    process = kernel.start(main, ["x"], credentials=Credentials(1000, 1000), files={1: writer})
    kernel.hub.run(lambda: process.status is not None)
    assert process.status == ExitStatus(0)
    assert reader.read(100) == b"again"


def test_a_file_by_descriptor_is_opened_afresh_with_its_own_rights() -> None:
    def main(process: Process) -> None:
        process.write_file("/tmp/f", b"0123456789")
        fd = process.open("/tmp/f")
        process.read(fd, 5)
        assert process.read_file(f"/dev/fd/{fd}") == b"0123456789"
        process.fs.chmod("/tmp/f", 0o400)
        assert errno_of(process.open, f"/dev/fd/{fd}", O_WRONLY) == EACCES

    result(new_kernel(), main, uid=1000)


def test_a_deleted_file_can_still_be_opened_by_descriptor() -> None:
    def main(process: Process) -> None:
        process.write_file("/tmp/f", b"alive")
        fd = process.open("/tmp/f")
        process.fs.unlink("/tmp/f")
        assert process.read_file(f"/proc/self/fd/{fd}") == b"alive"
        assert process.fs.readlink(f"/proc/self/fd/{fd}") == "/tmp/f (deleted)"

    result(new_kernel(), main, uid=1000)


def test_nothing_can_be_made_and_changes_of_mode_last() -> None:
    def main(process: Process) -> None:
        assert errno_of(process.open, "/dev/new", O_WRONLY | O_CREAT) == EROFS
        assert errno_of(process.fs.unlink, "/dev/null") == EROFS
        process.fs.chmod("/dev/null", 0o600)
        process.fs.utimens("/dev/null", 5, 7)
        stat = process.fs.stat("/dev/null")
        assert (stat.mode & 0o777, stat.atime, stat.mtime) == (0o600, 5, 7)

    result(new_kernel(), main)
    assert result(new_kernel(), lambda p: errno_of(p.open, "/dev/console", O_RDWR), uid=1000) == EACCES
    assert result(new_kernel(), lambda p: errno_of(p.open, "/dev/tty", O_RDWR), uid=1000) == ENXIO
