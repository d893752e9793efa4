"""Let commands loose on a real directory: every change stays in the sandbox until you have read it."""

import tempfile
from pathlib import Path

from belljar import Mount, Sandbox

with tempfile.TemporaryDirectory() as directory:
    config = Path(directory, "config.ini")
    config.write_text("[server]\nport = 80\ndebug = yes\n")
    with Sandbox(mounts={"/repo": Mount.overlay(Mount.host(directory))}) as sandbox:
        sandbox.exec("sed -i 's/debug = yes/debug = no/' /repo/config.ini").check()
        changes = sandbox.changes("/repo")
    print(changes.diff(), end="")
    print("on the host, still:", config.read_text().split()[-1])
    changes.apply(directory)
    print("on the host, now:", config.read_text().split()[-1])
