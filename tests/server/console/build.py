"""The page, built as `make web` builds it; one test process at a time."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
NODE_MODULES = ROOT / "web/node_modules"


def build_page() -> None:
    """Nothing if it is up to date."""
    with open(ROOT / "web/package-lock.json") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run([sys.executable, ROOT / "tools/build_web.py"], check=True, stdout=subprocess.DEVNULL)
