"""The module `tools` of a session: the functions that its owner bound."""

import sys
import types
from importlib.machinery import ModuleSpec

bound = {}
"""Functions bound by the session's owner, by name."""


class HostError(Exception):
    """A host function raised: the name of what, and its message."""

    __module__ = "tools"

    def __init__(self, name, message):
        super().__init__(f"{name}: {message}" if message else name)
        self.name = name
        self.message = message


class Tools(types.ModuleType):
    """The module `tools`."""

    HostError = HostError

    def __getattr__(self, name):
        if name == "__all__":
            return sorted(bound)
        if name not in bound:
            raise AttributeError(f"this sandbox has no tool {name!r}; it has: {', '.join(sorted(bound)) or 'none'}")
        return bound[name]


class Finder:
    """The last to be asked for a module: a `tools` of the program's own comes first."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return ModuleSpec(name, Finder) if name == "tools" and path is None and bound else None

    @staticmethod
    def create_module(spec):
        return Tools("tools", "Functions of the sandbox's owner.")

    @staticmethod
    def exec_module(module):
        """Do nothing: there is no code to run."""


def install():
    sys.meta_path.append(Finder)
