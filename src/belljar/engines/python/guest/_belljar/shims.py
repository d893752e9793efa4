"""Puts what WASI's C library lacks of a Unix into `os` and `posix`, and into the modules that look for it there."""

import os
import posix
import sys

from _belljar import clocks, descriptors, directories, files, processes, signals
from _belljar.native import native

_NAMES = {
    files: "chdir fchdir stat lstat fstat access chmod fchmod lchmod chown fchown lchown utime mkdir mkfifo umask "
    "statvfs",
    directories: "scandir listdir",
    descriptors: "pipe pipe2 dup dup2 get_inheritable set_inheritable get_terminal_size isatty sysconf ttyname ptsname "
    "openpty tcgetpgrp tcsetpgrp ctermid cpu_count sched_getaffinity",
    processes: "getpid getppid getuid getgid getgroups getpgid getpgrp getsid getlogin kill killpg waitpid wait "
    "waitstatus_to_exitcode system uname execv execve putenv unsetenv",
}
_FRESH = 2
"""Seconds within which a source may change without a sign in its .pyc file."""
_FORKING = ("fork", "fork1", "forkpty")
_SPAWNING = "spawnv spawnve spawnvp spawnvpe spawnl spawnle spawnlp spawnlpe"


def install():
    made = {name: getattr(module, name) for module, names in _NAMES.items() for name in names.split()}
    made["open"], made["DirEntry"] = files.open_, directories.DirEntry
    made["geteuid"], made["getegid"] = processes.getuid, processes.getgid
    made |= processes.STATUSES
    if hasattr(native, "_clearenv"):
        made["_clearenv"] = processes._clearenv
    for name in "WNOHANG WUNTRACED WCONTINUED".split():
        made[name] = getattr(processes, name)
    made.setdefault("O_CLOEXEC", descriptors.O_CLOEXEC)
    made["O_NOCTTY"] = getattr(native, "O_NOCTTY", 0)
    made["process_cpu_count"] = descriptors.cpu_count
    for name, thing in made.items():
        if callable(thing):
            thing.__module__ = "posix"
            thing.__doc__ = thing.__doc__ or getattr(getattr(native, name, None), "__doc__", None)
        setattr(os, name, thing)
        setattr(posix, name, thing)
    for name in f"{_SPAWNING} P_WAIT P_NOWAIT P_NOWAITO".split():
        setattr(os, name, getattr(processes, name))
    os.supports_dir_fd.update({os.stat, os.chmod, os.chown, os.mkdir, os.mkfifo, os.utime, os.access})
    os.supports_follow_symlinks.update({os.stat, os.chmod, os.chown, os.utime})
    os.supports_fd.update({os.stat, os.chmod, os.chown, os.utime, os.scandir, os.listdir, os.statvfs})
    clocks.install()
    _complete_shutil()
    _explain_fork()
    _keep_fresh_sources_uncompiled()
    signals.install()
    _load_subprocess()


def _keep_fresh_sources_uncompiled():
    """Write no .pyc file of a source that was changed just now.

    It holds the source's time in whole seconds: a program is edited and run twice within one here, and would be taken
    for the first version if its size stayed the same.
    """
    import time
    from importlib.machinery import SourceFileLoader

    cache = SourceFileLoader._cache_bytecode

    def _cache_bytecode(self, source_path, bytecode_path, data):
        if time.time() - os.stat(source_path).st_mtime > _FRESH:
            cache(self, source_path, bytecode_path, data)

    SourceFileLoader._cache_bytecode = _cache_bytecode


def _complete_shutil():
    """Add shutil.disk_usage, left out when shutil was imported without os.statvfs."""
    import collections
    import shutil

    usage = collections.namedtuple("usage", "total used free")
    usage.__module__ = "shutil"

    def disk_usage(path):
        found = os.statvfs(path)
        total, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
        return usage(total, (found.f_blocks - found.f_bfree) * found.f_frsize, free)

    shutil.disk_usage = disk_usage
    shutil.__all__.append("disk_usage")
    shutil._USE_CP_SENDFILE = False


def _explain_fork():
    """Have `os.fork` say why it is not there. `hasattr` is False as before."""

    def __getattr__(name):
        why = ": WebAssembly has none here; subprocess runs programs side by side" if name in _FORKING else ""
        raise AttributeError(f"module 'os' has no attribute {name!r}{why}", name=name, obj=os)

    os.__getattr__ = __getattr__


def _load_subprocess():
    """The standard module, which asks once, when it is loaded, whether the platform has processes."""
    old = sys.modules.pop("subprocess", None)
    platform, sys.platform = sys.platform, "linux"
    try:
        import subprocess
    finally:
        sys.platform = platform
    subprocess._USE_POSIX_SPAWN = subprocess._USE_VFORK = False
    for module in list(sys.modules.values()):
        if old is not None and getattr(module, "subprocess", None) is old:
            module.subprocess = subprocess
