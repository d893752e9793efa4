"""pkg - install packages: commands, libraries and services for this sandbox

Usage: pkg COMMAND [OPTION]... [ARGUMENT]...

Commands:
  registry add URL      use a registry; also: registry list, registry remove NAME
  update                get what the registries offer now
  search [WORD...]      look for packages
  info NAME             show what is known of a package
  install NAME[@RANGE]... install packages and what they need: hello, "hello@^1.2", or an archive's path
  remove NAME...        remove packages, and what only they needed
  upgrade [NAME...]     the newest versions that are allowed
  list, files NAME, owns PATH...
                        what is installed, and which files are whose
  verify [NAME...]      compare installed files with what was installed
  pin NAME...           keep a version as it is (pin --off NAME: no longer)
  lock [FILE]           write down exactly what is installed; install --lock FILE has the same
  fetch NAME[@RANGE]... only download, for a later install --offline
  clean                 forget downloaded archives

Packages come from registries that the sandbox's network lets it reach; their catalogs are signed, every archive is
checked. An installation is done whole or not at all. pkg works as root of the sandbox, as sudo does.
"""

from __future__ import annotations

from belljar.abi.install import install_hint
from belljar.bin._kit import utility
from belljar.kernel.process import Process


@utility("pkg", usage_status=2)
def main(process: Process, args: list[str]) -> int:
    try:
        from belljar.bin.pkg.run import run
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "resolvelib":
            raise
        process.error(f"pkg: resolvelib is not installed on the host; {install_hint('packages')}\n")
        return 127
    return run(process, args, main.help())
