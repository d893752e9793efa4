"""Every Python snippet of the README runs as pasted."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SNIPPETS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 4


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_snippet(number: int, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    done = subprocess.run(
        [sys.executable, "-c", SNIPPETS[number]], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert (tmp_path / "README.md").read_text() == "mine"
