"""Runs a quick set of tests on each other supported Python that is installed here (`make versions`).

Each gets an environment of its own in .venvs/, kept from run to run, and an eighth of the specs, each another one; with
BELLJAR_WHOLE=1 all of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = "python,js,net,git,fs,zstd"
SHARES = 8
TOOLS = ("pytest>=9.0", "pytest-xdist>=3.6", "hypothesis>=6.150", "cryptography>=45", "dnspython>=2.7", "h11", "h2")
TESTS = (
    "tests/abi",
    "tests/kernel",
    "tests/shell",
    "tests/bin/jq",
    "tests/bin/awk",
    "tests/worker/test_incidents.py",
    "tests/api/test_stdin.py",
    "tests/api/test_sandbox.py",
    "tests/api/test_async.py",
    "tests/api/test_fork.py",
    "tests/api/test_fork_interpreters.py",
    "tests/engines/test_python_runs.py",
    "tests/engines/js/test_runs.py",
)


def main() -> int:
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {version: path for version in SUPPORTED if version != ours for path in interpreters(version)}
    failed = []
    for number, (version, path) in enumerate(found.items()):
        python = environment(version, path)
        print(f"== Python {version} ({path})", flush=True)
        subprocess.run([python, "demo/demo.py"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        pytest = [python, "-m", "pytest", "-q", "-n", os.environ.get("JOBS", "2"), "-m", "not slow"]
        if subprocess.run([*pytest, *existing(), *specs(number)], cwd=ROOT, check=False).returncode:
            failed.append(version)
    missing = [version for version in SUPPORTED if version not in found and version != ours]
    print(f"versions: {', '.join(found) or 'none'} tested; not installed here: {', '.join(missing) or 'none'}")
    if failed:
        print(f"versions: failed on {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def existing() -> list[str]:
    gone = [test for test in TESTS if not (ROOT / test).exists()]
    if gone:
        raise SystemExit(f"tools/versions.py names tests that are gone: {', '.join(gone)}")
    return list(TESTS)


def specs(number: int) -> list[str]:
    """The specs for one of the versions."""
    found = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests/spec").rglob("*.spec"))
    return found if os.environ.get("BELLJAR_WHOLE") else found[number % SHARES :: SHARES]


def interpreters(version: str) -> Iterator[str]:
    """The interpreter of a version, if there is one that works: on PATH, or of pyenv."""
    pyenv = sorted(Path(os.path.expanduser("~/.pyenv/versions")).glob(f"{version}.*/bin/python"))
    for candidate in filter(None, (shutil.which(f"python{version}"), *map(str, reversed(pyenv)))):
        probe = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
        ran = subprocess.run([candidate, "-c", probe], capture_output=True, text=True, check=False)
        if ran.stdout.strip() == version:
            yield candidate
            return


def environment(version: str, interpreter: str) -> str:
    """The Python of an environment with belljar in it, brought up to date when pyproject.toml changes."""
    home = ROOT / ".venvs" / version
    python, installed = home / "bin" / "python", home / ".installed"
    wanted = (ROOT / "pyproject.toml").read_text()
    if not installed.exists() or installed.read_text() != wanted:
        subprocess.run([interpreter, "-m", "venv", str(home)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--editable", f".[{EXTRAS}]", *TOOLS], cwd=ROOT, check=True)
        installed.write_text(wanted)
    return str(python)


if __name__ == "__main__":
    sys.exit(main())
