"""What a tmpfs holds counts as long as anything leads to it."""

from __future__ import annotations

import pytest

from belljar.kernel.machine import virtual_machine
from tests.adapter import new_session


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("mount -t tmpfs x d; seq 9999 >d/f; umount d", id="unmounted"),
        pytest.param("mount -t tmpfs x d; seq 9999 >d/f", id="of a command that ended"),
        pytest.param("mount -t tmpfs x d; cd d; seq 9999 >f; exec 5<f; umount ../d; cat <&5", id="open files"),
        pytest.param("(mount -t tmpfs x d; seq 9999 >d/f; mount --bind d e; umount d; cat e/f)", id="seen twice"),
        pytest.param("for i in 1 2 3; do mount -t tmpfs x d; mkdir d/{1..9}; umount d; done", id="directories"),
    ],
)
def test_a_tmpfs_that_is_gone_takes_no_room(command: str) -> None:
    session = new_session(machine=virtual_machine())
    session.exec("mkdir d e")
    quota = session.kernel.quota
    before = quota.bytes_used, quota.files_used
    result = session.exec(f"{command} >/dev/null")
    assert (result.status, result.stderr) == (0, b"")
    assert (quota.bytes_used, quota.files_used) == before


def test_a_tmpfs_counts_while_it_is_mounted() -> None:
    session = new_session(machine=virtual_machine())
    before = session.kernel.quota.bytes_used
    session.exec("mkdir d; mount -t tmpfs x d; head -c 100000 /dev/zero >d/f; sleep 1000 &")
    assert session.kernel.quota.bytes_used >= before + 100000
