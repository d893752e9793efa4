"""Records what the real tools say: `python -m tests.spec.record tests/spec/bin/wc.spec` rewrites the file in place.

Each case runs under the machine's own bash in an empty directory. Cases with `## platform: WHY` are left alone.
Write the scripts and the `## file` lines by hand; the recorder fills in the rest.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.spec.cases import Case, read_cases, render

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


def record(case: Case) -> None:
    with tempfile.TemporaryDirectory() as top:
        root = Path(top) / "w"
        root.mkdir()
        for name, value in case.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(value, bytes):
                path.write_bytes(value)
            elif value[0] == "dir":
                path.mkdir(exist_ok=True)
            else:
                path.symlink_to(value[1])  # type: ignore[misc]
        for name, mode in case.modes.items():
            (root / name).chmod(mode)
        env = {"PATH": PATH, "LC_ALL": "C.UTF-8", "HOME": "/tmp", "TZ": "UTC", "TERM": "dumb", **case.env}
        done = subprocess.run(
            ["bash", "-c", case.script],
            cwd=root,
            env=env,
            input=case.stdin,
            capture_output=True,
            timeout=30,
            check=False,
        )
    case.stdout = done.stdout
    if case.stderr is not None:
        case.stderr = done.stderr
    case.status = done.returncode if done.returncode >= 0 else 128 - done.returncode


def main(paths: list[str]) -> None:
    os.umask(0o022)
    for name in paths:
        path = Path(name)
        head, cases = read_cases(path)
        for case in cases:
            if not case.fixed:
                record(case)
        text = "\n".join(([head] if head else []) + [render(case) for case in cases])
        path.write_text(text, "utf-8", "surrogateescape")
        sys.stdout.write(f"{path}: {len(cases)} cases\n")


if __name__ == "__main__":
    main(sys.argv[1:])
