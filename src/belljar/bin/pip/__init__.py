"""pip - install Python packages

Usage: pip COMMAND [OPTION]... [ARGUMENT]...

Commands:
  install NAME...       install packages, from an index, an archive, a directory or a requirements file (-r)
  download NAME...      download packages (-d DIR)
  wheel NAME...         make wheels (-w DIR)
  uninstall NAME...     uninstall packages
  index versions NAME   list the versions that can be installed
  config, cache, hash   settings, what is kept (nothing is), hashes of files
  list, freeze          list installed packages
  show NAME...          show information about installed packages
  check                 verify that installed packages have compatible dependencies

Packages of pure Python only: their wheels, and source archives whose backend (setuptools, hatchling, flit, poetry, pdm)
would only copy files; nothing of theirs is run. The index is reached through the network the sandbox was granted.
"""

from __future__ import annotations

from belljar.abi.install import install_hint
from belljar.bin._kit import utility
from belljar.kernel.process import Process


@utility("pip")
def main(process: Process, args: list[str]) -> int:
    try:  # when it is used: `python3` imports this module too, and mostly without a need for it
        from belljar.bin.pip.run import run
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("packaging", "resolvelib"):
            raise
        process.error(f"{process.name}: Python is not installed on the host; {install_hint('python')}\n")
        return 127
    return run(process, args, main.help())
