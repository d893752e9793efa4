"""Rooms of the test suite, and the rooms whose batteries a change calls for.

A room is a directory of tests/. Tests marked `battery` are left out of `make test`: `.ci/run` runs them for the rooms
that a change since the last landed commit can break, `make test-all` for all rooms.

    python -m tests.rooms --since COMMIT     the rooms, one per line
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
ALL: Final = ("*",)
"""Every room."""

_SANDBOXES: Final = ("api", "cli", "docs", "escape", "reliability", "state", "tiers", "worker")
"""Rooms whose tests use whole sandboxes of the virtual tier."""
_REAL: Final = ("agent", "fuse", "native", "remote", "tiers", "vm")
"""Rooms of the tiers that run real programs."""

CHANGES: Final[dict[str, tuple[str, ...]]] = {
    "src/belljar/abi/": ALL,
    "src/belljar/kernel/": ALL,
    "src/belljar/api/": ALL,
    "src/belljar/__init__.py": ALL,
    "src/belljar/py.typed": ("packaging",),
    "src/belljar/agent/": _REAL,
    "src/belljar/bin/": ("bin", "browser", "contract", "docs", "spec", "tiers"),
    "src/belljar/browser/": ("browser",),
    "src/belljar/cli/": ("cli", "docs", "packaging"),
    "src/belljar/engines/": ("bin", "engines", "fuzz", "integrations", *_SANDBOXES),
    "src/belljar/forking/": ("engines", "forking", *_SANDBOXES),
    "src/belljar/fuse/": (*_REAL, "contract"),
    "src/belljar/image/": ("cli", "image", "state", "store", *_REAL),
    "src/belljar/integrations/": ("docs", "integrations"),
    "src/belljar/libc/": ("bin", "browser", "libc", "shell", "spec"),
    "src/belljar/lockdown/": ("engines", "lockdown", *_SANDBOXES),
    "src/belljar/native/": ("docs", *_REAL),
    "src/belljar/net/": ("api", "bin", "escape", "net", "server", *_REAL),
    "src/belljar/ninep/": ("ninep", *_REAL),
    "src/belljar/owner/": ("engines", "forking", *_SANDBOXES),
    "src/belljar/packages/": ("bin", "cli", "docs", "packages"),
    "src/belljar/regex/": ("bin", "browser", "regex", "shell", "spec"),
    "src/belljar/remote/": ("fuzz", "remote", "server", "tiers"),
    "src/belljar/server/": ("docs", "remote", "server", "tiers"),
    "src/belljar/shell/": ("bin", "browser", "escape", "shell", "spec", "tiers"),
    "src/belljar/store/": ("image", "state", "store", "vm"),
    "src/belljar/vm/": ("docs", *_REAL),
    "src/belljar/worker/": ("engines", "fuzz", *_SANDBOXES),
    "src/belljar/zygote/": ("engines", *_SANDBOXES),
    "benchmarks/": (),
    "demo/": ("docs",),
    "deploy/": ("packaging",),
    "docs/": ("docs",),
    "examples/": ("docs", "integrations"),
    "tools/": ("fences", "packaging"),
    "web/": ("server",),
    ".ci/": ("fences",),
    ".gitignore": (),
    "CHANGELOG.md": (),
    "LICENSE": (),
    "Makefile": ("fences",),
    "README.md": ("docs",),
    "mkdocs.yml": ("docs",),
    "pyproject.toml": ALL,
}
"""Rooms to run for a change, by the longest prefix of the changed path; a change in tests/ is for its own room."""


def rooms() -> list[str]:
    """Names of all rooms."""
    return sorted(path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.rglob("[!_.]*.*")))


def room_of(path: str) -> str | None:
    """The room of a file below tests/; None for what all rooms share."""
    top, _, rest = path.partition("/")
    name, slash, _ = rest.partition("/")
    return name if top == "tests" and slash else None


def affected(path: str) -> tuple[str, ...] | None:
    """The rooms that a change of this file can break. None: the table has no row for it."""
    if path.startswith("tests/"):
        room = room_of(path)
        return ALL if room is None else (room,)
    found = max((prefix for prefix in CHANGES if path.startswith(prefix)), key=len, default=None)
    return None if found is None else CHANGES[found]


def batteries(paths: Iterable[str]) -> list[str]:
    """The rooms whose batteries these changes call for. A path without a row in the table calls for all."""
    found: set[str] = set()
    known = rooms()
    for path in paths:
        wanted = affected(path)
        if wanted is None or wanted == ALL:
            return known
        found.update(wanted)
    return sorted(found.intersection(known))


def changed(since: str) -> Iterator[str]:
    """Paths that differ between a commit and the work tree, both names of what was moved."""
    command = ["git", "diff", "--name-status", "--no-renames", "-z", since]
    fields = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    yield from fields[1::2]


def main() -> int:
    parser = argparse.ArgumentParser(description="Print the rooms whose batteries the changes since a commit call for.")
    parser.add_argument("--since", required=True, metavar="COMMIT")
    arguments = parser.parse_args()
    known = ["git", "cat-file", "-e", f"{arguments.since}^{{commit}}"]
    if subprocess.run(known, cwd=ROOT, capture_output=True, check=False).returncode:
        sys.stderr.write(f"tests.rooms: no commit {arguments.since!r} here: all rooms\n")
        found = rooms()
    else:
        found = batteries(changed(arguments.since))
    sys.stdout.write("".join(f"{room}\n" for room in found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
