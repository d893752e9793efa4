"""The ruff, mypy and pytest fences: our settings stop what they should. `make check` runs them on the tree."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

VIOLATIONS = {
    "BLE001": "try:\n    x = 1\nexcept Exception:\n    x = 2\n",
    "E501": f"x = '{'a' * 120}'\n",
    "E722": "try:\n    x = 1\nexcept:\n    x = 2\n",
    "F401": "import errno\n",
    "I001": "import stat\nimport errno\n\nprint(stat, errno)\n",
    "S102": "exec('x = 1')\n",
    "S301": "import pickle\n\npickle.loads(b'')\n",
    "S302": "import marshal\n\nmarshal.loads(b'')\n",
    "S307": "eval('1')\n",
    "T201": "print('x')\n",
    "TID252": "from . import kernel\n",
    "UP006": "from typing import List\n\nx: List[int] = []\n",
}

UNTYPED = "def double(x):\n    return x * 2\n"
MISTYPED = "def double(x: int) -> str:\n    return x * 2\n"


def run(*arguments: str, stdin: str = "", cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", *arguments]
    return subprocess.run(program, cwd=cwd, input=stdin, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("rule", VIOLATIONS)
def test_ruff_stops(rule: str) -> None:
    checked = run("ruff", "check", "--stdin-filename", "src/belljar/abi/example.py", "-", stdin=VIOLATIONS[rule])
    assert checked.returncode == 1
    assert rule in checked.stdout


def test_tests_may_assert_but_not_unpickle() -> None:
    source = "import pickle\n\nassert pickle.loads(b'')\n"
    checked = run("ruff", "check", "--stdin-filename", "tests/abi/test_example.py", "-", stdin=source)
    assert "S301" in checked.stdout
    assert "S101" not in checked.stdout


def test_ruff_stops_foreign_formatting() -> None:
    checked = run("ruff", "format", "--check", "--stdin-filename", "src/belljar/x.py", "-", stdin="x = 'a'\n")
    assert checked.returncode == 1


@pytest.mark.parametrize(("source", "reason"), [(UNTYPED, "no-untyped-def"), (MISTYPED, "return-value")])
def test_mypy_stops(tmp_path: Path, source: str, reason: str) -> None:
    module = tmp_path / "example.py"
    module.write_text(source)
    # A cache of its own: the tree's is a database that a check of the whole tree locks for long.
    settings = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache")]
    checked = run("mypy", *settings, str(module), cwd=tmp_path)
    assert checked.returncode == 1
    assert f"[{reason}]" in checked.stdout


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import warnings\n\ndef test_it():\n    warnings.warn('old', stacklevel=1)\n", "UserWarning: old"),
        ("import pytest\n\n@pytest.mark.quick\ndef test_it():\n    pass\n", "'quick' not found in `markers`"),
    ],
    ids=["warning", "unknown marker"],
)
def test_pytest_stops(tmp_path: Path, source: str, reason: str) -> None:
    module = tmp_path / "test_example.py"
    module.write_text(source)
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    tested = run("pytest", *settings, str(module), cwd=tmp_path)
    assert tested.returncode != 0
    assert reason in tested.stdout + tested.stderr
