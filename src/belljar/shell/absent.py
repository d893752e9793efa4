"""Programs that agents often try and that are not installed: one sentence each on what to use instead."""

from __future__ import annotations

from typing import Final

_EDITORS: Final = "there is no full-screen editor; ed, ex and sed edit files, and so does python3"
_TOOLCHAIN: Final = "not in this sandbox; its owner can bring it to all of them: belljar prepare toolchain"
_FETCHED: Final = "not in this sandbox; its owner can make a package of it: belljar package fetch (lua, esbuild, php)"
_COMPILERS: Final = "native programs need the owner's grant (native=); python3, node and awk can run code"
_SERVICES: Final = "services are files in /etc/init (see service --help); start a program in the background with &"
_SESSIONS: Final = "there is no terminal multiplexer; start programs in the background with &, and use jobs, fg and bg"
_PACKAGES: Final = "system packages can't be installed; pip and npm bring Python and JavaScript packages"

_HINTS: Final = {
    **dict.fromkeys(("vim", "nvim", "nano", "emacs", "pico", "joe", "micro"), _EDITORS),
    **dict.fromkeys(
        "cc gcc g++ c++ c99 clang clang++ cpp ld nm ranlib strip objdump objcopy size perl ruby".split(), _TOOLCHAIN
    ),
    **dict.fromkeys(
        ("rustc", "cargo", "go", "gofmt"),
        "its compiler is no WebAssembly program, so it can't run here; the owner can grant a real one (native=, or "
        "tier='native'), or build outside with: belljar wasm build",
    ),
    **dict.fromkeys(("lua", "php", "esbuild", "tsx"), _FETCHED),
    **dict.fromkeys(("tcc", "javac"), _COMPILERS),
    **dict.fromkeys(("java", "Rscript", "ghc", "dotnet", "swift"), _COMPILERS),
    **dict.fromkeys(("as", "cmake", "ninja", "gdb", "strace", "ltrace", "valgrind"), _COMPILERS),
    **dict.fromkeys(("initctl", "rc-service", "crontab", "at"), _SERVICES),
    **dict.fromkeys(("tmux", "screen"), _SESSIONS),
    **dict.fromkeys(("dpkg", "yum", "dnf", "apk", "pacman", "brew", "zypper", "snap", "conda"), _PACKAGES),
    "kubectl": "there is no cluster to reach from here; curl speaks to its API where the network allows it",
    "ssh": "there is no remote shell; curl and git reach web servers where the network allows it",
    "scp": "there is no remote copy; curl reaches web servers where the network allows it",
    "telnet": "use nc",
    "ifconfig": "use ip",
    "locate": "use find or fd",
    "yarn": "use npm",
    "pnpm": "use npm",
    "bun": "use node and npm",
    "deno": "use node and npm",
    "psql": "there is no PostgreSQL client; sqlite3 is here",
    "mysql": "there is no MySQL client; sqlite3 is here",
    "ag": "use rg",
    "ack": "use rg",
}


def hint(name: str) -> str | None:
    """A suggestion for a program that is not installed; None if there is none."""
    return _HINTS.get(name)
