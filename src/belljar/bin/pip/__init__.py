"""pip - install Python packages

Usage: pip COMMAND [OPTION]... [ARGUMENT]...

Commands:
  install NAME...       install packages, from an index, an archive, a directory or a requirements file (-r)
  download NAME...      download packages (-d DIR)
  uninstall NAME...     uninstall packages
  list, freeze          list installed packages
  show NAME...          show information about installed packages
  check                 verify that installed packages have compatible dependencies

Packages of pure Python only: their wheels, and source archives whose backend (setuptools, hatchling, flit, poetry, pdm)
would only copy files; nothing of theirs is run. The index is reached through the network the sandbox was granted.
"""

from __future__ import annotations

from collections.abc import Callable

from belljar.bin._kit import utility
from belljar.kernel.process import Process

run: Callable[[Process, list[str], str], int] | None
try:
    from belljar.bin.pip.run import run
except ImportError as error:
    if (error.name or "").partition(".")[0] not in ("packaging", "resolvelib"):
        raise
    run = None


@utility("pip")
def main(process: Process, args: list[str]) -> int:
    if run is None:
        process.error(f"{process.name}: Python is not installed on the host: pip install 'belljar[python]'\n")
        return 127
    return run(process, args, str(__doc__))
