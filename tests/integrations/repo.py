"""A small repository with a failing test, mounted as an overlay: what every framework's agent is asked to repair."""

from __future__ import annotations

from pathlib import Path

from belljar import Mount

CODE = "def mean(numbers):\n    return sum(numbers) / (len(numbers) + 1)\n"
TEST = (
    "import unittest\n\nfrom stats import mean\n\n\nclass TestMean(unittest.TestCase):\n"
    "    def test_mean(self):\n        self.assertEqual(mean([1, 2, 3]), 2)\n"
)
WRONG = "(len(numbers) + 1)"
RIGHT = "len(numbers)"
RUN_TESTS = "cd /work && python3 -m unittest 2>&1 | tail -n 1"
DIFF = "cd /work && git diff"
EXPECTED = (
    " def mean(numbers):\n-    return sum(numbers) / (len(numbers) + 1)\n+    return sum(numbers) / len(numbers)\n"
)
BASELINE = "cd /work && git init -q && git add . && git -c user.name=t -c user.email=t@t commit -qm base"


def make(directory: Path) -> dict[str, Mount]:
    """The repository, and the mounts that show it at /work."""
    directory.mkdir()
    (directory / "stats.py").write_text(CODE)
    (directory / "test_stats.py").write_text(TEST)
    return {"/work": Mount.overlay(Mount.host(str(directory)))}


def check_untouched(directory: Path) -> None:
    assert {path.name: path.read_text() for path in directory.iterdir()} == {"stats.py": CODE, "test_stats.py": TEST}
