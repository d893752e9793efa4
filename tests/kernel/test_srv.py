"""/srv: posting by host and guest, mounting by name, and who may."""

from errno import EACCES, EBADF, EBUSY, EEXIST, EINVAL, EIO, ENOENT, ENOTDIR, ENXIO, EPERM, EROFS

from belljar.abi.flags import O_CREAT, O_EXCL, O_WRONLY
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.srv import SrvServer, mount_posted
from belljar.kernel.kernel import Kernel
from belljar.kernel.process import Process
from tests.kernel.rig import errno_of, new_kernel, result


def with_srv() -> tuple[Kernel, SrvServer]:
    kernel = new_kernel()
    srv = SrvServer(kernel)
    kernel.register(srv)
    kernel.init.fs.mkdir("/srv")
    kernel.init.fs.mount(srv, "/srv", source="srv")
    kernel.init.fs.mkdir("/mnt")
    return kernel, srv


def test_the_host_posts_and_a_process_mounts() -> None:
    kernel, srv = with_srv()
    server = MemoryServer(kernel.now, kernel.quota)
    srv.post("data", server)
    srv.post("frozen", server, read_only=True)
    srv.post("hidden", server, mode=0o400)

    def user(process: Process) -> None:
        assert [entry.name for entry in process.fs.readdir("/srv")] == ["data", "frozen", "hidden"]
        assert errno_of(mount_posted, process.fs, "/srv/hidden", "/mnt") == EACCES
        assert errno_of(mount_posted, process.fs, "/srv/none", "/mnt") == ENOENT
        assert errno_of(mount_posted, process.fs, "/dev/null", "/mnt") == EINVAL
        mount_posted(process.fs, "/srv/frozen", "/mnt")
        assert errno_of(process.open, "/mnt/f", O_WRONLY | O_CREAT) == EROFS
        assert process.read_file("/proc/mounts").splitlines()[-1] == b"/srv/frozen /mnt tmpfs ro,relatime 0 0"

    def root(process: Process) -> None:
        mount_posted(process.fs, "/srv/data", "/mnt")
        process.write_file("/mnt/f", b"posted")
        assert errno_of(process.fs.readlink, "/srv/data") == EINVAL
        assert errno_of(process.read_file, "/srv/data") == EIO

    result(kernel, user, uid=1000)
    result(kernel, root)
    assert srv.find("data").server is server
    assert errno_of(kernel.init.fs.stat, "/mnt/f") == ENOENT  # the mount was the process's own
    assert errno_of(srv.post, "data", server) == EEXIST


def test_a_guest_posts_a_directory_of_its_own() -> None:
    kernel, _srv = with_srv()

    def poster(process: Process) -> None:
        process.fs.mkdir("/tmp/shared")
        process.write_file("/tmp/shared/f", b"hi")
        fd = process.open("/tmp/shared")
        process.write_file("/srv/mine", b"%d\n" % fd, 0o644)
        assert errno_of(process.write_file, "/srv/mine", b"%d" % fd) == EBUSY
        plain = process.open("/tmp/shared/f")
        for text, errno in (
            (b"%d" % plain, ENOTDIR),
            (b"77", EBADF),
            (b"x", EINVAL),
            (b"-1", EINVAL),
            (b"%d" % process.open("/srv"), EINVAL),
        ):
            assert errno_of(process.write_file, "/srv/bad", text) == errno
        assert errno_of(mount_posted, process.fs, "/srv/bad", "/mnt") == ENXIO
        assert errno_of(process.open, "/srv/mine", O_WRONLY | O_CREAT | O_EXCL) == EEXIST
        assert errno_of(process.fs.mkdir, "/srv/d") == EPERM
        assert errno_of(process.fs.symlink, "mine", "/srv/d") == EPERM
        assert errno_of(process.fs.link, "/srv/mine", "/srv/d") == EPERM
        assert errno_of(process.fs.rename, "/srv/mine", "/srv/d") == EPERM
        process.fs.unlink("/srv/bad")

    def user(process: Process) -> None:
        mount_posted(process.fs, "/srv/mine", "/mnt")
        assert process.read_file("/mnt/f") == b"hi"
        assert errno_of(process.fs.unlink, "/srv/mine") == EPERM

    result(kernel, poster, uid=1000)
    result(kernel, user, uid=2000)
    result(kernel, lambda process: process.fs.unlink("/srv/mine"), uid=1000)
    assert result(kernel, lambda process: errno_of(mount_posted, process.fs, "/srv/mine", "/mnt"), uid=2000) == ENOENT
