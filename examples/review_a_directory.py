"""Let commands loose on a real directory: every change stays in the sandbox, and is shown as a diff."""

import tempfile
from pathlib import Path

from belljar import Mount, Sandbox

with tempfile.TemporaryDirectory() as directory:
    Path(directory, "config.ini").write_text("[server]\nport = 80\ndebug = yes\n")
    mounts = {"/before": Mount.host(directory), "/after": Mount.overlay(Mount.host(directory))}
    with Sandbox(mounts=mounts) as sandbox:
        sandbox.exec("sed -i 's/debug = yes/debug = no/' /after/config.ini").check()
        print(sandbox.exec("diff -u --label before --label after /before/config.ini /after/config.ini").stdout, end="")
    print("on the host, still:", Path(directory, "config.ini").read_text().split()[-1])
