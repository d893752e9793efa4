"""Makes a package, imports it, reloads it, runs it as a program."""
import importlib, os, subprocess, sys

os.makedirs("pkg/sub")
open("pkg/__init__.py", "w").write("from .core import VALUE\n__all__ = ['VALUE']\n")
open("pkg/core.py", "w").write("VALUE = 1\n")
open("pkg/sub/__init__.py", "w").write("from .. import core\nname = __name__\n")
open("pkg/__main__.py", "w").write("import sys\nprint('main', __name__, sys.argv[1:])\n")
sys.path.insert(0, os.getcwd())
import pkg
from pkg.sub import core, name

print(pkg.VALUE, core is sys.modules["pkg.core"], name)
open("pkg/core.py", "w").write("VALUE = 22\n")
importlib.invalidate_caches()
importlib.reload(core)
print(core.VALUE, pkg.VALUE)
print(subprocess.run([sys.executable, "-m", "pkg", "x"], capture_output=True, text=True).stdout, end="")
try:
    import no_such_module
except ModuleNotFoundError as error:
    print(error)
spec = importlib.util.spec_from_file_location("loose", "pkg/core.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.VALUE, importlib.util.find_spec("json").name)
