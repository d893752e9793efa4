"""Starting, ending and killing server processes."""

import os
import sys

import pytest

from belljar.lockdown.polling_host import readable
from belljar.lockdown.server_process_host import end_server, kill_process, start_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a zygote is Linux's")

TELLS = "import os, socket, sys; socket.socket(fileno=int(sys.argv[1])).send(repr(dict(os.environ)).encode())"


def test_a_server_has_no_environment_and_a_control_socket() -> None:
    process, control = start_server([sys.executable, "-I", "-c", TELLS])
    with control:
        said = control.recv(4096)
    assert end_server(process) == ""
    assert b"PATH" not in said
    assert b"HOME" not in said


def test_the_end_of_its_stderr_says_why_it_ended() -> None:
    process, control = start_server([sys.executable, "-I", "-c", "raise SystemExit('no such thing here')"])
    with control:
        assert control.recv(16) == b""
    assert "no such thing here" in end_server(process)


def test_a_killed_process_is_gone_and_its_pidfd_closed() -> None:
    process, control = start_server([sys.executable, "-I", "-c", "import time; time.sleep(600)"])
    with control:
        pidfd, watched = os.pidfd_open(process.pid), os.pidfd_open(process.pid)
        kill_process(pidfd)
        assert readable(watched, 30)
        os.close(watched)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(pidfd)
    assert end_server(process) == ""
    assert process.returncode == -9
