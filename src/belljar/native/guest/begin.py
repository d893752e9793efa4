"""The program that `python3 -c` is given: makes modules of the sources in SOURCES, and runs the one that serves."""

import sys

if sys.version_info < (3, 8):
    sys.stderr.write("belljar needs Python 3.8 or newer here; this is " + sys.version.split()[0] + "\n")
    sys.exit(126)

import base64
import json
import zlib
from importlib.machinery import ModuleSpec


class Sources:
    """Finds our modules; and tells matplotlib, before its pyplot is loaded, who shows figures."""

    modules = json.loads(zlib.decompress(base64.b85decode(SOURCES)))  # noqa: F821 - put before this program

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "matplotlib.pyplot" and "matplotlib" in sys.modules:
            sys.modules["matplotlib"].rcParams["backend"] = "module://_belljar.figures"
        if name in cls.modules:
            return ModuleSpec(name, cls, is_package=name == "_belljar")
        return None

    @staticmethod
    def create_module(spec):
        return None

    @classmethod
    def exec_module(cls, module):
        name = module.__name__
        exec(compile(cls.modules[name], f"<belljar>/{name}.py", "exec"), module.__dict__)


class Last(Sources):
    """Those that are only for an image that has none: asked last."""

    modules = {"cloudpickle": Sources.modules.pop("cloudpickle")}


sys.meta_path.insert(0, Sources)
sys.meta_path.append(Last)

mode, name = sys.argv[1:3]
if mode == "run":
    from _belljar.connect import connect

    connect(name)
else:
    from _belljar.serve import serve

    serve(mode, name)
