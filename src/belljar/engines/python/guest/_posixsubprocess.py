"""fork_exec for a sandbox: the kernel starts the program, nothing is forked here."""

import os

from _belljar import hostcalls, processes
from _belljar.protocol import CLOSE_OTHERS, NEW_GROUP, NEW_SESSION


def fork_exec(
    args, executables, close_fds, pass_fds, cwd, env, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite,
    errpipe_read, errpipe_write, restore_signals, call_setsid, pgid_to_set, gid, groups, uid, umask, preexec_fn,
    *unused,
):  # fmt: skip
    if preexec_fn is not None:
        raise RuntimeError("preexec_fn: there is no fork in this sandbox's Python")
    targets, sources = [], []
    for target, source in ((0, p2cread), (1, c2pwrite), (2, errwrite)):
        if source != -1:
            targets.append(target)
            sources.append(source)
    for fd in pass_fds:
        if fd != errpipe_write and fd > 2:
            targets.append(fd)
            sources.append(fd)
    if env is None:
        env = processes.environment()
    flags = (CLOSE_OTHERS if close_fds else 0) | (NEW_SESSION if call_setsid else 0)
    flags |= NEW_GROUP if pgid_to_set == 0 else 0
    directory = os.fsencode(cwd) if cwd is not None else os.getcwdb()
    argv = [os.fsencode(word) for word in args]
    if any(b"\0" in word for word in (*argv, *env, *executables)):
        raise ValueError("embedded null byte")
    if umask is None or umask < 0:
        return _start(argv, executables, list(env), directory, cwd, targets, sources, flags, errpipe_write)
    # A child begins with its parent's.
    before = os.umask(umask)
    try:
        return _start(argv, executables, list(env), directory, cwd, targets, sources, flags, errpipe_write)
    finally:
        os.umask(before)


def _start(argv, executables, env, directory, cwd, targets, sources, flags, errpipe_write):
    failure = 2
    for path in executables:
        try:
            return hostcalls.call("spawn", os.fsencode(path), argv, env, directory, targets, sources, flags)[0]
        except OSError as error:
            number = hostcalls.TO_LINUX.get(error.errno, 5)
            if cwd is not None and not os.path.isdir(cwd):
                os.write(errpipe_write, b"OSError:%x:noexec:chdir" % error.errno)
                return _gone()
            if number not in (2, 20) or failure == 2:
                failure = number
    os.write(errpipe_write, b"OSError:%x:" % hostcalls.FROM_LINUX[failure])
    return _gone()


def _gone():
    """A child that has ended already: what subprocess waits for when a program could not be started."""
    argv = [b"false"]
    return hostcalls.call("spawn", b"/usr/bin/false", argv, [], b"/", [], [], CLOSE_OTHERS)[0]
