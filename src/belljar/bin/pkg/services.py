"""Services of packages: started when they are installed, restarted when they are replaced, stopped with them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from belljar.abi.errors import SysError
from belljar.bin.pkg.database import Installed
from belljar.bin.pkg.transaction import remove_tree
from belljar.kernel.process import Process
from belljar.kernel.services.unit import UnitError
from belljar.kernel.services.unit_files import read_unit


def follow(process: Process, gone: Sequence[Installed], made: Sequence[Installed]) -> list[str]:
    """Have what runs be what is installed; gives what was done, in words. A service that can't be started is warned
    of, and `service status` says why: its package is installed all the same.
    """
    supervisor = process.space.services
    if supervisor is None:
        return []
    said: list[str] = []
    now = {name for record in made for name in record.services}
    before = {name for record in gone for name in record.services}
    for name in sorted(before - now):
        supervisor.forget(name)
        for ending in ("", ".1", ".2", ".3"):
            remove_tree(process, f"/var/log/{name}.log{ending}")
        remove_tree(process, f"/run/{name}.mounted")  # of a file server
        said.append(f"stopped the service {name}")
    view = process.system_namespace()
    for path in {path for record in gone for path in record.mounts} - {p for record in made for p in record.mounts}:
        with suppress(SysError):
            view.unmount(path)
        with suppress(SysError):
            view.rmdir(path)
    for name in sorted(now):
        try:
            runs = supervisor.status(name).runs
            if runs:
                supervisor.restart(name)
            elif name not in before and read_unit(process.fs, name).enabled:
                supervisor.start(name)
            else:
                continue
            said.append(f"{'restarted' if runs else 'started'} the service {name}")
        except (SysError, UnitError) as error:
            process.warn(f"the service {name} can't be started: {error}")
    return said
