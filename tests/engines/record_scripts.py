"""Records what native Python says to the scripts: `python -m tests.engines.record_scripts PYTHON [NAME...]`.

PYTHON needs numpy, pandas, matplotlib, scipy, scikit-learn and lxml. What is recorded are files beside the scripts;
where a script runs is written as {dir}.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
INPUT = "Ada\nline one\nlast line\n"
ARGUMENTS = ("one", "two words")


def names() -> list[str]:
    return sorted(path.stem for path in SCRIPTS.glob("*.py"))


def render(stdout: str, stderr: str, status: int, directory: str) -> str:
    """What a run is compared by."""
    text = f"{stdout}--- stderr\n{stderr}--- status {status}\n"
    return text.replace(directory, "{dir}")


def record(python: str, name: str) -> str:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / f"{name}.py").write_text((SCRIPTS / f"{name}.py").read_text())
        done = subprocess.run(
            [python, f"{name}.py", *ARGUMENTS],
            cwd=directory,
            input=INPUT,
            capture_output=True,
            text=True,
            timeout=120,
            env={"PATH": "/usr/bin:/bin", "HOME": directory, "LANG": "C.UTF-8"},
        )
        return render(done.stdout, done.stderr, done.returncode, str(Path(directory).resolve()))


def main(arguments: list[str]) -> None:
    python, *wanted = arguments
    for name in wanted or names():
        (SCRIPTS / f"{name}.out").write_text(record(python, name))


if __name__ == "__main__":
    main(sys.argv[1:])
