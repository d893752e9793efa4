"""The plan of a machine's first program: from the first root to the sandbox's own. Pure: settings in, a frame out.

It is a plan as of the native tier (native/plan.py), without namespaces and walls: the machine is the wall. Its steps
besides those:

| op | arguments |
|---|---|
| random | bytes that nobody else has, mixed into the kernel's |
| clock | nanoseconds since 1970 |
| switch | path of the root that takes the place of the first one |
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import Enum
from typing import Final

import msgspec

from belljar.abi.limits import Limits
from belljar.native.accounts import Account
from belljar.native.plan import (
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    RLIMIT_CORE,
    RLIMIT_MEMLOCK,
    RLIMIT_NOFILE,
    RLIMIT_NPROC,
    VERSION,
    Step,
    path_parts,
)

ROOT: Final = "/root"
_BASE, _LAYER = "/base", "/layer"
_DISK: Final = "/dev/vda"
_ALL_CAPABILITIES: Final = (1 << 41) - 1
_MEMLOCK: Final = 64 << 20
_OWN: Final = "/run/belljar-etc"
"""Files of the sandbox's own that lie over those of a root that is not to be changed."""


class RootMode(Enum):
    """What becomes of changes to the root."""

    MEMORY = "memory"
    """They are in the machine's memory, in a layer over the disk."""
    DISK = "disk"
    """They are written to the disk."""
    READ_ONLY = "read only"


class Inside(msgspec.Struct, frozen=True):
    """What a sandbox finds in its machine."""

    account: Account
    hostname: str
    cwd: str
    limits: Limits
    mode: RootMode
    files: Sequence[tuple[str, bytes]]
    """Files of the sandbox's own."""
    network: Sequence[Step]
    seed: bytes
    time_ns: int
    memory_bytes: int
    devices: Sequence[str]
    """Those that are given to their drivers, by the kernel's names."""


def encode_plan(inside: Inside) -> bytes:
    """The frame."""
    account, limits = inside.account, inside.limits
    rlimits = {
        RLIMIT_CORE: 0,
        RLIMIT_NPROC: limits.processes,
        RLIMIT_NOFILE: limits.open_files,
        RLIMIT_MEMLOCK: _MEMLOCK,
    }
    capabilities = _ALL_CAPABILITIES if account.uid == 0 else 0
    guest = [b"", list(rlimits.items()), capabilities, account.uid, account.gid, [account.gid]]
    return _frame(["plan", VERSION, 0, b"", b"", 0, 0, [], [], guest, _steps(inside), []])


def encode_go_on(time_ns: int, *, seed: bytes | None = None, kept: Sequence[int] = ()) -> bytes:
    """The frame that ends a `hold_still`: with a seed in a branch, which goes on with the jobs of these numbers."""
    steps: list[Step] = [] if seed is None else [["random", seed]]
    steps.append(["try", "", ["clock", time_ns]])
    return _frame(["go_on", seed is not None, list(kept), steps])


def _frame(value: list[object]) -> bytes:
    body = msgspec.msgpack.encode(value)
    return struct.pack("<I", len(body)) + body


def _steps(inside: Inside) -> list[Step]:
    return [
        ["random", inside.seed],
        ["clock", inside.time_ns],
        *(["set", "/sys/bus/virtio/drivers_probe", name.encode()] for name in inside.devices),
        *_mount_root(inside),
        *_mount_system(inside),
        *_own_files(inside),
        ["fuse", "/dev/fuse"],
        ["switch", ROOT],
        ["sethostname", inside.hostname],
        *inside.network,
        ["set", "/proc/sys/kernel/printk", b"1 1 1 1"],
    ]


def _mount_root(inside: Inside) -> list[Step]:
    made: list[Step] = [["mkdir", path, 0o755, 0, 0] for path in (ROOT, _BASE, _LAYER)]
    if inside.mode is RootMode.DISK:
        return [*made, ["mount", _DISK, ROOT, "ext4", 0, "errors=remount-ro"]]
    if inside.mode is RootMode.READ_ONLY:
        return [*made, ["mount", _DISK, ROOT, "ext4", MS_RDONLY, "noload"]]
    limits = inside.limits
    size = min(limits.file_bytes, inside.memory_bytes // 2)
    return [
        *made,
        ["mount", _DISK, _BASE, "ext4", MS_RDONLY, "noload"],
        ["mount", "tmpfs", _LAYER, "tmpfs", 0, f"size={size},nr_inodes={limits.files},mode=755"],
        ["mkdir", f"{_LAYER}/upper", 0o755, 0, 0],
        ["mkdir", f"{_LAYER}/work", 0o755, 0, 0],
        *_lay_out(inside, f"{_LAYER}/upper"),
        ["mount", "overlay", ROOT, "overlay", 0, f"lowerdir={_BASE},upperdir={_LAYER}/upper,workdir={_LAYER}/work"],
    ]


def _lay_out(inside: Inside, upper: str) -> list[Step]:
    """Directories and files of the sandbox's own, before the layer lies over the disk."""
    account = inside.account
    own, root = (account.uid, account.gid), (0, 0)
    made: dict[str, tuple[int, tuple[int, int]]] = {name: (0o755, root) for name in ("etc", "home", "usr", "var")}
    made |= {"workspace": (0o755, own)}
    added = [(path, None) for path, _ in inside.files]
    for path, owner in ((account.home, own), (inside.cwd, own), *added):
        parts = path_parts(path)
        for end in range(1, len(parts)):
            made.setdefault("/".join(parts[:end]), (0o755, root))
        if parts and owner is not None:
            made.setdefault("/".join(parts), (0o700 if parts == ["root"] else 0o755, owner))
    return [
        *(["mkdir", f"{upper}/{path}", mode, *owner] for path, (mode, owner) in made.items()),
        *(["write", f"{upper}/{'/'.join(path_parts(path))}", data, 0o644, *root] for path, data in inside.files),
    ]


def _mount_system(inside: Inside) -> list[Step]:
    plain = MS_NOSUID | MS_NODEV
    dev = f"{ROOT}/dev"
    half = f"size={inside.memory_bytes // 2}"
    return [
        ["mount", "proc", f"{ROOT}/proc", "proc", plain | MS_NOEXEC, ""],
        ["mount", "sysfs", f"{ROOT}/sys", "sysfs", plain | MS_NOEXEC, ""],
        ["mount", "devtmpfs", dev, "devtmpfs", MS_NOSUID, ""],
        ["mkdir", f"{dev}/pts", 0o755, 0, 0],
        ["mkdir", f"{dev}/shm", 0o1777, 0, 0],
        ["mount", "devpts", f"{dev}/pts", "devpts", MS_NOSUID | MS_NOEXEC, "ptmxmode=0666,mode=0620"],
        ["mount", "tmpfs", f"{dev}/shm", "tmpfs", plain, f"{half},mode=1777"],
        *(["try", "", ["symlink", f"{dev}/{name}", target]] for name, target in _LINKS),
        ["mount", "tmpfs", f"{ROOT}/run", "tmpfs", plain, f"{half},mode=755"],
        *_scratch(inside, half),
    ]


_LINKS: Final = (
    ("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2"),
)  # fmt: skip


def _scratch(inside: Inside, size: str) -> list[Step]:
    """Places to write to, where the root is no such place."""
    if inside.mode is RootMode.MEMORY:
        return []
    steps: list[Step] = [["mount", "tmpfs", f"{ROOT}/tmp", "tmpfs", MS_NOSUID | MS_NODEV, f"{size},mode=1777"]]
    if inside.mode is RootMode.READ_ONLY:
        account = inside.account
        for path in ("/workspace", account.home):
            options = f"{size},mode=755,uid={account.uid},gid={account.gid}"
            steps.append(["try", "", ["mount", "tmpfs", f"{ROOT}{path}", "tmpfs", MS_NOSUID | MS_NODEV, options]])
    return steps


def _own_files(inside: Inside) -> list[Step]:
    """A root that is kept is not changed: the sandbox's own files lie over those of the same names."""
    if inside.mode is RootMode.MEMORY:
        return []
    steps: list[Step] = [["mkdir", f"{ROOT}{_OWN}", 0o755, 0, 0]]
    for number, (path, data) in enumerate(inside.files):
        if path.startswith("/run/"):
            steps.append(["mkdir", f"{ROOT}{path.rpartition('/')[0]}", 0o755, 0, 0])
            steps.append(["write", ROOT + path, data, 0o644, 0, 0])
            continue
        source = f"{ROOT}{_OWN}/{number}-{path.rpartition('/')[2]}"
        steps.append(["write", source, data, 0o644, 0, 0])
        steps.append(["try", "", ["bind", source, ROOT + path, 0]])
    return steps
