"""Records the archive that workers started alone load from: `python -I -m belljar.zygote.recorder_host FILE`."""

from __future__ import annotations

import os
import sys

from belljar.engines.worker.programs import preload
from belljar.kernel.machine_host import host_machine
from belljar.worker import spawned_host
from belljar.worker.archive_host import write_archive
from belljar.zygote.zygote_host import warm_up


def main() -> None:
    """Import all that a worker could need, as a zygote does, and record what that was."""
    path = os.path.abspath(sys.argv[1])
    os.chdir("/")
    preload()
    warm_up(host_machine())
    write_archive(path, [spawned_host, *sys.modules.values()])


if __name__ == "__main__":
    main()
