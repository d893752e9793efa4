"""Debian's Chromium for tests: this machine's own, or else unpacked into the tests' cache, without root.

Chromium has a new version every week, and Debian keeps only the newest: so its packages are not pinned by digest.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.debian import install_newest

# What a browser in a container needs to start at all, and what keeps it from calling its maker.
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
_LEFT_OUT = frozenset({"libc6", "libc-bin", "libllvm15", "libz3-4", "libgl1-mesa-dri", "adwaita-icon-theme", "systemd"})
"""The C library goes with the loader, which is the host's; the others are large, and a browser without a screen does
without them."""


def chromium() -> Path:
    """The browser's executable."""
    found = shutil.which("chromium")
    if found:
        return Path(found)
    needed = ["chromium", "fonts-liberation"]
    return install_newest("chromium", needed, _LEFT_OUT, _wanted, _write_launcher) / "start"


def _wanted(name: str) -> str | None:
    """Libraries, the browser's own files, and fonts."""
    name = name.removeprefix("./")
    if name.startswith("lib/"):
        name = f"usr/{name}"
    wanted = ("usr/lib/chromium/", "usr/lib/x86_64-linux-gnu/", "usr/lib/aarch64-linux-gnu/", "usr/share/fonts/")
    return name if name.startswith(wanted) else None


def _write_launcher(directory: Path) -> None:
    """A script that has this browser, and nothing else, find these libraries and fonts."""
    fonts = '<fontconfig><dir prefix="relative">usr/share/fonts</dir></fontconfig>'
    (directory / "fonts.conf").write_text(fonts)
    found = [*directory.glob("usr/lib/*/*.so*"), *directory.glob("usr/lib/*/pulseaudio/*.so*")]
    libraries = sorted({str(path.parent.relative_to(directory)) for path in found})
    script = directory / "start"
    script.write_text(
        "#!/bin/sh\n"
        'here=$(dirname "$(readlink -f "$0")")\n'
        f'export LD_LIBRARY_PATH="{":".join(f"$here/{each}" for each in libraries)}"\n'
        'export FONTCONFIG_FILE="$here/fonts.conf"\n'
        'exec "$here/usr/lib/chromium/chromium" "$@"\n'
    )
    script.chmod(0o755)


if __name__ == "__main__":
    chromium()  # ahead, by `make prepared`: it takes minutes
