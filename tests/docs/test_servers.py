"""The program of docs/servers.md runs as pasted."""

import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "servers.md"


def test_the_program_runs_as_pasted() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=240)
    assert (done.stdout, done.returncode) == ("<h1>hi</h1>\n", 0), done.stderr
