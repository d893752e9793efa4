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
        assert search_path(fs, "echo", "/no:/tmp:/bin") == "/bin/echo"
        assert search_path(fs, "./echo", "/bin") == "./echo"
        assert search_path(fs, "echo", None) == "/bin/echo"
        assert errno_of(search_path, fs, "echo", "/tmp") == EACCES
        assert errno_of(search_path, fs, "none", "/bin:/tmp") == ENOENT
        assert errno_of(search_path, fs, "bin", "/") == ENOENT  # a directory
        fs.chdir("/bin")
        assert search_path(fs, "echo", "/tmp:") == "./echo"
        assert search_path(fs, "echo", "") == "./echo"

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
