"""An image's own Python as the interpreter of a sandbox: `session.py` over pipes, and copies of a prefix by fork.

A prefix waits on a socket. For each run the owner starts a connector, which hands it its five descriptors; the fork
that serves them is the run, and the connector ends as that does.
"""

import array
import os
import resource
import select
import signal
import socket
import sys

from _belljar import tools
from _belljar.connect import DESCRIPTORS, STATUS
from _belljar.session import INPUT, OUTPUT, Closed, Session, reseed


class NativeSession(Session):
    """A session whose runs keep their memory limit by the kernel's: MemoryError, as everywhere."""

    limits = None

    def run(self, message):
        self.limits = message.get("limits")
        return super().run(message)

    def execute(self, body, last):
        if self.limits is None:
            return super().execute(body, last)
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = data_bytes() + self.limits["memory"]
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
        try:
            return super().execute(body, last)
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def data_bytes():
    """Bytes of this process that RLIMIT_DATA counts."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[5]) * resource.getpagesize()


class ForkServer:
    """Copies of this process, each for a connector that asks for one."""

    def __init__(self, name):
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind("\0" + name)
        self.listening.listen(128)
        self.runs = {}
        """Process ids of copies, and the connectors they are for."""

    def park(self):
        """Wait for connectors; comes back in each copy."""
        waking, woken = os.pipe()
        for end in (waking, woken):
            os.set_blocking(end, False)
        handler = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(woken)
        while True:
            waited = [self.listening, waking, INPUT, *self.runs.values()]
            ready, _, _ = select.select(waited, [], [])
            if INPUT in ready and not os.read(INPUT, 4096):
                self.end()
                raise Closed
            if waking in ready:
                os.read(waking, 4096)
                self.reap()
            for pid in [pid for pid, connection in self.runs.items() if connection in ready]:
                kill_group(pid)
            if self.listening in ready and self.accept():
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, handler)
                os.close(waking)
                os.close(woken)
                return

    def accept(self):
        """Make a copy for the next connector; True in the copy."""
        connection, _ = self.listening.accept()
        size = DESCRIPTORS * array.array("i").itemsize
        _, ancillary, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(size))
        given = array.array("i")
        for _, _, data in ancillary:
            given.frombytes(data[: len(data) - len(data) % given.itemsize])
        pid = os.fork() if len(given) == DESCRIPTORS else 0
        if len(given) == DESCRIPTORS and pid == 0:
            self.become_run(connection, given)
            return True
        for fd in given:
            os.close(fd)
        if pid:
            self.runs[pid] = connection
        else:
            connection.close()
        return False

    def become_run(self, connection, given):
        os.setsid()
        self.listening.close()
        connection.close()
        for other in self.runs.values():
            other.close()
        for number, fd in enumerate(given):
            os.dup2(fd, number, inheritable=number < INPUT)
            os.close(fd)
        reseed()

    def reap(self):
        for pid in list(self.runs):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                connection = self.runs.pop(pid)
                try:
                    connection.send(STATUS.pack(status))
                except OSError:
                    pass  # the connector was killed
                connection.close()
                kill_group(pid)

    def end(self):
        for pid in self.runs:
            kill_group(pid)


def kill_group(pid):
    """End a run and what it started."""
    for send in (os.killpg, os.kill):
        try:
            send(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class PrefixSession(NativeSession):
    """A session that, in a copy, keeps the limit of processor time: nobody else knows whose that is."""

    copied = False

    def execute(self, body, last):
        if self.copied and self.limits is not None:
            seconds = self.limits["cpu"]
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, seconds)
            most = int(seconds) + 2
            resource.setrlimit(resource.RLIMIT_CPU, (most, most))
        return super().execute(body, last)


def read(size):
    return os.read(INPUT, size)


def write(data):
    return os.write(OUTPUT, data)


def converse(data, size):
    while data:
        data = data[write(data) :]
    return read(size)


def serve(mode, name):
    """Serve runs until the owner closes descriptor 3."""
    for fd in (INPUT, OUTPUT):
        os.set_inheritable(fd, False)
    sys.argv[:] = [""]
    tools.install()
    if mode == "session":
        NativeSession(read, write, converse, None).serve()
        return
    server = ForkServer(name)

    def park():
        server.park()
        session.copied = True

    session = PrefixSession(read, write, converse, park)
    session.serve()
