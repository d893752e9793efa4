"""The first snippet of docs/javascript.md runs as pasted, and prints what it says."""

import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "javascript.md"


def test_the_pattern_runs_as_pasted() -> None:
    snippet = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)[0]
    done = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True, timeout=240)
    assert done.stdout == "True {'name': 'Ada', 'page': 20} { name: 'Ada', id: 1 }\n\n", done.stderr
