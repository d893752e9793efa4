"""What the agents of these examples are asked to do: repair a repository that they can't touch.

It has a failing test. A sandbox shows it at /work as an overlay: what an agent changes stays in the sandbox, until you
take its diff.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from belljar import Mount

FILES = {
    "stats.py": "def mean(numbers):\n    return sum(numbers) / (len(numbers) + 1)\n",
    "test_stats.py": "import unittest\n\nfrom stats import mean\n\n\nclass TestMean(unittest.TestCase):\n"
    "    def test_mean(self):\n        self.assertEqual(mean([1, 2, 3]), 2)\n",
}
WRONG, RIGHT = "(len(numbers) + 1)", "len(numbers)"
TASK = "A test of the repository in /work fails. Repair it."
BEGIN = "cd /work && git init -q && git add . && git -c user.name=me -c user.email=me@example.com commit -qm base"
TEST = "cd /work && python3 -m unittest 2>&1 | tail -n 1"
DIFF = "cd /work && git diff"


@contextmanager
def repository() -> Iterator[Path]:
    """A directory of this machine; afterwards it must be as it was."""
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        for name, text in FILES.items():
            (directory / name).write_text(text)
        yield directory
        assert {path.name: path.read_text() for path in directory.iterdir()} == FILES
        print("on this machine nothing has changed")


def overlay(directory: Path) -> dict[str, Mount]:
    return {"/work": Mount.overlay(Mount.host(str(directory)))}
