"""Computed trees keep the file-server contract: identity, listings that agree with stat, the right errnos."""

from collections.abc import Callable
from errno import EINVAL, ENAMETOOLONG, ENOENT, ENOTDIR, EPERM, EROFS

import pytest

from belljar.abi.flags import S_IFREG
from belljar.abi.records import Owner
from belljar.kernel.fs.dev import DevServer
from belljar.kernel.fs.proc import ProcServer
from belljar.kernel.fs.srv import SrvServer
from belljar.kernel.kernel import Kernel
from belljar.kernel.process import Process
from belljar.kernel.vfs.server import FileServer, Node
from belljar.net.guest.local import LocalNetwork
from belljar.net.guest.netfs import NetServer
from belljar.net.guest.uplink import Uplink
from belljar.net.guest.webfs import WebServer
from belljar.worker.toolfs import ToolServer
from tests.contract.servers import memory
from tests.kernel.rig import errno_of, new_kernel, result, sleeping


def posted(kernel: Kernel) -> FileServer:
    srv = SrvServer(kernel)
    srv.post("one", memory())
    return srv


def offered(kernel: Kernel) -> FileServer:
    server = ToolServer(lambda _name, line: line, kernel.now)
    server.add("search")
    return server


def _uplink(kernel: Kernel) -> Uplink:
    return Uplink(kernel.hub, LocalNetwork(kernel.hub, lambda: kernel.hostname))


SERVERS: dict[str, Callable[[Kernel], FileServer]] = {
    "dev": DevServer,
    "proc": lambda kernel: ProcServer(kernel, kernel.init.space),
    "srv": posted,
    "net": lambda kernel: NetServer(_uplink(kernel), kernel.now),
    "web": lambda kernel: WebServer(_uplink(kernel), kernel.now),
    "tools": offered,
}


@pytest.mark.parametrize("name", SERVERS)
def test_the_contract(name: str) -> None:
    kernel = new_kernel()
    server = SERVERS[name](kernel)

    def look(directory: Node, depth: int) -> int:
        seen = 0
        entries = server.readdir(directory)
        assert len({entry.name for entry in entries}) == len(entries)
        for entry in entries:
            node = server.walk(directory, entry.name)
            assert server.walk(directory, entry.name) is node
            stat = server.stat(node)
            assert (stat.ino, stat.kind, stat.mode) == (entry.ino, entry.kind, node.mode), entry.name
            seen += 1
            if node.is_dir:
                assert server.locate(node) == (directory, entry.name)
                if depth < 4:
                    seen += look(node, depth + 1)
            else:
                assert errno_of(server.readdir, node) == ENOTDIR
                assert errno_of(server.walk, node, "x") == ENOTDIR
            if not node.is_symlink:
                assert errno_of(server.readlink, node) == EINVAL
        return seen

    def main(_process: Process) -> None:
        assert look(server.root, 0) > 0
        assert server.locate(server.root) is None
        assert errno_of(server.walk, server.root, "none") == ENOENT
        assert errno_of(server.walk, server.root, "n" * 256) == ENAMETOOLONG
        assert errno_of(server.mkdir, server.root, "d", 0o755, Owner(0, 0)) in (EPERM, EROFS)
        if name != "srv":
            assert errno_of(server.create, server.root, "f", S_IFREG | 0o644, Owner(0, 0)) == EROFS

    result(kernel, main)


def test_the_directory_of_a_process_that_is_gone_has_no_name() -> None:
    def main(process: Process) -> None:
        child = process.fork(sleeping(1))
        process.fs.chdir(f"/proc/{child.pid}")
        assert process.fs.getcwd() == f"/proc/{child.pid}"
        process.wait_for(child)
        assert errno_of(process.fs.getcwd) == ENOENT
        process.fs.chdir("..")
        assert process.fs.getcwd() == "/proc"

    result(new_kernel(), main)
