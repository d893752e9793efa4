"""Every Python snippet of the integrations' pages runs as pasted."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "integrations"
SNIPPETS = [
    pytest.param(snippet, id=page.stem)
    for page in sorted(PAGES.glob("*.md"))
    for snippet in re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
]


@pytest.mark.slow
@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippet(snippet: str, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    done = subprocess.run(
        [sys.executable, "-c", snippet], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert (tmp_path / "note.txt").read_text() == "mine"
