"""Real programs on a real mount: what they see is what the server has, whoever changed it."""

import threading
import time
from collections.abc import Callable

import pytest

from belljar.abi.errno import EDQUOT
from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFREG
from belljar.abi.limits import MIB
from belljar.abi.records import Owner
from belljar.fuse import nodes
from belljar.kernel.fs.memory import File, MemoryServer
from belljar.kernel.fs.quota import Quota
from belljar.kernel.vfs.server import Handle, Node
from tests.fuse.inside import Namespace, served


def memory(room: int = 256 * MIB) -> MemoryServer:
    return MemoryServer(time.time_ns, Quota(room, 10_000))


def file(server: MemoryServer, name: str) -> File:
    found = server.root.entries[name]
    assert isinstance(found, File)
    return found


def write(server: MemoryServer, name: str, data: bytes) -> Node:
    """Change a file from the other side."""
    if name not in server.root.entries:
        server.create(server.root, name, S_IFREG | 0o644, Owner(0, 0))
    node = file(server, name)
    server.resize(node, 0)
    server.write(node, 0, data)
    return node


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


@pytest.mark.parametrize("private", [True, False])
def test_programs_work(namespace: Namespace, place: str, private: bool) -> None:
    with served(namespace, memory(), place, private=private):
        out = namespace.run(
            f"cd {place} && mkdir d && echo one > a && ln a d/b && ln -s ../a d/s && cat d/s && echo two >> d/b && "
            "cat a && mv d e && rm a && ls e && stat -c %h e/b && rmdir e 2>/dev/null || echo full; "
            "seq 100000 > n && sort -rn n | head -1 && cp n m && cmp n m && echo same && rm -r e && ls"
        )
    assert out.split() == "one one two b s 1 full 100000 same m n".split()


def test_a_removed_file_lives_while_it_is_open(namespace: Namespace, place: str) -> None:
    server = memory()
    with served(namespace, server, place, private=True):
        out = namespace.run(f"cd {place} && exec 3<> f && echo kept >&3 && rm f && cat /proc/self/fd/3 && ls | wc -l")
        assert out.split() == ["kept", "0"]
        deadline = time.monotonic() + 60
        while server.quota.bytes_used and time.monotonic() < deadline:
            time.sleep(0.01)
    assert server.quota.bytes_used == 0


def test_changes_of_the_other_side_show(namespace: Namespace, place: str) -> None:
    """New contents of the same length, too, and names that come and go."""
    server = memory()
    with served(namespace, server, place):
        for turn in range(20):
            write(server, "f", b"turn %06d\n" % turn)
            assert namespace.run(f"cat {place}/f; stat -c %s {place}/f; ls {place}").split() == [
                "turn", f"{turn:06}", "12", "f",
            ]  # fmt: skip
            server.unlink(server.root, "f")
            assert namespace.call("stat", f"{place}/f") == "!ENOENT"


def test_what_is_kept_for_a_while_is_asked_for_anew_when_told(namespace: Namespace, place: str) -> None:
    server = memory()
    server.mkdir(server.root, "d", 0o755, Owner(0, 0))
    with served(namespace, server, place, valid=lambda: 600.0) as mounted:
        for turn in range(5):
            write(server, "f", b"x" * turn)
            mounted.new_epoch()
            assert namespace.run(f"cd {place} && stat -c %s f && ls d/../").split() == [str(turn), "d", "f"]
            server.unlink(server.root, "f")
            mounted.new_epoch()
            assert namespace.call("stat", f"{place}/f") == "!ENOENT"
            assert namespace.call("stat", f"{place}/d/../d/f") == "!ENOENT"


def test_a_reader_that_is_open_sees_a_change_it_is_told_of(namespace: Namespace, place: str) -> None:
    """A mapped file: the kernel asks nothing as long as it has the page, so it is told."""
    server = memory()
    node = write(server, "f", b"old" * 2000)
    with served(namespace, server, place) as mounted:
        script = (
            "import mmap,sys,time\nf=open(sys.argv[1],'rb')\nm=mmap.mmap(f.fileno(),0,prot=1)\nassert m[:3]==b'old'\n"
            "open(sys.argv[1]+'.ready','w').close()\nt=time.time()\n"
            "while m[:3]!=b'new' and time.time()-t<60: time.sleep(.01)\nprint(m[:3])"
        )
        pid = namespace.call("spawn", f'python3 -c "{script}" {place}/f')
        deadline = time.monotonic() + 60
        while "f.ready" not in server.root.entries and time.monotonic() < deadline:
            time.sleep(0.01)
        write(server, "f", b"new" * 2000)
        mounted.invalidate(node)
        assert namespace.call("wait", pid, 90.0) == [0, b"b'new'\n"]


def test_a_full_table_takes_what_another_made_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "NODES_MAX", 3)
    server = memory()
    one, two, three = (write(server, name, b"x") for name in ("one", "two", "three"))
    table = nodes.NodeTable(server.root)
    first = table.give(one, 1, "one")
    table.give(two, 1, "two")
    with pytest.raises(SysError, match="Too many open files in system"):
        table.give(three, 1, "three")
    table.forget(first)
    assert table.give(three, 1, "three") not in (first, table.number_of(two))


@pytest.mark.parametrize("private", [True, False])
def test_the_kernel_forgets_what_is_too_much(
    namespace: Namespace, place: str, private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a tree may have more files than it may know at a time. It does so when it gets to it."""
    monkeypatch.setattr(nodes, "NODES_WANTED", 50)
    monkeypatch.setattr(nodes, "BATCH", 20)
    server = memory()
    for number in range(1000):
        write(server, f"f{number:03}", b"%d\n" % number)
    with served(namespace, server, place, private=private) as mounted:
        command = (
            f"cd {place} && exec 3< f500 && ls -l | wc -l && cat f* | sort -n | uniq | wc -l && cat <&3 && rm f500"
        )
        assert namespace.run(command).split() == ["1001", "1000", "500"]
        assert namespace.run(f"cd {place} && ls | wc -l; cat f999; cat f500; exit 0").startswith("999\n999\n")
        wait_for(lambda: len(mounted._session._nodes) < 700)


def test_errors_are_the_servers_own(namespace: Namespace, place: str) -> None:
    server = MemoryServer(time.time_ns, Quota(1 * MIB, 3, EDQUOT))
    with served(namespace, server, place, private=True):
        out = namespace.run(f"cd {place}; head -c 2M /dev/zero > f; touch a b c d; mknod x c 1 3; exit 0")
    assert out.count("Disk quota exceeded") == 3
    assert out.count("Operation not permitted") == 1


def test_read_only(namespace: Namespace, place: str) -> None:
    server = memory()
    write(server, "f", b"x")
    with served(namespace, server, place, read_only=True, private=True):
        out = namespace.run(f"cd {place}; cat f; touch g; rm f; echo >> f; exit 0")
    assert out.count("Read-only file system") == 3


class Strange(MemoryServer):
    """A server of an owner's: some files are slow, some fail."""

    def __init__(self) -> None:
        super().__init__(time.time_ns, Quota(MIB, 100))
        self.go_on = threading.Event()
        for name in ("good", "slow", "bug", "number"):
            write(self, name, name.encode())

    def open(self, node: Node, flags: int) -> Handle:
        if node is self.root.entries["slow"]:
            self.go_on.wait(60)
        if node is self.root.entries["bug"]:
            raise KeyError("bug")
        if node is self.root.entries["number"]:
            raise SysError(99_999)
        return super().open(node, flags)


def test_a_bug_of_the_server_is_eio_and_reported(namespace: Namespace, place: str) -> None:
    reports: list[BaseException] = []
    with served(namespace, Strange(), place, report=reports.append):
        out = namespace.run(f"cd {place}; cat bug; cat number; cat good")
    assert out.count("Input/output error") == 2
    assert out.endswith("good")
    assert [type(each) for each in reports] == [KeyError]


@pytest.mark.battery
def test_a_slow_server_gives_eio_in_time_and_comes_back(namespace: Namespace, place: str) -> None:
    server = Strange()
    with served(namespace, server, place, seconds=4.0):
        out = namespace.run(f"cd {place}; cat slow; cat good; exit 0", seconds=50)
        assert out.count("Input/output error") == 2
        server.go_on.set()
        deadline = time.monotonic() + 60
        while namespace.call("run", f"cat {place}/good", 60.0) != [0, b"good"] and time.monotonic() < deadline:
            time.sleep(0.02)
        assert namespace.run(f"cat {place}/slow") == "slow"
        wait_for(lambda: file(server, "slow").opens == 0)  # the kernel closes when it has the time


def test_a_dead_server_can_be_unmounted_and_closed(namespace: Namespace, place: str) -> None:
    server = Strange()
    with served(namespace, server, place) as mounted:
        pid = namespace.call("spawn", f"cat {place}/slow")
        time.sleep(0.3)
        assert namespace.call("unmount", place) is None
        began = time.monotonic()
        mounted.close()
        assert mounted.wait(0)
        assert time.monotonic() - began < 30
        status, out = namespace.call("wait", pid, 60.0)
        assert status == 1, out
        server.go_on.set()


def test_what_the_owner_lets_go_of_fails_at_once(namespace: Namespace, place: str) -> None:
    server = memory()
    write(server, "f", b"x" * 100)
    with served(namespace, server, place) as mounted:
        assert namespace.run(f"cat {place}/f") == "x" * 100
        mounted.close()
        status, out = namespace.call("run", f"cat {place}/f", 60.0)
        assert status == 1
        assert b"not connected" in out
        mounted.close()


def test_a_server_without_handles_left_behind(namespace: Namespace, place: str) -> None:
    server = memory()
    write(server, "f", b"x" * 100)
    with served(namespace, server, place, private=True) as mounted:
        pid = namespace.call("spawn", f"exec 3< {place}/f; exec sleep 60")
        deadline = time.monotonic() + 60
        opened = file(server, "f")
        while not opened.opens and time.monotonic() < deadline:
            time.sleep(0.01)
        assert opened.opens == 1
        mounted.close()
        wait_for(lambda: opened.opens == 0)
        namespace.call("run", f"kill {pid}", 60.0)
        namespace.call("wait", pid, 60.0)


def test_only_a_fuse_device_is_served() -> None:
    from belljar.fuse.serve_host import check_device

    with open("/dev/null") as other, pytest.raises(ValueError, match="not /dev/fuse"):
        check_device(other.fileno())
