"""Attacks on the kernel's surface from native code inside: each gives the error that is listed, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import Sandbox
from belljar.native.launch_host import owner_ids
from tests.native.conftest import needs_native

pytestmark = needs_native
SOURCE = Path(__file__).with_name("attacks.c")
ENDED = "SIGSYS"
"""The kernel killed it."""

NOT_THERE = "EACCES|ENOENT|EPERM|EROFS"
"""Of a file in /proc, as the machine's kernel has it or not."""

REFUSED = {
    "EPERM": """
        unshare_user unshare_mount unshare_pid unshare_network unshare_cgroup unshare_time clone_user clone_namespaces
        setns_own mount_tmpfs mount_proc mount_bind remount umount umount_mask pivot_root chroot fsopen open_tree
        move_mount mount_setattr bpf perf_event_open userfaultfd userfaultfd_user_mode keyctl add_key request_key
        ptrace_init seize_init peek_init kill_init stop_init pidfd_getfd open_by_handle_at swapon quotactl acct
        settimeofday clock_settime adjtimex sethostname syslog iopl ioperm personality fanotify kcmp move_pages tiocsti
        tioclinux tiocsti_high_bits socket_raw netlink_change setuid_root setgid_root setgroups all_capabilities
        ambient_capability raise_limit realtime forge_opaque chown_root
    """,
    "EACCES|EPERM": "mknod_block mknod_char forge_whiteout",
    "ENOSYS": "clone3 io_uring_setup io_uring_register modify_ldt",
    ENDED: "kexec_load init_module finit_module delete_module reboot x32 int80",
    "EAFNOSUPPORT": "socket_packet socket_vsock socket_alg socket_bluetooth socket_tipc socket_xdp",
    "EPROTONOSUPPORT": "socket_audit socket_generic_netlink socket_netfilter socket_xfrm socket_sctp",
    "EACCES": "setns_init init_mem init_root init_environ init_maps init_fd init_cwd init_exe nice oom_score",
    NOT_THERE: "core_pattern modprobe binfmt_misc kcore sysrq uid_map",
    "EROFS": "write_usr",
    "ENOENT": """
        dev_mem dev_kmsg dev_disk dev_fuse dev_kvm dev_net_tun sys_kernel sys_uevent cgroup_procs release_agent shadow
    """,
    "EIO": "write_mapping",
    # Harmless: what programs may do, and masked files, in which there is nothing.
    "0": "unshare_files netlink_read keys kallsyms descriptors",
    "1000": "climb",
}
CASES = {name: error for error, names in REFUSED.items() for name in names.split()}
AS_ROOT = dict.fromkeys(("setuid_root", "setgid_root", "setgroups", "chown_root", "kill_init", "stop_init"), "0")
"""What else root inside may do. Signals to pid 1 have no effect."""
WITH_ONE_ID = {
    **dict.fromkeys(("kill_init", "stop_init"), "0"),
    **dict.fromkeys(("setuid_root", "setgid_root", "chown_root"), "EINVAL"),
}
"""Where the owner is an ordinary user: pid 1 has the same id, but the kernel keeps such signals from it; there is no
root to become."""
AS_ROOT_WITH_ONE_ID = {**AS_ROOT, "setgroups": "EPERM"}


@pytest.fixture(scope="module", params=["agent", "root"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(tier="native", user=request.param) as sandbox:
        sandbox.files.write("attacks.c", SOURCE.read_text())
        sandbox.exec("gcc -O1 -o attacks attacks.c", check=True)
        yield sandbox


@pytest.mark.parametrize("name", CASES)
def test_an_attack_is_refused(sandbox: Sandbox, name: str) -> None:
    result = sandbox.exec(["./attacks", name])
    is_root = sandbox.exec("id -u").stdout == "0\n"
    if owner_ids().base is None:
        others = AS_ROOT_WITH_ONE_ID if is_root else WITH_ONE_ID
    else:
        others = AS_ROOT if is_root else {}
    expected = others.get(name, CASES[name])
    if expected == ENDED:
        assert result.exit_code == 128 + 31
    else:
        assert (result.stderr, result.exit_code) == ("", 0)
        assert result.stdout.strip() in expected.split("|")
    assert sandbox.exec("echo alive").stdout == "alive\n"
