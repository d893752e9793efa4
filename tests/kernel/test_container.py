"""Containers: their own pids, files, devices, host name; nothing of them outlives their init."""

from errno import EINVAL, ENOENT, ENOSPC, EPERM, ESRCH

from belljar.abi.flags import O_RDWR
from belljar.abi.signals import Signal
from belljar.kernel.container import DEPTH_MAX, Container
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.process import Process
from belljar.kernel.status import ExitStatus
from tests.kernel.rig import doing, errno_of, new_kernel, result, sleeping


def new_root(process: Process) -> MemoryServer:
    kernel = process.kernel
    return MemoryServer(kernel.now, kernel.quota)


def test_a_container_sees_only_itself() -> None:
    def main(process: Process) -> None:
        process.write_file("/tmp/secret", b"x")
        process.pipe()
        process.pipe()

        def init(me: Process) -> int:
            assert (me.pid, me.hostname, me.fs.getcwd()) == (1, "box", "/")
            assert sorted(entry.name for entry in me.fs.readdir("/")) == ["dev", "proc"]
            numbers = [entry.name for entry in me.fs.readdir("/proc") if entry.name.isdigit()]
            assert numbers == ["1"]
            assert me.read_file("/proc/1/stat").split()[3:6] == [b"0", b"1", b"1"]
            assert me.read_file("/proc/sys/kernel/hostname") == b"box\n"
            assert me.fds.fds() == [0, 1, 2]
            assert errno_of(me.kill, process.pid + 1, 0) == ESRCH
            for path in ("/tmp/secret", "/../tmp/secret", "/proc/1/root/../tmp/secret", "/proc/self/cwd/../tmp/secret"):
                assert errno_of(me.fs.stat, path) == ENOENT
            child = me.fork(lambda _child: 3)
            assert child.pid == 2
            assert me.wait_for(child).code == 3
            me.write_file("/made", b"inside")
            return 9

        root = new_root(process)
        box = Container(process, root, init, ["init"], hostname="box", env={"A": "1"})
        assert box.init.pids[process.space] not in (1, process.pid)
        assert process.wait_for(box.init) == ExitStatus(9)
        assert process.hostname == "belljar"
        assert errno_of(process.fs.stat, "/made") == ENOENT

    result(new_kernel(), main)


def test_the_outside_sees_and_signals_by_its_own_numbers() -> None:
    def main(process: Process) -> None:
        def init(me: Process) -> int:
            me.fork(sleeping(100), pgid=0)
            me.sleep(100)
            return 0

        box = Container(process, new_root(process), init, ["init", "x"])
        process.sleep(1)
        outer = box.init.pids[process.space]
        inner = box.space.table[2]
        assert process.read_file(f"/proc/{outer}/cmdline") == b"init\0x\0"
        assert b"NSpid:\t%d\t2\n" % inner.pids[process.space] in process.read_file(
            f"/proc/{inner.pids[process.space]}/status"
        )
        # pgid 2 in the box is not pgid 2 outside, which is ours.
        assert process.pgid == 2
        process.catch(Signal.USR1, lambda _number: None)
        process.kill(0, Signal.USR1)
        assert inner.pid in box.space.table
        process.kill(-inner.pids[process.space], Signal.TERM)
        process.sleep(1)
        assert inner.status == ExitStatus(0, Signal.TERM)
        process.kill(outer, Signal.TERM)  # an init has no default actions
        process.sleep(1)
        process.kill(outer, Signal.KILL)
        assert process.wait_for(box.init) == ExitStatus(0, Signal.KILL)

    result(new_kernel(), main)


def test_everything_ends_with_its_init() -> None:
    def main(process: Process) -> None:
        started: list[Process] = []

        def init(me: Process) -> int:
            child = me.fork(sleeping(1000))
            started.append(child)
            me.fork(doing(lambda child: started.append(child.fork(sleeping(1000)))))
            me.sleep(5)
            return 1

        box = Container(process, new_root(process), init, ["init"])
        process.wait_for(box.init)
        process.sleep(1)
        assert [p.status for p in started] == [ExitStatus(0, Signal.KILL)] * 2
        assert box.space.table == {}
        assert sorted(process.space.table) == [1, process.pid]
        assert errno_of(box.run, process, sleeping(1), ["x"]) == ESRCH

    result(new_kernel(), main)


def test_its_init_adopts_and_must_wait() -> None:
    def main(process: Process) -> None:
        def init(me: Process) -> int:
            def middle(child: Process) -> int:
                child.fork(sleeping(2, 7))
                return 0

            assert me.wait_for(me.fork(middle)).code == 0
            news = me.wait()
            assert news is not None
            return news.status.code

        assert process.wait_for(Container(process, new_root(process), init, ["init"]).init).code == 7

    result(new_kernel(), main)


def test_signals_from_inside_cannot_end_its_init() -> None:
    def main(process: Process) -> None:
        def init(me: Process) -> int:
            for number in (9, 15, 19):
                me.wait_for(me.fork(doing(lambda child, number=number: child.kill(1, number))))  # type: ignore[misc]
            return 4

        assert process.wait_for(Container(process, new_root(process), init, ["init"]).init).code == 4

    result(new_kernel(), main)


def test_terminals_are_its_own() -> None:
    def main(process: Process) -> None:
        process.open("/dev/ptmx", O_RDWR)

        def init(me: Process) -> int:
            assert errno_of(me.fs.stat, "/dev/pts/0") == ENOENT
            master = me.open("/dev/ptmx", O_RDWR)
            assert me.ioctl(master, "pty_number") == 0
            me.open("/dev/pts/0", O_RDWR)
            assert me.session.tty is not None
            return 0

        assert process.wait_for(Container(process, new_root(process), init, ["init"]).init).code == 0
        assert process.session.tty is None

    result(new_kernel(), main)


def test_another_process_can_be_run_inside() -> None:
    def main(process: Process) -> None:
        box = Container(process, new_root(process), sleeping(100), ["init"], env={"A": "1"}, hostname="box")

        def visitor(me: Process) -> int:
            assert (me.pid, me.hostname, me.env) == (2, "box", {"A": "1"})
            assert me.read_file("/proc/self/stat").split()[3] == b"0"
            return 6

        assert process.wait_for(box.run(process, visitor, ["visitor"])).code == 6
        assert box.init.status is None

    result(new_kernel(), main)


def test_what_is_refused() -> None:
    kernel = new_kernel()

    def user(process: Process) -> int:
        return errno_of(Container, process, new_root(process), sleeping(1), ["x"])

    assert result(kernel, user, uid=1000) == EPERM

    def root(process: Process) -> None:
        def named(name: str) -> object:
            return Container(process, new_root(process), sleeping(1), ["x"], hostname=name)

        assert errno_of(named, "") == EINVAL
        assert errno_of(named, "x" * 65) == EINVAL

        def read_only() -> object:
            return Container(process, new_root(process), sleeping(1), ["x"], read_only=True)

        assert errno_of(read_only) == ENOENT  # nowhere to put /dev

    result(kernel, root)


def test_containers_nest_but_not_forever() -> None:
    depths: list[int] = []

    def nest(me: Process, level: int) -> int:
        depths.append(level)
        if level == DEPTH_MAX:
            return errno_of(Container, me, new_root(me), sleeping(1), ["init"])
        box = Container(me, new_root(me), lambda inner: nest(inner, level + 1), ["init"])
        return me.wait_for(box.init).code

    assert result(new_kernel(), lambda process: nest(process, 0)) == ENOSPC
    assert depths == list(range(DEPTH_MAX + 1))
