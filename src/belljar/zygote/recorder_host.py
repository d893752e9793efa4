"""Records the archive that workers load from: `python -I -m belljar.zygote.recorder_host FILE`."""

from __future__ import annotations

import os
import sys

from belljar.kernel.machine_host import host_machine
from belljar.zygote.zygote_host import load_everything, record


def main() -> None:
    path = os.path.abspath(sys.argv[1])
    os.chdir("/")
    load_everything(host_machine())
    record(path)


if __name__ == "__main__":
    main()
