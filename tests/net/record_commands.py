"""Records what real curl 8.14 and wget 1.25 say to the cases of commands.jsonl.

    python -m tests.net.record_commands [ROOT]

ROOT is a directory with a Debian of that age in it (debootstrap trixie), for chroot; without it the tools of this
machine are used. Each line of the file has the script, and after recording also stdout, stderr and status.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.net.servers import HttpServer
from tests.net.site import masked, routes

CASES = Path(__file__).with_name("commands.jsonl")
SETUP = (
    "rm -rf /tmp/w && mkdir -p /tmp/w && cd /tmp/w && printf 01234 > p && export TZ=UTC LC_ALL=C.UTF-8 HOME=/tmp/w\n"
)


def main() -> None:
    root = ["chroot", sys.argv[1]] if len(sys.argv) > 1 else []
    recorded: list[str] = []
    with HttpServer(routes()) as server:
        for line in CASES.read_text().splitlines():
            case = json.loads(line)
            script = SETUP + case["script"].replace("{U}", server.url).replace("{H}", server.authority)
            # The script is the repository's own.
            done = subprocess.run([*root, "bash", "-c", script], capture_output=True, timeout=60)
            case["stdout"] = masked(done.stdout.decode("utf-8", "surrogateescape"), server)
            case["stderr"] = masked(done.stderr.decode("utf-8", "surrogateescape"), server)
            case["status"] = done.returncode
            recorded.append(json.dumps(case))
    CASES.write_text("".join(line + "\n" for line in recorded))


if __name__ == "__main__":
    main()
