"""apt - say which packages are here already, and which other tools can bring

Usage: apt install PACKAGE...
       apt update | upgrade | list | search | show | remove ...

System packages can't be installed in a sandbox. What many of them contain is there from the start; pip and npm bring
Python and JavaScript packages.
"""

from __future__ import annotations

import re

from belljar.bin._kit import UsageError, utility
from belljar.kernel.process import Process

_PROGRAMS = {
    "bash": "bash", "bsdmainutils": "hexdump", "bsdextrautils": "column", "bzip2": "bzip2", "coreutils": "ls",
    "curl": "curl", "diffutils": "diff", "dnsutils": "dig", "bind9-dnsutils": "dig", "fd-find": "fd", "file": "file",
    "findutils": "find", "gawk": "gawk", "gettext-base": "envsubst", "git": "git", "grep": "grep", "gzip": "gzip",
    "iproute2": "ip", "jq": "jq", "less": "less", "libxml2-utils": "xmllint", "lsof": "lsof", "make": "make",
    "mawk": "mawk", "moreutils": "sponge", "net-tools": "netstat", "netcat": "nc", "netcat-openbsd": "nc",
    "nodejs": "node", "npm": "npm", "openssl": "openssl", "patch": "patch", "procps": "ps", "psmisc": "pstree",
    "pv": "pv", "python3": "python3", "python3-pip": "pip", "python-is-python3": "python3", "rename": "rename",
    "ripgrep": "rg", "rsync": "rsync", "sed": "sed", "sqlite3": "sqlite3", "sudo": "sudo", "tar": "tar", "tree": "tree",
    "unzip": "unzip", "util-linux": "flock", "uuid-runtime": "uuidgen", "wget": "wget", "xxd": "xxd",
    "xz-utils": "xz", "yq": "yq", "zip": "zip", "zstd": "zstd", "bat": "bat", "parallel": "parallel", "ed": "ed",
    "vim": "ex", "vim-tiny": "ex", "bc": "bc", "dc": "dc", "cpio": "cpio", "dos2unix": "dos2unix",
}  # fmt: skip
"""Debian's packages by a program of theirs that is here, if not called like them."""
_DONE = ("update", "upgrade", "full-upgrade", "dist-upgrade", "autoremove", "clean", "autoclean", "check")


@utility("apt")
def main(process: Process, args: list[str]) -> int:
    return run(process, args)


def run(process: Process, args: list[str]) -> int:
    """Run apt or apt-get."""
    words = [arg for arg in args if not arg.startswith("-")]
    if "--help" in args or not words:
        process.stdout.write(main.help().encode())
        return 0
    command, *names = words
    if command in _DONE:
        process.print("All packages are up to date.")
        return 0
    if command in ("install", "reinstall"):
        return _install(process, names)
    if command in ("list", "search", "show", "policy", "remove", "purge", "download", "source", "build-dep"):
        process.warn(f"there is no package database here; {process.name} install PACKAGE says what is there")
        return 100
    raise UsageError(f"Invalid operation {command}", hint=False)


def _install(process: Process, names: list[str]) -> int:
    missing = []
    for name in names:
        plain = re.split(r"[=/:]", name)[0]
        program = _PROGRAMS.get(plain, plain)
        if process.kernel.programs(program) is not None:
            process.print(f"{plain} is already here ({program}).")
        else:
            missing.append(plain)
    for name in missing:
        process.warn(f"{name}: system packages can't be installed in this sandbox{_instead(name)}")
    return 100 if missing else 0


def _instead(name: str) -> str:
    """The tool that may bring a package, by the shape of its name."""
    if match := re.fullmatch(r"python3?-(.+)", name):
        return f"; try: pip install {match[1]}"
    if match := re.fullmatch(r"node-(.+)", name):
        return f"; try: npm install {match[1]}"
    if re.search(r"-dev$|^lib|^build-essential$|^gcc|^g\+\+|^clang", name):
        return ", and native code can't be built; pip and npm bring packages that need none"
    return "; pip and npm bring Python and JavaScript packages"
