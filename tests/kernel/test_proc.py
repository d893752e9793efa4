"""/proc: Linux's formats, the sandbox's truth, and Linux's rules of who may see what."""

import os
import re
import socket
from errno import EACCES, EINVAL, ENOENT, EPERM, ESRCH
from pathlib import Path

import pytest

from belljar.abi.flags import O_WRONLY
from belljar.abi.limits import Limits
from belljar.abi.signals import Signal
from belljar.kernel.process import IGNORE, Process
from belljar.kernel.status import ExitStatus
from tests.kernel.rig import errno_of, new_kernel, result, run, sleeping, start


def read(process: Process, path: str) -> str:
    return process.read_file(path).decode()


def fields(text: str) -> dict[str, str]:
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


# Of one process.


def test_self_is_whoever_asks() -> None:
    def main(process: Process) -> None:
        assert process.fs.readlink("/proc/self") == str(process.pid)
        assert process.fs.readlink("/proc/thread-self") == f"{process.pid}/task/{process.pid}"

        def body(child: Process) -> int:
            assert process.fs.readlink("/proc/self") == str(child.pid)
            assert child.pid != process.pid
            assert read(child, "/proc/self/stat").split()[3] == str(process.pid)
            return 0

        assert process.wait_for(process.fork(body)) == ExitStatus(0)

    result(new_kernel(), main, uid=1000)


def test_names_arguments_and_environment() -> None:
    def main(process: Process) -> int:
        process.env = {"A": "1", "B": "x y"}
        process.argv = ["/bin/a-rather-long-name", "two words", ""]
        assert process.read_file("/proc/self/cmdline") == b"/bin/a-rather-long-name\0two words\0\0"
        assert process.read_file("/proc/self/environ") == b"A=1\0B=x y\0"
        assert read(process, "/proc/self/comm") == "a-rather-long-n\n"
        return 0

    assert run(new_kernel(), main, uid=1000) == ExitStatus(0)


def test_status() -> None:
    def main(process: Process) -> None:
        process.catch(Signal.INT, IGNORE)
        process.catch(Signal.TERM, lambda _number: None)
        process.block(frozenset({Signal.HUP, Signal.USR1}))
        process.raise_signal(Signal.USR1)
        child = process.fork(sleeping(100), argv=["child"])
        process.sleep(1)
        mine = fields(read(process, "/proc/self/status"))
        assert mine["Name"] == "test"
        assert mine["State"] == "R (running)"
        assert (mine["Pid"], mine["PPid"]) == (str(process.pid), "1")
        assert mine["Uid"] == "1000\t1000\t1000\t1000"
        assert mine["Umask"] == "0022"
        assert mine["SigIgn"] == f"{1 << 1:016x}"
        assert mine["SigCgt"] == f"{1 << 14:016x}"
        assert mine["SigBlk"] == f"{1 << 0 | 1 << 9:016x}"
        assert mine["ShdPnd"] == f"{1 << 9:016x}"
        assert mine["CapEff"] == "0" * 16
        other = f"/proc/{child.pid}/status"
        assert fields(read(process, other))["State"] == "S (sleeping)"
        process.kill(child.pid, Signal.STOP)
        assert fields(read(process, other))["State"] == "T (stopped)"
        process.kill(child.pid, Signal.KILL)
        process.sleep(1)
        assert fields(read(process, other))["State"] == "Z (zombie)"
        assert process.read_file(f"/proc/{child.pid}/cmdline") == b""

    result(new_kernel(), main, uid=1000)


def test_stat_has_linuxs_52_fields() -> None:
    def main(process: Process) -> str:
        process.sleep(2)
        process.argv = ["we)ird (na me"]
        return read(process, "/proc/self/stat")

    found = re.fullmatch(r"(\d+) \((.*)\) (\w)((?: -?\d+)+)\n", result(new_kernel(), main))
    assert found is not None
    assert found[2] == "we)ird (na me"
    assert found[3] == "R"
    assert len(found[4].split()) == 49
    real = Path("/proc/self/stat").read_text()
    assert len(real.rpartition(")")[2].split()) == 50


def test_every_file_has_the_fields_of_the_real_one_in_their_order() -> None:
    """Where Linux has more, what we have comes in its order: tools look for names, some for positions."""

    def names(text: str) -> list[str]:
        return [line.partition(":")[0] for line in text.splitlines()]

    def main(process: Process) -> None:
        for path in ("/proc/self/status", "/proc/meminfo", "/proc/self/limits"):
            ours, real = read(process, path), Path(path).read_text()
            if path.endswith("limits"):
                assert [line[:26] for line in ours.splitlines()] == [line[:26] for line in real.splitlines()]
                continue
            there = [name for name in names(real) if name in names(ours)]
            assert there == [name for name in names(ours) if name in there], path
        assert names(read(process, "/proc/meminfo"))[0] == "MemTotal"
        pattern = re.compile(r"MemTotal: +\d+ kB")
        ours, real = read(process, "/proc/meminfo"), Path("/proc/meminfo").read_text()
        assert pattern.match(ours)
        assert len(ours.splitlines()[0]) == len(real.splitlines()[0])

    result(new_kernel(), main)


def test_limits_show_what_was_set() -> None:
    def main(process: Process) -> str:
        process.rlimits = {"f": (10240, None), "n": (64, 128)}
        return read(process, "/proc/self/limits")

    text = result(new_kernel(), main)
    assert "Max file size             10240                unlimited            bytes     \n" in text
    assert "Max open files            64                   128                  files     \n" in text
    assert "Max processes             1024                 1024                 processes \n" in text


def test_links_lead_where_the_process_is() -> None:
    def main(process: Process) -> None:
        process.fs.mkdir("/tmp/d")
        process.fs.chdir("/tmp/d")
        process.executable = "/bin/prog"
        assert process.fs.readlink("/proc/self/cwd") == "/tmp/d"
        assert process.fs.readlink("/proc/self/root") == "/"
        assert process.fs.readlink("/proc/self/exe") == "/bin/prog"
        process.write_file("/proc/self/cwd/f", b"x")
        assert process.read_file("/tmp/d/f") == b"x"
        assert process.read_file("/proc/self/root/tmp/d/f") == b"x"
        process.fs.mkdir("/tmp/d/e")
        process.fs.chdir("/proc/self/cwd/e")
        assert process.fs.getcwd() == "/tmp/d/e"

    result(new_kernel(), main, uid=1000)


def test_descriptors() -> None:
    def main(process: Process) -> None:
        reader, _writer = process.pipe()
        process.fs.chdir("/tmp")
        process.write_file("f", b"0123456789")
        fd = process.open("f")
        process.read(fd, 4)
        directory = process.open("/tmp")
        links = {e.name: process.fs.readlink(f"/proc/self/fd/{e.name}") for e in process.fs.readdir("/proc/self/fd")}
        ino = process.fstat(reader).ino
        assert links == {"0": f"pipe:[{ino}]", "1": f"pipe:[{ino}]", str(fd): "/tmp/f", str(directory): "/tmp"}
        info = read(process, f"/proc/self/fdinfo/{fd}")
        assert info.startswith("pos:\t4\nflags:\t0")
        assert process.fs.stat("/proc/self/fd/1", follow=False).mode & 0o777 == 0o300
        assert errno_of(process.fs.readlink, "/proc/self/fd/77") == ENOENT

    result(new_kernel(), main, uid=1000)


def test_mounts() -> None:
    def main(process: Process) -> None:
        process.fs.mkdir("/tmp/a b")
        process.fs.bind("/bin", "/tmp/a b", read_only=True)
        lines = read(process, "/proc/mounts").splitlines()
        assert lines[0] == "tmpfs / tmpfs rw,relatime 0 0"
        assert "proc /proc proc rw,relatime 0 0" in lines
        assert lines[-1] == "/bin /tmp/a\\040b tmpfs ro,relatime 0 0"
        for line in read(process, "/proc/self/mountinfo").splitlines():
            assert re.fullmatch(r"\d+ \d+ \d+:\d+ / /\S* r[ow],relatime - \S+ \S+ r[ow]", line), line

    result(new_kernel(), main)


def test_who_may_see_what() -> None:
    kernel = new_kernel()
    victim = start(kernel, sleeping(1000), uid=1000, env={"SECRET": "1"})

    def stranger(process: Process) -> None:
        path = f"/proc/{victim.pid}"
        assert read(process, f"{path}/cmdline") == "test\0"
        assert errno_of(process.open, f"{path}/environ") == EACCES
        assert errno_of(process.fs.readdir, f"{path}/fd") == EACCES
        assert errno_of(process.fs.readlink, f"{path}/cwd") == EACCES
        assert errno_of(process.fs.readdir, f"{path}/root/") == EACCES
        assert errno_of(process.fs.readlink, "/proc/1/exe") == EACCES
        assert errno_of(process.open, f"{path}/cmdline", O_WRONLY) == EACCES

    def owner(process: Process) -> None:
        assert process.read_file(f"/proc/{victim.pid}/environ") == b"SECRET=1\0"

    result(kernel, stranger, uid=2000)
    result(kernel, owner, uid=1000)
    result(kernel, owner, uid=0)


def test_a_process_that_is_gone() -> None:
    def main(process: Process) -> None:
        child = process.fork(sleeping(1))
        fd = process.open(f"/proc/{child.pid}/status")
        process.wait_for(child)
        assert errno_of(process.read, fd) == ESRCH
        assert errno_of(process.fs.stat, f"/proc/{child.pid}") == ENOENT
        assert str(child.pid) not in [entry.name for entry in process.fs.readdir("/proc")]

    result(new_kernel(), main)


@pytest.mark.parametrize("name", ["0", "01", "+1", "1 ", "\u0661", "99999999999999999999", "nothing"])
def test_what_is_no_process(name: str) -> None:
    assert result(new_kernel(), lambda p: errno_of(p.fs.stat, f"/proc/{name}")) == ENOENT


# Of the whole sandbox.


def test_time_and_load() -> None:
    def main(process: Process) -> None:
        process.sleep(90.5)
        assert read(process, "/proc/uptime") == "90.50 181.00\n"
        assert re.fullmatch(r"\d+\.\d\d \d+\.\d\d \d+\.\d\d 1/2 \d+\n", read(process, "/proc/loadavg"))
        stat = read(process, "/proc/stat")
        assert "cpu  0 0 0 18100 0 0 0 0 0 0\n" in stat
        assert f"btime {process.kernel.boot_ns // 10**9}\n" in stat

    result(new_kernel(), main)


def test_memory_is_the_sandboxs_own() -> None:
    def main(process: Process) -> None:
        process.write_file("/tmp/big", bytes(4 << 20))
        found = fields(read(process, "/proc/meminfo"))
        assert found["MemTotal"] == "1048576 kB"
        assert found["Shmem"] == "4096 kB"
        assert found["MemFree"] == f"{1048576 - 4096} kB"

    kernel = new_kernel(limits=Limits(memory_bytes=1 << 30))
    result(kernel, main)


def test_nothing_of_the_host_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    real, name = os.uname(), "name-of-the-host"
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((real.sysname, name, *real[2:])))
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    secrets = {name, real.release, real.version}
    if len(real.nodename) > 8:  # a short one may be a word that is here anyway, as `belljar` and `test` are
        secrets.add(real.nodename)
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    if model:
        secrets.add(model[1])

    def main(process: Process) -> None:
        def look(path: str, depth: int) -> None:
            for entry in process.fs.readdir(path):
                full = f"{path}/{entry.name}"
                if entry.is_dir:
                    if depth < 5:
                        look(full, depth + 1)
                elif entry.kind == 0o100000:
                    text = read(process, full)
                    assert not [secret for secret in secrets if secret and secret in text], full

        look("/proc", 0)

    result(new_kernel(), main)


def test_kernel_settings() -> None:
    def main(process: Process) -> None:
        assert read(process, "/proc/sys/kernel/ostype") == "Linux\n"
        assert read(process, "/proc/sys/kernel/hostname") == "belljar\n"
        assert read(process, "/proc/version").startswith("Linux version ")
        uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n"
        first, second = (read(process, "/proc/sys/kernel/random/uuid") for _ in range(2))
        assert re.fullmatch(uuid, first)
        assert first != second
        boots = {read(process, "/proc/sys/kernel/random/boot_id") for _ in range(2)}
        assert len(boots) == 1
        process.write_file("/proc/sys/kernel/hostname", b"other\n")
        assert process.hostname == "other"
        assert errno_of(process.write_file, "/proc/sys/kernel/hostname", b"x" * 100) == EINVAL
        assert errno_of(process.fs.chmod, "/proc/version", 0o600) == EPERM

    result(new_kernel(), main)
    assert result(new_kernel(), lambda p: errno_of(p.open, "/proc/sys/kernel/hostname", O_WRONLY), uid=1000) == EACCES


def test_cpuinfo_counts_processors() -> None:
    text = result(new_kernel(), lambda process: read(process, "/proc/cpuinfo"))
    assert re.findall(r"^processor\t: (\d+)$", text, re.M) == ["0", "1"]
    assert text.endswith("\n\n")


# THREATS.md FS 2 and 3: nothing of the host behind /proc's links and files.


def test_fs02_root_links_stay_inside() -> None:
    def user(process: Process) -> None:
        for path in ("/proc/self/root", "/proc/self/cwd", f"/proc/{process.pid}/root", "/proc/thread-self/root"):
            listed = [entry.name for entry in process.fs.readdir(path)]
            assert listed == [entry.name for entry in process.fs.readdir("/")]
            assert errno_of(process.fs.stat, f"{path}/etc/passwd") == ENOENT
            assert errno_of(process.fs.stat, f"{path}/../../../../etc/passwd") == ENOENT
        for name in ("root", "cwd", "exe", "fd"):
            assert errno_of(process.fs.readdir, f"/proc/1/{name}") == EACCES

    result(new_kernel(), user, uid=1000)


def test_fs02_a_chroot_is_left_by_no_link() -> None:
    def root(process: Process) -> None:
        process.fs.mkdir("/jail")
        process.fs.mkdir("/jail/proc")
        process.fs.bind("/proc", "/jail/proc")
        process.write_file("/outside", b"x")
        process.fs.chroot("/jail")
        process.fs.chdir("/")
        for path in ("/proc/self/root/outside", "/proc/self/cwd/../outside", "/../outside"):
            assert errno_of(process.fs.stat, path) == ENOENT

    result(new_kernel(), root)


def test_fs03_memory_and_maps_are_not_the_workers() -> None:
    def main(process: Process) -> None:
        assert errno_of(process.open, "/proc/self/mem") == ENOENT
        assert process.read_file("/proc/self/maps") == b""
        assert process.read_file("/proc/self/environ") == b"PATH=/bin\0"
        assert errno_of(process.fs.readlink, "/proc/self/exe") == ENOENT
        assert [entry.name for entry in process.fs.readdir("/proc/self/fd")] == []

    result(new_kernel(), main, uid=1000)
