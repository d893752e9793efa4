"""The plan of a native sandbox: every step from new namespaces to a sealed pid 1. Pure: settings in, a frame out.

A plan is what the launcher (agent/jail.c) reads first, an ordinary frame:

    ["plan", 1, clone flags, uid map, gid map, uid and gid of pid 1, cgroups, trees, guest, steps, tests]

- `cgroups`: directories that pid 1 is put into, and that are removed when it has ended.
- `trees`: mounts that the launcher clones before, [path, attributes, mapped]: pid 1 could not search the way to them.
- `guest`: [filter, [[resource, limit], ...], capabilities kept, uid, gid, groups or nil].
- `steps`: [op, arguments...], done by pid 1 in this order; the first that fails ends it, except in
  `["try", layer, step]`. `["layer", name]` says that a layer holds.
- `tests`: [what, expected result or nil for any error, call number, arguments...], tried in a process with a guest's
  walls; another result ends the sandbox before the first guest byte.

| op | arguments |
|---|---|
| mount | source, target, type, flags, data |
| bind | source, target, attributes: the tree of mounts there, again |
| attach | index of a tree, target |
| mask | path: an empty directory, or /dev/null, over what is there |
| mkdir | path, mode, uid, gid |
| symlink | path, target |
| write | path, contents, mode, uid, gid |
| set | path, contents: of a file that exists |
| upper | path: the open directory goes out on descriptor 4, for snapshots |
| pivot | path: the new root |
| sethostname | name |
| netlink | protocol, messages |
| listen | family, type, address, [[level, option, value], ...]: the socket goes out on descriptor 4 |
| fuse | path: keep the way to this device, for mounts of the owner's trees |
| mounter | start the thread that mounts them, before Landlock forbids it to the others |
| cgroup | wait until the launcher has put pid 1 into its groups; a cgroup namespace |
| program | words of a program that pid 1 becomes, in a guest's walls; descriptors from 5 on are the launcher's |
| tap | path of /dev/net/tun, name of the interface, descriptor that it gets |
| module, random, clock, switch | of machines: see vm/plan.py |
| landlock | attributes, [[path, rights], ...] |
| seccomp | filter of pid 1 |
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from belljar.abi.limits import Limits
from belljar.lockdown.bpf import Machine
from belljar.native.accounts import Account
from belljar.native.filters import guest_filter, init_filter
from belljar.native.roots import ID_COUNT, Bind

VERSION: Final = 1
STAGE: Final = "/sys"
"""Where the new root is put together, in pid 1's own mount namespace: a directory that every system has, and of which
no tree of a sandbox is a part."""
ROOT: Final = f"{STAGE}/root"

NEW_NAMESPACES: Final = 0x00020000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
"""CLONE_NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET; a cgroup namespace follows when pid 1 is in its group."""
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 0x4000, 1 << 18
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV, ATTR_NOEXEC = 1, 2, 4, 8
_IMAGE: Final = ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV
_PROC: Final = MS_NOSUID | MS_NODEV | MS_NOEXEC

DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
MASKED: Final = (
    "acpi", "asound", "kcore", "keys", "latency_stats", "timer_list", "timer_stats", "sched_debug", "scsi",
    "interrupts", "kallsyms", "kpagecount", "kpageflags", "kpagecgroup", "vmallocinfo", "slabinfo", "modules",
)  # fmt: skip
"""Names in /proc that tell of the whole machine."""
READ_ONLY: Final = ("sys", "bus", "fs", "irq", "sysrq-trigger")
"""Names in /proc that change the machine. The kernel need not have all of them, and lets only its own root write."""

RLIMIT_DATA, RLIMIT_CORE, RLIMIT_NPROC, RLIMIT_NOFILE, RLIMIT_MEMLOCK = 2, 4, 6, 7, 8
RLIMIT_MSGQUEUE, RLIMIT_NICE, RLIMIT_RTPRIO = 12, 13, 14
_MEMLOCK: Final = 8 << 20
_MSGQUEUE: Final = 800 << 10
AGENT_PROCESSES: Final = 8
"""Processes of ours that count beside the guest's: pid 1, and those that do its file operations."""

ROOT_CAPABILITIES: Final = sum(1 << number for number in (0, 1, 3, 4, 5, 6, 7, 10))
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE: those that package managers need. All of
them are of the sandbox's user namespace, in which nothing of the host is owned."""
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
"""Landlock's rights to make device nodes."""
_AT_FDCWD: Final = -100
_CAP_SYS_ADMIN: Final = 21
_SAME: Final = (-1, -1)
"""Ids with which chown changes nothing."""

_ALWAYS: Final = ("dev", "proc", "sys", "etc", "run", "home", "var", "usr", "tmp", "var/tmp", "root", "workspace")

Step: TypeAlias = list[Any]


class Ids(msgspec.Struct, frozen=True):
    """Who the owner is, and which ids of the host the sandbox's are: `base` and those after it, or only the owner's."""

    uid: int
    gid: int
    base: int | None


class Ground(msgspec.Struct, frozen=True):
    """This machine, and the files that a sandbox stands on."""

    machine: Machine
    ids: Ids
    landlock: bytes
    """struct landlock_ruleset_attr as far as the kernel knows it; empty if it has no Landlock."""
    lowers: Sequence[str]
    """Directories for the root's overlay, top first."""
    binds: Sequence[Bind]
    """Trees that are mounted over it."""
    cgroups: Sequence[str]
    device: str = "/dev/fuse"
    """The FUSE device that pid 1 may open."""


class Inside(msgspec.Struct, frozen=True):
    """What commands find."""

    account: Account
    hostname: str
    cwd: str
    limits: Limits
    bounded: bool
    """Whether a control group bounds the memory."""
    files: Sequence[tuple[str, bytes]]
    """Files of /etc, made before the first command."""
    network: Sequence[Step]
    directories: Sequence[str] = ()
    """Made if they are missing."""
    read_only: bool = False
    """Whether nobody may write to the root."""
    kept: Mapping[str, tuple[int, int, int]] = {}
    """Mode, user and group that directories on the way to the user's own have already, by their paths."""
    devices: Sequence[str] = ()
    """Further devices of the host's."""
    before: Sequence[Step] = ()
    """Steps that need the host's own files."""
    calls: bytes = b""
    """The filter of guests, if it is not the usual one."""
    program: Sequence[str] = ()
    """What pid 1 becomes, if it does not serve."""


def directories_of(account: Account, cwd: str) -> list[str]:
    """The directories that every sandbox has, and those on the way to the user's own."""
    own = [path_parts(path) for path in (account.home, cwd)]
    return [*_ALWAYS, *("/".join(parts[:end]) for parts in own for end in range(1, len(parts) + 1))]


def encode_plan(ground: Ground, inside: Inside) -> bytes:
    """The frame."""
    ids, account = ground.ids, inside.account
    mapped = ids.base is not None
    body = msgspec.msgpack.encode(
        [
            "plan",
            VERSION,
            NEW_NAMESPACES,
            _id_map(account.uid, ids.uid, ids.base),
            _id_map(account.gid, ids.gid, ids.base),
            0 if mapped else account.uid,
            0 if mapped else account.gid,
            list(ground.cgroups),
            [[tree.source, _IMAGE, tree in ground.binds] for tree in _trees(ground)] if mapped else [],
            _guest(ground, inside),
            _steps(ground, inside),
            _tests(ground.machine.numbers, inside),
        ]
    )
    return struct.pack("<I", len(body)) + body


def _id_map(inside: int, outside: int, base: int | None) -> bytes:
    return b"%d %d 1" % (inside, outside) if base is None else b"0 %d %d" % (base, ID_COUNT)


def _trees(ground: Ground) -> list[Bind]:
    lowers = [Bind(lower, f"{STAGE}/{number}") for number, lower in enumerate(ground.lowers)]
    return [*lowers, *ground.binds]


def _guest(ground: Ground, inside: Inside) -> list[Any]:
    limits, account = inside.limits, inside.account
    rlimits = {
        RLIMIT_CORE: 0,
        RLIMIT_NPROC: limits.processes + (0 if ground.ids.base is not None else AGENT_PROCESSES),
        RLIMIT_NOFILE: limits.open_files,
        RLIMIT_MEMLOCK: _MEMLOCK,
        RLIMIT_MSGQUEUE: _MSGQUEUE,
        RLIMIT_NICE: 0,
        RLIMIT_RTPRIO: 0,
    }
    if not inside.bounded:
        rlimits[RLIMIT_DATA] = limits.memory_bytes
    capabilities = ROOT_CAPABILITIES if account.uid == 0 else 0
    groups = [account.gid] if ground.ids.base is not None else None
    calls = inside.calls or guest_filter(ground.machine, one_id=ground.ids.base is None and account.uid == 0)
    return [calls, list(rlimits.items()), capabilities, account.uid, account.gid, groups]


def _steps(ground: Ground, inside: Inside) -> list[Step]:
    return [
        *_lay_out(ground, inside),
        *_mount_root(ground),
        *([["bind", ROOT, ROOT, ATTR_RDONLY]] if inside.read_only else []),
        *_mount_system(ground, inside),
        ["try", "", ["fuse", ground.device]],
        *inside.before,
        ["pivot", ROOT],
        ["layer", "user"],
        *([["layer", "ids"]] if ground.ids.base is not None else []),
        ["layer", "mount"],
        ["layer", "pid"],
        ["layer", "ipc"],
        ["sethostname", inside.hostname],
        ["layer", "uts"],
        *inside.network,
        ["layer", "network"],
        *(["mask", f"/proc/{name}"] for name in MASKED),
        *(["try", "", ["bind", f"/proc/{name}", f"/proc/{name}", ATTR_RDONLY]] for name in READ_ONLY),
        ["cgroup"],
        ["seccomp", init_filter(ground.machine)],
        ["mounter"],
        *_landlock(ground.landlock),
        ["layer", "rlimits"],
        ["layer", "no_new_privs"],
        ["layer", "seccomp"],
        *([["program", list(inside.program)]] if inside.program else []),
    ]


def _lay_out(ground: Ground, inside: Inside) -> list[Step]:
    """The writable layer, in memory: what it holds before it lies over the image needs no copying up."""
    limits, account = inside.limits, inside.account
    root = (0, 0) if ground.ids.base is not None else (account.uid, account.gid)
    own = (account.uid, account.gid)
    size = f"size={limits.file_bytes},nr_inodes={limits.files},mode=755"
    made: dict[str, tuple[int, tuple[int, int]]] = {name: (0o755, root) for name in _ALWAYS}
    made |= {"tmp": (0o1777, root), "var/tmp": (0o1777, root), "root": (0o700, root), "workspace": (0o755, own)}
    added = [(path, None) for path, _ in inside.files] + [(path, root) for path in inside.directories]
    for path, owner in ((account.home, own), (inside.cwd, own), *added):
        parts = path_parts(path)
        for end in range(1, len(parts)):
            made.setdefault("/".join(parts[:end]), (0o755, root))
        if parts and owner is not None:
            made.setdefault("/".join(parts), (0o755, owner))
    made |= {path: (mode, (uid, gid)) for path, (mode, uid, gid) in inside.kept.items()}
    return [
        ["mount", "", "/", "", MS_REC | MS_PRIVATE, ""],
        ["mount", "tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, size],
        *(["mkdir", f"{STAGE}/{name}", 0o755, *root] for name in ("upper", "work", "root")),
        ["upper", f"{STAGE}/upper"],
        *(["mkdir", f"{STAGE}/upper/{path}", mode, *owner] for path, (mode, owner) in made.items()),
        *(["write", f"{STAGE}/upper/{'/'.join(path_parts(path))}", data, 0o644, *root] for path, data in inside.files),
    ]


def path_parts(path: str) -> list[str]:
    """The names of an absolute path, taken as text: an image says where its user's home is, and pid 1 makes it while it
    still sees the host."""
    parts: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del parts[-1:]
        elif name not in ("", "."):
            parts.append(name)
    return parts


def _mount_root(ground: Ground) -> list[Step]:
    """The root, and the host's trees over it."""
    steps: list[Step] = []
    for number, tree in enumerate(_trees(ground)):
        target = tree.target if number < len(ground.lowers) else ROOT + tree.target
        if number < len(ground.lowers):
            steps.append(["mkdir", target, 0o755, *_SAME])
        if number == len(ground.lowers):
            steps.append(_join(ground))
        steps.append(_put(ground, number, tree, target))
    if len(ground.binds) == 0:
        steps.append(_join(ground))
    return steps


def _put(ground: Ground, number: int, tree: Bind, target: str) -> Step:
    return ["attach", number, target] if ground.ids.base is not None else ["bind", tree.source, target, _IMAGE]


def _join(ground: Ground) -> Step:
    """Lay the writable directory over the image's."""
    if not ground.lowers:
        return ["bind", f"{STAGE}/upper", ROOT, 0]
    lowers = ":".join(f"{STAGE}/{number}" for number in range(len(ground.lowers)))
    options = f"lowerdir={lowers},upperdir={STAGE}/upper,workdir={STAGE}/work,userxattr"
    return ["mount", "overlay", ROOT, "overlay", MS_NOSUID | MS_NODEV, options]


def _mount_system(ground: Ground, inside: Inside) -> list[Step]:
    """/proc, /sys and /dev."""
    dev = f"{ROOT}/dev"
    root = _SAME
    shared = min(inside.limits.file_bytes, inside.limits.memory_bytes // 2)
    return [
        ["mount", "proc", f"{ROOT}/proc", "proc", _PROC, ""],
        ["mount", "tmpfs", f"{ROOT}/sys", "tmpfs", _PROC | MS_RDONLY, "size=4k,mode=555"],
        ["mount", "tmpfs", dev, "tmpfs", MS_NOSUID | MS_NOEXEC, "size=64k,mode=755"],
        *(["write", f"{dev}/{name}", b"", 0o666, *root] for name in DEVICES),
        *(["bind", f"/dev/{name}", f"{dev}/{name}", ATTR_NOSUID | ATTR_NOEXEC] for name in DEVICES),
        *(step for path in inside.devices for step in _add_device(path)),
        *(["mkdir", f"{dev}/{name}", 0o755, *root] for name in ("pts", "shm")),
        ["mount", "devpts", f"{dev}/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"],
        ["mount", "tmpfs", f"{dev}/shm", "tmpfs", MS_NOSUID | MS_NODEV, f"size={shared},mode=1777"],
        ["symlink", f"{dev}/ptmx", "pts/ptmx"],
        ["symlink", f"{dev}/fd", "/proc/self/fd"],
        *(["symlink", f"{dev}/{name}", f"/proc/self/fd/{fd}"] for fd, name in enumerate(("stdin", "stdout", "stderr"))),
    ]


def _add_device(path: str) -> list[Step]:
    target = f"{ROOT}/dev/{path.rpartition('/')[2]}"
    return [["write", target, b"", 0o666, *_SAME], ["bind", path, target, ATTR_NOSUID | ATTR_NOEXEC]]


def _landlock(attributes: bytes) -> list[Step]:
    """No device nodes and no change of mounts, whatever else fails; no signal or abstract socket beyond the sandbox."""
    if not attributes:
        return []
    (rights,) = struct.unpack_from("<Q", attributes)
    handled = struct.pack("<QQ", rights, 0)[: len(attributes)] + attributes[16:]
    return [["try", "landlock", ["landlock", handled, [["/", rights & ~(MAKE_CHAR | MAKE_BLOCK)]]]]]


def _tests(numbers: dict[str, int], inside: Inside) -> list[list[Any]]:
    """Calls of a guest, and what must come of them."""
    write_only = 1
    return [
        ["mount a file system", None, numbers["mount"], b"none", b"/tmp", b"tmpfs", 0, 0],
        ["make a user namespace", None, numbers["unshare"], 0x10000000],
        ["load a BPF program", None, numbers["bpf"], 5, bytes(48), 48],
        ["use io_uring", None, numbers["io_uring_setup"], 1, bytes(120)],
        ["reach the kernel's keys", None, numbers["keyctl"], 0, -3, 0],
        ["watch page faults", None, numbers["userfaultfd"], 1],
        ["talk to the audit system", None, numbers["socket"], 16, 3, 9],
        ["open a packet socket", None, numbers["socket"], 17, 3, 0],
        ["open a raw socket", None, numbers["socket"], 2, 3, 255],
        ["talk to the packet filter", None, numbers["socket"], 16, 3, 12],
        [
            "change a setting of the kernel",
            None,
            numbers["openat"],
            _AT_FDCWD,
            b"/proc/sys/kernel/hostname",
            write_only,
        ],
        ["open pid 1's memory", None, numbers["openat"], _AT_FDCWD, b"/proc/1/mem", 0],
        ["trace pid 1", None, numbers["ptrace"], 16, 1, 0, 0],
        ["make a device", None, numbers["mknodat"], _AT_FDCWD, b"/tmp/.device", 0o060600, 0x700],
        ["gain privileges", 1, numbers["prctl"], 39, 0, 0, 0, 0],
        ["mount as an administrator", 0, numbers["prctl"], 23, _CAP_SYS_ADMIN, 0, 0, 0],
        ["be another user", inside.account.uid, numbers["getuid"]],
    ]
