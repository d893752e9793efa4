"""From a file to a program: PATH, `#!`, and what execve keeps."""

from errno import E2BIG, EACCES, ELOOP, ENOENT, ENOEXEC, ENOTDIR

import pytest

from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC
from belljar.abi.signals import Signal
from belljar.kernel.kernel import Kernel
from belljar.kernel.loader import load, program_file, search_path
from belljar.kernel.process import IGNORE, Process
from belljar.kernel.status import ExitStatus
from belljar.kernel.vfs.credentials import Credentials
from tests.kernel.rig import errno_of, new_kernel, result, run

SEEN: list[list[str]] = []


def echo(process: Process) -> int:
    SEEN.append(process.argv)
    return 0


def kernel_with_echo() -> Kernel:
    SEEN.clear()
    return new_kernel(programs={"echo": echo})


def script(process: Process, path: str, text: bytes, mode: int = 0o755) -> str:
    process.write_file(path, text)
    process.fs.chmod(path, mode)
    return path


def test_a_command_is_searched_in_path() -> None:
    def main(process: Process) -> None:
        fs = process.fs
        script(process, "/tmp/echo", b"", 0o644)
        assert search_path(process, "echo", "/no:/tmp:/bin") == "/bin/echo"
        assert search_path(process, "./echo", "/bin") == "./echo"
        assert search_path(process, "echo", None) == "/bin/echo"
        assert errno_of(search_path, process, "echo", "/tmp") == EACCES
        assert errno_of(search_path, process, "none", "/bin:/tmp") == ENOENT
        assert errno_of(search_path, process, "bin", "/") == ENOENT  # a directory
        fs.chdir("/bin")
        assert search_path(process, "echo", "/tmp:") == "./echo"
        assert search_path(process, "echo", "") == "./echo"

    result(kernel_with_echo(), main)


def test_what_a_name_means_is_remembered_only_while_it_is_true() -> None:
    """The second search of each kind would find what the first left behind, if that were still believed."""

    def main(process: Process) -> None:
        fs = process.fs
        path = "/opt/a:/opt/b:/bin"

        def where() -> str:
            found = search_path(process, "echo", path)
            assert search_path(process, "echo", path) == found
            assert load(process, found, ["echo"])[0] is load(process, found, ["echo"])[0] is echo
            return found

        assert where() == "/bin/echo"
        fs.mkdir("/opt")
        fs.mkdir("/opt/b")
        script(process, "/opt/b/echo", program_file("echo"))
        assert where() == "/opt/b/echo"
        fs.mkdir("/opt/c")
        script(process, "/opt/c/echo", program_file("echo"))
        fs.symlink("c", "/opt/a")
        assert where() == "/opt/a/echo"
        fs.chmod("/opt/c/echo", 0o644)
        assert where() == "/opt/b/echo"
        assert errno_of(load, process, "/opt/a/echo", ["echo"]) == EACCES
        fs.rename("/opt/b/echo", "/opt/b/else")
        assert where() == "/bin/echo"
        assert errno_of(load, process, "/opt/b/echo", ["echo"]) == ENOENT
        fs.rename("/opt/b/else", "/opt/b/echo")
        assert where() == "/opt/b/echo"
        process.write_file("/opt/b/echo", b"no program")
        assert errno_of(load, process, "/opt/b/echo", ["echo"]) == ENOEXEC
        fs.bind("/bin", "/opt/b")
        assert where() == "/opt/b/echo"
        fs.unmount("/opt/b")
        assert errno_of(load, process, "/opt/b/echo", ["echo"]) == ENOEXEC
        fs.unlink("/opt/b/echo")
        assert where() == "/bin/echo"

        def other_root(child: Process) -> int:
            child.fs.chroot("/opt")
            return int(errno_of(load, child, "/bin/echo", ["echo"]) == ENOENT)

        assert process.wait_for(process.fork(other_root)).code == 1
        fs.chmod("/bin", 0o700)
        assert where() == "/bin/echo"

        def other_user(child: Process) -> int:
            child.fs.credentials = Credentials(1000, 1000)
            return int(errno_of(load, child, "/bin/echo", ["echo"]) == EACCES)

        assert process.wait_for(process.fork(other_user)).code == 1

    result(kernel_with_echo(), main)


def test_a_device_is_remembered_only_while_it_is_there() -> None:
    def main(process: Process) -> None:
        for _ in range(2):
            process.write_file("/dev/null", b"x")
        process.fs.chmod("/dev/null", 0o600)

        def other_user(child: Process) -> int:
            child.fs.credentials = Credentials(1000, 1000)
            return int(errno_of(child.open, "/dev/null") == EACCES)

        assert process.wait_for(process.fork(other_user)).code == 1
        process.fs.unmount("/dev")
        assert errno_of(process.open, "/dev/null") == ENOENT
        process.write_file("/dev/null", b"a file")
        assert process.read_file("/dev/null") == b"a file"

    result(kernel_with_echo(), main)


@pytest.mark.parametrize(
    ("line", "argv"),
    [
        (b"#!/bin/echo\n", ["/bin/echo", "/tmp/s", "x"]),
        (b"#!/bin/echo", ["/bin/echo", "/tmp/s", "x"]),
        (b"#! \t /bin/echo \t a  b \t \n", ["/bin/echo", "a  b", "/tmp/s", "x"]),
        (b"#!/bin/echo -e\nrest", ["/bin/echo", "-e", "/tmp/s", "x"]),
        (b"#!/bin/" + b"/" * 244 + b"echo\n", ["/bin/" + "/" * 244 + "echo", "/tmp/s", "x"]),
    ],
)
def test_a_script_names_its_interpreter(line: bytes, argv: list[str]) -> None:
    def main(process: Process) -> None:
        script(process, "/tmp/s", line)
        assert process.run(["/tmp/s", "x"]) == ExitStatus(0)

    result(kernel_with_echo(), main)
    assert [argv] == SEEN


@pytest.mark.parametrize(
    ("line", "errno"),
    [
        (b"#!\n", ENOEXEC),
        (b"#! \t\n", ENOEXEC),
        (b"", ENOEXEC),
        (b"text\n", ENOEXEC),
        (b"\x7fELF", ENOEXEC),
        (b"#!/bin/echo\r\n", ENOENT),
        (b"#!/bin/echo\va\n", ENOENT),
        (b"#!/bin/none\n", ENOENT),
        (b"#!/bin\n", EACCES),
        (b"#!/bin/echo/x\n", ENOTDIR),
        (b"#!/tmp/plain\n", EACCES),
        (b"#!/tmp/s\n", ELOOP),
        (b"#!/bin/" + b"/" * 245 + b"echo\n", ENOEXEC),
        (program_file("nothing"), ENOEXEC),
    ],
)
def test_what_cannot_run(line: bytes, errno: int) -> None:
    def main(process: Process) -> None:
        script(process, "/tmp/plain", b"#!/bin/echo\n", 0o644)
        script(process, "/tmp/s", line)
        assert errno_of(process.spawn, ["/tmp/s"]) == errno

    result(kernel_with_echo(), main)


def test_interpreters_may_be_scripts_five_deep() -> None:
    def main(process: Process) -> None:
        script(process, "/tmp/s0", b"#!/bin/echo\n")
        for number in range(1, 6):
            script(process, f"/tmp/s{number}", b"#!/tmp/s%d a%d\n" % (number - 1, number))
        assert process.run(["/tmp/s4", "x"]) == ExitStatus(0)
        assert errno_of(process.spawn, ["/tmp/s5", "x"]) == ELOOP

    result(kernel_with_echo(), main)
    assert SEEN == [["/bin/echo", "/tmp/s0", "a1", "/tmp/s1", "a2", "/tmp/s2", "a3", "/tmp/s3", "a4", "/tmp/s4", "x"]]


def test_a_program_may_be_copied_under_another_name() -> None:
    def main(process: Process) -> None:
        script(process, "/tmp/other", process.read_file("/bin/echo"))
        process.run(["/tmp/other", "y"])

    result(kernel_with_echo(), main)
    assert SEEN == [["/tmp/other", "y"]]


def test_arguments_have_a_limit() -> None:
    def main(process: Process) -> None:
        assert errno_of(load, process, "/bin/echo", ["echo", "x" * (9 << 20)]) == E2BIG

    result(kernel_with_echo(), main)


def test_only_who_may_execute_can() -> None:
    kernel = kernel_with_echo()
    result(kernel, lambda process: process.fs.chmod("/bin/echo", 0o700))
    assert result(kernel, lambda process: errno_of(process.spawn, ["/bin/echo"]), uid=1000) == EACCES
    result(kernel, lambda process: process.run(["/bin/echo"]))
    result(kernel, lambda process: process.fs.chmod("/bin/echo", 0o600))
    assert result(kernel, lambda process: errno_of(process.spawn, ["/bin/echo"])) == EACCES  # not even root


def test_what_execve_keeps_and_what_it_resets() -> None:
    def show(process: Process) -> int:
        assert process.argv == ["show", "a"]
        assert process.executable == "/bin/show"
        assert process.env == {"B": "2"}
        assert process.fds.fds() == [0]
        assert process.handlers == {Signal.USR1: IGNORE}
        assert process.blocked == {Signal.HUP}
        assert process.pending == [Signal.HUP]
        assert process.fs.getcwd() == "/tmp"
        return 42

    def main(process: Process) -> int:
        process.open("/dev/null")
        process.open("/dev/null", O_CLOEXEC)
        process.catch(Signal.USR1, IGNORE)
        process.catch(Signal.USR2, lambda _number: None)
        process.block(frozenset({Signal.HUP}))
        process.raise_signal(Signal.HUP)
        process.fs.chdir("/tmp")
        pid = process.pid
        with pytest.raises(SysError):
            process.execute("/bin/none", ["none"])
        assert process.fds.fds() == [0, 1]
        assert pid == process.pid
        process.execute("../bin/show", ["show", "a"], {"B": "2"})

    assert run(new_kernel(programs={"show": show}), main, env={"A": "1"}) == ExitStatus(42)
