"""Processes for `os`: who we are, signals, children, and the end. There is no fork: the kernel starts programs."""

import os
import sys

from _belljar import hostcalls
from _belljar.files import absolute, encoded, identity
from _belljar.native import native
from _belljar.system import MACHINE, OSRELEASE, OSTYPE, VERSION

WNOHANG, WUNTRACED, WCONTINUED = 1, 2, 8
P_WAIT, P_NOWAIT, P_NOWAITO = 0, 1, 1
STATUSES = {
    "WIFEXITED": lambda status: not status & 0x7F,
    "WEXITSTATUS": lambda status: status >> 8 & 0xFF,
    "WIFSIGNALED": lambda status: bool(status & 0x7F),
    "WTERMSIG": lambda status: status & 0x7F,
    "WIFSTOPPED": lambda status: False,
    "WSTOPSIG": lambda status: 0,
    "WIFCONTINUED": lambda status: False,
    "WCOREDUMP": lambda status: False,
}
"""The functions of `os` that decode a child's wait status."""
variables = {}
"""The environment that children are given: os.environ, and what os.putenv said besides."""


def putenv(name, value, /):
    name, value = encoded(name), encoded(value)
    if b"=" in name:
        raise ValueError("illegal environment variable name")
    native.putenv(name, value)
    variables[name] = value


def unsetenv(name, /):
    name = encoded(name)
    native.unsetenv(name)
    variables.pop(name, None)


def _clearenv():
    native._clearenv()
    variables.clear()


def environment(env=None):
    """An environment as the kernel takes it: that of this process, or another. ValueError."""
    if env is None:
        return [key + b"=" + value for key, value in variables.items()]
    entries = []
    for key, value in zip(list(env.keys()), list(env.values())):
        key, value = encoded(key), encoded(value)
        if b"=" in key[1:]:
            raise ValueError("illegal environment variable name")
        entries.append(key + b"=" + value)
    return entries


def getpid():
    return identity["pid"]


def getppid():
    return identity["ppid"]


def getuid():
    return identity["uid"]


def getgid():
    return identity["gid"]


def getgroups():
    return [identity["gid"]]


def getpgid(pid):
    return hostcalls.call("ids")[0][2]


def getpgrp():
    return hostcalls.call("ids")[0][2]


def getsid(pid):
    return hostcalls.call("ids")[0][3]


def getlogin():
    return os.environ.get("LOGNAME") or os.environ.get("USER") or "agent"


def kill(pid, signal):
    hostcalls.call("kill", pid, int(signal))


def killpg(pgid, signal):
    hostcalls.call("kill", -pgid, int(signal))


def waitpid(pid, options):
    found, code, signal = hostcalls.call("wait", pid, options)
    return found, (code << 8 | signal if found else 0)


def wait():
    return waitpid(-1, 0)


def waitstatus_to_exitcode(status):
    if status & 0x7F:
        return -(status & 0x7F)
    return status >> 8


def system(command):
    sys.stdout.flush()
    argv = [b"sh", b"-c", encoded(command)]
    (pid,) = hostcalls.call("spawn", b"/bin/sh", argv, environment(), native.getcwdb(), [], [], 0)
    return waitpid(pid, 0)[1]


def uname():
    (host,) = hostcalls.call("hostname")
    return os.uname_result((OSTYPE, os.fsdecode(host), OSRELEASE, VERSION, MACHINE))


def _words(args, name):
    if not isinstance(args, (list, tuple)):
        raise TypeError(f"{name}() arg 2 must be a tuple or list")
    if not args:
        raise ValueError(f"{name}() arg 2 must not be empty")
    words = [encoded(word) for word in args]
    if not words[0]:
        raise ValueError(f"{name}() arg 2 first element cannot be empty")
    return words


def _exec(path, argv, env=None):
    """Emulate execve: run the program as a child, then exit with its status."""
    sys.stdout.flush()
    sys.stderr.flush()
    variables = environment(env)
    (pid,) = hostcalls.call("spawn", absolute(path), argv, variables, native.getcwdb(), [], [], 0, names=(path,))
    _, code, signal = hostcalls.call("wait", pid, 0)
    hostcalls.leave(code, signal)


def execv(path, args, /):
    _exec(path, _words(args, "execv"))


def execve(path, args, env):
    _exec(path, _words(args, "execve"), env)


def _spawn(mode, path, argv, env):
    if mode not in (P_WAIT, P_NOWAIT):
        raise ValueError("Invalid mode value for spawn")
    sys.stdout.flush()
    try:
        (pid,) = hostcalls.call("spawn", path, argv, environment(env), native.getcwdb(), [], [], 0)
    except OSError:
        return (
            127
            if mode == P_WAIT
            else hostcalls.call("spawn", b"/bin/sh", [b"sh", b"-c", b"exit 127"], [], b"/", [], [], 0)[0]
        )
    return pid if mode == P_NOWAIT else waitstatus_to_exitcode(waitpid(pid, 0)[1])


def spawnv(mode, file, args):
    return _spawn(mode, absolute(file), _words(args, "spawnv"), None)


def spawnve(mode, file, args, env):
    return _spawn(mode, absolute(file), _words(args, "spawnve"), env)


def spawnvp(mode, file, args):
    return _spawn(mode, encoded(file), _words(args, "spawnvp"), None)


def spawnvpe(mode, file, args, env):
    return _spawn(mode, encoded(file), _words(args, "spawnvpe"), env)


def spawnl(mode, file, *args):
    return spawnv(mode, file, args)


def spawnle(mode, file, *args):
    return spawnve(mode, file, args[:-1], args[-1])


def spawnlp(mode, file, *args):
    return spawnvp(mode, file, args)


def spawnlpe(mode, file, *args):
    return spawnvpe(mode, file, args[:-1], args[-1])
