"""The shell's own commands, one function each; `BUILTINS` has them by name."""

from importlib import import_module
from pkgutil import iter_modules

from belljar.shell.builtins.registry import BUILTINS, Builtin

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["BUILTINS", "Builtin"]
