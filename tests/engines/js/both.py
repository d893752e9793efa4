"""Programs run by Node itself and by `node` in a sandbox, and what each said, as if both had run in the same place."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from belljar import Sandbox
from belljar.engines.owner.js_build_host import node


class Said(NamedTuple):
    """Both streams and the status of a program."""

    stdout: str
    stderr: str
    status: int


def say_both(
    sandbox: Sandbox, home: str, here: Path, files: Mapping[str, str], words: Sequence[str]
) -> tuple[Said, Said]:
    """What `node WORDS` says to the same files, ours first. `home` is the sandbox's directory for them, `here` ours."""
    for name, text in files.items():
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(text)
        sandbox.files.write(f"{home}/{name}", text)
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/root"}
    real = subprocess.run([str(node()), *words], cwd=here, env=environment, capture_output=True, text=True, timeout=60)
    ours = sandbox.exec(["node", *words], cwd=home, timeout=60)

    def placed(said: str) -> str:
        return re.sub(r"\(node:\d+\)", "(node:PID)", said.replace(str(here.resolve()), home).replace(str(here), home))

    return (
        Said(placed(ours.stdout), placed(ours.stderr), ours.exit_code),
        Said(placed(real.stdout), placed(real.stderr), real.returncode),
    )
