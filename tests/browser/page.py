"""The built page that the tests of this folder share: made once for each state of the sources."""

from __future__ import annotations

import fcntl
import hashlib
from pathlib import Path

from belljar.browser import build_host
from belljar.browser.build_host import build, guest_modules, sources

ROOT = Path(__file__).parent.parent.parent


def built_page() -> Path:
    """The directory of the page, as the sources are now."""
    place = ROOT / "build" / "pages"
    place.mkdir(parents=True, exist_ok=True)
    page = Path(build_host.__file__).parent / "page"
    digest = hashlib.sha256()
    engines = ROOT / "src/belljar/engines"
    scripts = [path for each in ("js", "quickjs") for path in sorted((engines / each / "runtime").rglob("*.js"))]
    builders = sorted(page.parent.glob("*_host.py"))
    for path in [*(path for _, path in (*sources(), *guest_modules())), *sorted(page.iterdir()), *builders, *scripts]:
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    directory = place / digest.hexdigest()[:16]
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            build(directory, compress=False)
    return directory


if __name__ == "__main__":
    built_page()  # ahead, by `make prepared`: it takes a minute
