"""The connector of a run: gives its descriptors to the prefix, and ends as the copy does that serves them."""

import array
import os
import signal
import socket
import struct

DESCRIPTORS = 5
STATUS = struct.Struct("<i")
"""A status as of `os.wait`."""


def connect(name):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0" + name)
        given = array.array("i", range(DESCRIPTORS))
        connection.sendmsg([b"!"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, given)])
        said = connection.recv(STATUS.size)
    status = STATUS.unpack(said)[0] if len(said) == STATUS.size else signal.SIGKILL
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))
