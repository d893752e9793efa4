"""Pipes and FIFOs: order, back pressure, EOF, EPIPE, nonblocking, partial reads."""

from errno import EAGAIN, EBADF, ENXIO, ESPIPE

from belljar.abi.flags import (
    O_NONBLOCK,
    O_RDONLY,
    O_RDWR,
    O_WRONLY,
    POLLERR,
    POLLHUP,
    POLLIN,
    POLLOUT,
    S_IFIFO,
    S_IFMT,
)
from belljar.kernel.pipe import CAPACITY, Outlet
from belljar.kernel.process import IGNORE, Process
from belljar.kernel.status import ExitStatus
from tests.kernel.rig import errno_of, new_kernel, result


def test_bytes_come_out_in_order_in_any_bites() -> None:
    def main(process: Process) -> None:
        reader, writer = process.pipe()
        for data in (b"abc", b"defgh", b"i"):
            process.write(writer, data)
        assert process.read(reader, 4) == b"abcd"
        assert process.read(reader, 2) == b"ef"
        assert process.read(reader, 0) == b""
        assert process.read(reader, 100) == b"ghi"
        process.close(writer)
        assert process.read(reader) == b""

    result(new_kernel(), main)


def test_a_reader_waits_for_the_writer() -> None:
    def main(process: Process) -> None:
        reader, writer = process.pipe()

        def body(child: Process) -> int:
            child.sleep(3)
            child.write(writer, b"late")
            return 0

        process.fork(body)
        assert process.read(reader) == b"late"
        assert process.kernel.hub.clock.monotonic() == 3

    result(new_kernel(), main)


def test_a_writer_waits_while_the_pipe_is_full() -> None:
    written: list[int] = []

    def main(process: Process) -> None:
        reader, writer = process.pipe()

        def body(child: Process) -> int:
            written.extend(child.write(writer, b"x" * 4096) for _ in range(100))
            return 0

        process.fork(body)
        process.close(writer)
        process.sleep(1)
        assert sum(written) == CAPACITY
        assert len(process.read(reader, 4096)) == 4096
        process.sleep(1)
        assert sum(written) == CAPACITY + 4096
        total = 4096
        while data := process.read(reader):
            total += len(data)
        assert total == 100 * 4096

    result(new_kernel(), main)


def test_an_endless_writer_ends_when_its_reader_does() -> None:
    def main(process: Process) -> None:
        reader, writer = process.pipe()

        def yes(child: Process) -> int:
            child.close(reader)
            while True:
                child.write(writer, b"y\n" * 1000)

        def head(child: Process) -> int:
            child.read(reader, 2)
            return 0

        endless, short = process.fork(yes), process.fork(head)
        process.close(reader)
        process.close(writer)
        assert process.wait_for(short) == ExitStatus(0)
        assert process.wait_for(endless) == ExitStatus(0, 13)

    result(new_kernel(), main)


def test_nonblocking_ends() -> None:
    def main(process: Process) -> None:
        reader, writer = process.pipe()
        for fd in (reader, writer):
            process.fds[fd].set_flags(O_NONBLOCK)
        assert errno_of(process.read, reader) == EAGAIN
        assert process.write(writer, b"x" * CAPACITY) == CAPACITY
        assert errno_of(process.write, writer, b"x") == EAGAIN
        assert len(process.read(reader, CAPACITY)) == CAPACITY
        process.close(writer)
        assert process.read(reader) == b""

    result(new_kernel(), main)


def test_each_end_goes_one_way_and_none_can_seek() -> None:
    def main(process: Process) -> None:
        reader, writer = process.pipe()
        assert errno_of(process.write, reader, b"x") == EBADF
        assert errno_of(process.read, writer) == EBADF
        assert errno_of(process.seek, reader, 0) == ESPIPE
        assert errno_of(process.fds[reader].pread, 1, 0) == ESPIPE
        assert process.fstat(reader).mode & S_IFMT == S_IFIFO
        assert process.fstat(reader).ino == process.fstat(writer).ino

    result(new_kernel(), main)


def test_a_pipe_opened_again_by_name_is_the_same_pipe() -> None:
    def main(process: Process) -> None:
        reader, writer = process.pipe()
        again = process.open(f"/dev/fd/{writer}", O_WRONLY)
        process.close(writer)
        process.write(again, b"hi")
        assert process.read(reader) == b"hi"
        process.close(again)
        assert process.read(reader) == b""

    result(new_kernel(), main)


# FIFOs.


def test_opening_a_fifo_waits_for_the_other_side() -> None:
    def main(process: Process) -> None:
        process.fs.mknod("/tmp/f", S_IFIFO | 0o666)

        def body(child: Process) -> int:
            child.sleep(2)
            fd = child.open("/tmp/f", O_WRONLY)
            child.write(fd, b"through")
            return 0

        process.fork(body)
        fd = process.open("/tmp/f")
        assert process.kernel.hub.clock.monotonic() == 2
        assert process.read(fd) == b"through"
        assert process.read(fd) == b""

    result(new_kernel(), main)


def test_a_writer_that_came_and_went_still_lets_the_reader_in() -> None:
    def main(process: Process) -> None:
        process.fs.mknod("/tmp/f", S_IFIFO | 0o666)
        process.fork(lambda child: child.write(child.open("/tmp/f", O_WRONLY), b"x") - 1)
        fd = process.open("/tmp/f")
        assert process.read(fd) == b"x"
        assert process.read(fd) == b""

    result(new_kernel(), main)


def test_fifos_opened_without_waiting() -> None:
    def main(process: Process) -> None:
        process.fs.mknod("/tmp/f", S_IFIFO | 0o666)
        assert errno_of(process.open, "/tmp/f", O_WRONLY | O_NONBLOCK) == ENXIO
        reader = process.open("/tmp/f", O_RDONLY | O_NONBLOCK)
        assert process.poll({reader: POLLIN}, 0) == {}  # nobody has hung up yet
        assert process.read(reader) == b""
        writer = process.open("/tmp/f", O_WRONLY | O_NONBLOCK)
        assert errno_of(process.read, reader) == EAGAIN
        process.write(writer, b"x")
        process.close(writer)
        assert process.poll({reader: POLLIN}, 0) == {reader: POLLIN | POLLHUP}
        both = process.open("/tmp/f", O_RDWR)
        assert process.poll({both: POLLIN | POLLOUT}, 0) == {both: POLLIN | POLLOUT}

    result(new_kernel(), main)


def test_a_broken_pipe_polls_as_an_error() -> None:
    def main(process: Process) -> None:
        process.catch(13, IGNORE)
        reader, writer = process.pipe()
        process.close(reader)
        assert process.poll({writer: 0}) == {writer: POLLERR}

    result(new_kernel(), main)


def test_a_killed_opener_leaves_no_trace_in_the_fifo() -> None:
    def main(process: Process) -> None:
        process.fs.mknod("/tmp/f", S_IFIFO | 0o666)
        child = process.fork(lambda child: child.open("/tmp/f"))
        process.sleep(1)
        process.kill(child.pid, 15)
        process.wait_for(child)
        assert errno_of(process.open, "/tmp/f", O_WRONLY | O_NONBLOCK) == ENXIO

    result(new_kernel(), main)


def test_an_outlet_takes_one_write_after_the_other() -> None:
    """Whoever writes hands on its own bytes; the next waits until that is done, or is told to come again."""
    kernel = new_kernel()
    taken: list[bytes] = []

    def take(data: bytes) -> None:
        kernel.hub.sleep(1)
        taken.append(data)

    def main(process: Process) -> None:
        outlet = Outlet(kernel.hub, take)
        fd = process.fds.add(kernel.open_outlet(process, outlet))
        assert process.poll({fd: POLLOUT}, 0) == {fd: POLLOUT}
        assert process.fstat(fd).mode & S_IFMT == S_IFIFO
        children = [process.fork(lambda child, data=data: child.write(fd, data) and 0) for data in (b"a", b"bb")]  # type: ignore[misc]
        process.sleep(0.5)
        assert (outlet.busy, outlet.writers) == (True, 1)
        process.fds[fd].set_flags(O_NONBLOCK)
        assert errno_of(process.write, fd, b"c") == EAGAIN
        process.fds[fd].set_flags(0)
        assert process.write(fd, b"ddd") == 3
        for child in children:
            assert process.wait_for(child).code == 0
        assert taken == [b"a", b"bb", b"ddd"]
        assert (outlet.busy, outlet.writers) == (False, 1)
        process.close(fd)
        assert (outlet.busy, outlet.writers) == (False, 0)

    result(kernel, main)


def test_an_inlet_has_all_its_input_and_an_end() -> None:
    def main(process: Process) -> None:
        kernel = process.kernel
        fd = process.fds.add(kernel.open_inlet(process, b"x" * (2 * CAPACITY)))
        assert process.poll({fd: POLLIN}, 0) == {fd: POLLIN | POLLHUP}
        assert len(process.read(fd, 4 * CAPACITY)) == 2 * CAPACITY
        assert process.read(fd) == b""
        empty = process.fds.add(kernel.open_inlet(process, b""))
        assert process.poll({empty: POLLIN}) == {empty: POLLHUP}
        assert process.read(empty) == b""

    result(new_kernel(), main)
