"""pandas where numpy's default integer is wider than an index (see `engines/owner/python_integers.py`)."""

import importlib.util
import sys

_MANAGERS = "pandas.core.internals.managers"


class _Importer:
    """Finds and loads the module that holds a frame's columns, and corrects it; only that one."""

    def find_spec(self, name, path=None, target=None):
        if name != _MANAGERS:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        self.loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        correct(module)


def correct(managers):
    def _insert_update_blklocs_and_blknos(self, loc):
        """Note a new column. pandas would append a default integer to the indices, which makes them wider."""
        self._blklocs, self._blknos = managers.libinternals.update_blklocs_and_blknos(
            self.blklocs, self.blknos, loc, len(self.blocks)
        )

    managers.BlockManager._insert_update_blklocs_and_blknos = _insert_update_blklocs_and_blknos


def install():
    """Before pandas is imported."""
    sys.meta_path.insert(0, _Importer())
