"""The module `tools`: functions of the sandbox's owner, called by files of /mnt/tools (see worker/toolfs.py)."""

import asyncio
import os
import sys
import types
from importlib.machinery import ModuleSpec

from _belljar import hostcalls
from _belljar.protocol import AT_FDCWD
from _belljar.values import dumps, loads

DIRECTORY = "/mnt/tools"
O_RDWR, O_CLOEXEC = 0o2, 0o2000000
CHUNK = 1 << 20
bound = {}
"""Functions bound by a session's owner, which count calls and bytes."""


class HostError(Exception):
    """A host function raised: the name of what, and its message."""

    __module__ = "tools"

    def __init__(self, name, message):
        super().__init__(f"{name}: {message}" if message else name)
        self.name = name
        self.message = message


def names():
    """The functions there are, by the names they have in Python."""
    try:
        return {name.replace("-", "_"): name for name in os.listdir(DIRECTORY)}
    except OSError:
        return {}


def call(tool, args, kwargs):
    """Call it, wait, and give what it returned. HostError; NotPlain for what can't cross."""
    line = f'{{"args":{dumps(args, f"{tool}() args")},"kwargs":{dumps(kwargs, f"{tool}() kwargs")}}}\n'.encode("ascii")
    fd = hostcalls.call("open", AT_FDCWD, f"{DIRECTORY}/{tool}".encode(), O_RDWR | O_CLOEXEC, 0)[0]
    try:
        while line:
            line = line[hostcalls.call("write", fd, line[:CHUNK])[0] :]
        parts = [b""]
        while not parts[-1].endswith(b"\n"):
            parts.append(hostcalls.call("read", fd, CHUNK)[0])
    finally:
        os.close(fd)
    answer = loads(b"".join(parts))
    if "error" in answer:
        raise HostError(answer["error"]["name"], answer["error"]["message"])
    return answer["value"]


def function(name, tool):
    async def later(args, kwargs):
        return call(tool, args, kwargs)

    def invoke(*args, **kwargs):
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return call(tool, args, kwargs)
        return later(args, kwargs)

    invoke.__name__ = invoke.__qualname__ = name
    invoke.__module__ = "tools"
    invoke.__doc__ = f"{name}(...): a function of the host. In async code it gives an awaitable."
    return invoke


class Tools(types.ModuleType):
    """The module `tools`."""

    HostError = HostError

    def __getattr__(self, name):
        found = names()
        if name == "__all__":
            return sorted(found)
        if name not in found:
            raise AttributeError(f"this sandbox has no tool {name!r}; it has: {', '.join(sorted(found)) or 'none'}")
        return bound.get(name) or function(name, found[name])

    def __dir__(self):
        return [*sorted(names()), "HostError"]


class Finder:
    """The last to be asked for a module: a `tools` of the program's own comes first."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "tools" and path is None and names():
            return ModuleSpec(name, Finder, origin="the sandbox's owner")
        return None

    @staticmethod
    def create_module(spec):
        return Tools("tools", "Functions of the sandbox's owner.")

    @staticmethod
    def exec_module(module):
        """Do nothing: there is no code to run."""


def install():
    sys.meta_path.append(Finder)
