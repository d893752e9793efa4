"""asyncio without threads: nobody else wakes the event loop, and names are looked up where it runs."""

import os


def install():
    from asyncio import base_events, selector_events, unix_events

    def make_self_pipe(self):
        self._ssock = self._csock = None
        self._internal_fds += 1

    def close_self_pipe(self):
        self._internal_fds -= 1

    def write_to_self(self):
        """Do nothing: there is no other thread that could wake the loop."""

    loop = selector_events.BaseSelectorEventLoop
    loop._make_self_pipe = make_self_pipe
    loop._close_self_pipe = close_self_pipe
    loop._write_to_self = write_to_self
    base_events.BaseEventLoop.getaddrinfo = getaddrinfo
    base_events.BaseEventLoop.getnameinfo = getnameinfo
    unix_events._ThreadedChildWatcher = ChildWatcher
    unix_events.can_use_pidfd = lambda: False
    # Signals reach the loop's thread by themselves, between two steps of it.
    unix_events._UnixSelectorEventLoop.add_signal_handler = add_signal_handler
    unix_events._UnixSelectorEventLoop.remove_signal_handler = remove_signal_handler


async def getaddrinfo(self, host, port, *, family=0, type=0, proto=0, flags=0):
    import socket

    return socket.getaddrinfo(host, port, family, type, proto, flags)


async def getnameinfo(self, sockaddr, flags=0):
    import socket

    return socket.getnameinfo(sockaddr, flags)


class ChildWatcher:
    """Looks after children now and then: there is no thread to wait for them."""

    def add_child_handler(self, pid, callback, *args):
        self._look(pid, callback, args, 0.001)

    def _look(self, pid, callback, args, delay):
        import asyncio

        try:
            found, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            found, status = pid, 255 << 8
        if found:
            callback(pid, os.waitstatus_to_exitcode(status), *args)
        else:
            longer = min(delay * 1.5, 0.05)
            asyncio.get_running_loop().call_later(delay, self._look, pid, callback, args, longer)


def add_signal_handler(self, sig, callback, *args):
    import signal

    signal.signal(sig, lambda *_: self.call_soon(callback, *args))


def remove_signal_handler(self, sig):
    import signal

    signal.signal(sig, signal.default_int_handler if sig == signal.SIGINT else signal.SIG_DFL)
    return True
