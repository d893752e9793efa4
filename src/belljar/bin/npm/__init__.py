"""npm - install JavaScript packages, run a project's scripts

Usage: npm COMMAND [OPTION]... [ARGUMENT]...

Commands:
  install, i [NAME...]  install a project's dependencies, or packages: NAME[@RANGE|@TAG], a directory, a tarball, a URL
  ci                    install exactly what package-lock.json says
  uninstall, rm NAME... remove packages
  update [NAME...]      the newest versions that package.json allows
  run SCRIPT [-- ARG...], test, start, stop, restart
                        run a script of package.json
  exec, x, npx          run a command of a package, which is fetched if need be
  init [-y]             make a package.json
  ls, outdated, view, explain, prune, pack, version, pkg, config, root, prefix, bin, cache, ping

Packages of JavaScript and WebAssembly only: native addons are neither compiled nor loaded here. Registries are reached
through the network the sandbox was granted; every tarball is checked against its integrity.
"""

from __future__ import annotations

from belljar.bin._kit import utility
from belljar.bin.npm.run import run
from belljar.kernel.process import Process


@utility("npm")
def main(process: Process, args: list[str]) -> int:
    return run(process, args, main.help())
