"""The files of /proc/<pid>, as text: status, stat, mounts and the others, field by field as Linux prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from belljar.abi.errno import ENOENT
from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFMT, S_IFREG
from belljar.abi.paths import fsdecode, fsencode, join, normalise
from belljar.kernel.fiber import State
from belljar.kernel.pipe import PipeNode
from belljar.kernel.rlimits import RESOURCES, getrlimit
from belljar.kernel.tty import PTS_MAJOR
from belljar.kernel.vfs.namespace import Place
from belljar.kernel.vfs.resolve import path_of

if TYPE_CHECKING:
    from belljar.kernel.kernel import Kernel
    from belljar.kernel.pids import PidSpace
    from belljar.kernel.process import Process
    from belljar.kernel.vfs.namespace import Mount
    from belljar.kernel.vfs.openfile import OpenFile

HERTZ: Final = 100
_NAMESPACE_BASE: Final = 4026531836
_COMM_MAX: Final = 15
_STATES: Final = {"R": "running", "S": "sleeping", "T": "stopped", "Z": "zombie"}


# Names.


def comm(process: Process) -> str:
    """The program's file name, at most 15 bytes."""
    name = process.executable.rpartition("/")[2] or process.name
    return fsdecode(fsencode(name)[:_COMM_MAX])


def cmdline(process: Process) -> bytes:
    if process.status is not None or not process.argv:
        return b""
    return b"\0".join(map(fsencode, process.argv)) + b"\0"


def environ(process: Process) -> bytes:
    return b"".join(fsencode(f"{name}={value}") + b"\0" for name, value in process.env.items())


def executable(process: Process) -> str:
    if not process.executable:
        raise SysError(ENOENT)
    return normalise(process.executable)


def place_name(viewer: Process, place: Place) -> str:
    """A directory's path as the viewer sees it."""
    path = path_of(viewer.fs, place)
    return path if path is not None else "/ (deleted)"


def file_name(process: Process, file: OpenFile) -> str:
    """The target of the symlink /proc/<pid>/fd/<n>."""
    node = file.place.node
    if file.handle.link_name is not None:
        return file.handle.link_name
    if isinstance(node, PipeNode):
        return f"pipe:[{node.ino}]"
    if node.is_dir:
        return place_name(process, file.place)
    name: str = file.name
    try:
        name = str(file.handle.ioctl("tty_name"))
    except SysError:
        if not name.startswith("/") and ":[" not in name:
            base = path_of(process.fs, file.base or process.fs.cwd)
            name = normalise(join(base, name)) if base is not None else name
    if node.mode & S_IFMT == S_IFREG and file.stat().nlink == 0:
        name += " (deleted)"
    return name


def namespace_name(kernel: Kernel, process: Process, kind: str) -> str:
    """Two processes share a namespace if these numbers are the same."""
    everywhere = kernel.init.space
    if kind == "mnt":
        # Each process has a mount table of its own, as in Plan 9.
        number = _NAMESPACE_BASE + 4 + process.pids[everywhere]
    else:
        first = process.space.table.get(1)
        number = _NAMESPACE_BASE + (first.pids[everywhere] - 1 if first is not None else 0)
    return f"{kind}:[{number}]"


# Figures.


def state(process: Process) -> str:
    if process.status is not None:
        return "Z"
    if process.stopped:
        return "T"
    return "R" if any(fiber.state in (State.READY, State.RUNNING) for fiber in process.fibers) else "S"


def _parent_pid(process: Process, space: PidSpace) -> int:
    return process.parent.pids.get(space, 0) if process.parent is not None else 0


def status(process: Process, space: PidSpace) -> str:
    fs, pid = process.fs, process.pids[space]
    who = fs.credentials
    inner = [number for known, number in process.pids.items() if _is_within(known, space)]
    inner.reverse()
    pids = "\t".join(map(str, inner))
    letter = state(process)
    caught = [number for number, handler in process.handlers.items() if callable(handler)]
    ignored = [number for number, handler in process.handlers.items() if not callable(handler)]
    capabilities = "000001ffffffffff" if who.uid == 0 else "0" * 16
    cores = process.kernel.machine.cores
    fields: list[tuple[str, object]] = [
        ("Name", _escaped_name(process)),
        ("Umask", f"{fs.umask:04o}"),
        ("State", f"{letter} ({_STATES[letter]})"),
        ("Tgid", pid),
        ("Ngid", 0),
        ("Pid", pid),
        ("PPid", _parent_pid(process, space)),
        ("TracerPid", 0),
        ("Uid", "\t".join([str(who.uid)] * 4)),
        ("Gid", "\t".join([str(who.gid)] * 4)),
        ("FDSize", max(64, 1 << max(process.fds.fds(), default=0).bit_length())),
        ("Groups", " ".join(map(str, sorted(who.groups))) + " "),
        ("NStgid", pids),
        ("NSpid", pids),
        ("NSpgid", group_number(process, space)),
        ("NSsid", session_number(process, space)),
        ("VmPeak", _kilobytes(0)),
        ("VmSize", _kilobytes(0)),
        ("VmRSS", _kilobytes(0)),
        ("Threads", max(1, len(process.fibers))),
        ("SigQ", f"{len(process.pending)}/{process.kernel.limits.processes}"),
        ("SigPnd", "0" * 16),
        ("ShdPnd", _mask(process.pending)),
        ("SigBlk", _mask(process.blocked)),
        ("SigIgn", _mask(ignored)),
        ("SigCgt", _mask(caught)),
        ("CapInh", "0" * 16),
        ("CapPrm", capabilities),
        ("CapEff", capabilities),
        ("CapBnd", "000001ffffffffff"),
        ("CapAmb", "0" * 16),
        ("NoNewPrivs", 0),
        ("Seccomp", 0),
        ("Cpus_allowed", f"{(1 << cores) - 1:x}"),
        ("Cpus_allowed_list", f"0-{cores - 1}" if cores > 1 else "0"),
        ("Mems_allowed", 1),
        ("Mems_allowed_list", 0),
        ("voluntary_ctxt_switches", 0),
        ("nonvoluntary_ctxt_switches", 0),
    ]
    if letter == "Z":
        fields = [field for field in fields if not field[0].startswith("Vm")]
    return "".join(f"{name}:\t{value}\n" for name, value in fields)


def stat(process: Process, space: PidSpace) -> str:
    """The 52 fields of proc(5)."""
    ticks = int(process.cpu * HERTZ)
    waited = int(process.children_cpu * HERTZ)
    started = int((process.start - process.kernel.boot_monotonic) * HERTZ)
    terminal, foreground = _terminal(process)
    code = process.status
    fields = (
        _parent_pid(process, space), group_number(process, space), session_number(process, space),
        terminal, foreground, 0x400000, 0, 0, 0, 0, ticks, 0, waited, 0, 20 + process.nice, process.nice,
        max(1, len(process.fibers)), 0, started, 0, 0, 18446744073709551615, 0, 0, 0, 0, 0,
        _low_bits(process.pending), _low_bits(process.blocked),
        _low_bits(n for n, h in process.handlers.items() if not callable(h)),
        _low_bits(n for n, h in process.handlers.items() if callable(h)),
        0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0 if code is None else code.signal or code.code << 8,
    )  # fmt: skip
    return f"{process.pids[space]} ({comm(process)}) {state(process)} {' '.join(map(str, fields))}\n"


def group_number(process: Process, space: PidSpace) -> int:
    return _seen_from(process, process.pgid, space)


def session_number(process: Process, space: PidSpace) -> int:
    return _seen_from(process, process.session.leader, space)


def _seen_from(process: Process, number: int, space: PidSpace) -> int:
    """A group's or session's number in another pid space: its leader's pid there, 0 if it has none."""
    if process.space is space:
        return number
    leader = process.space.table.get(number)
    return leader.pids.get(space, 0) if leader is not None else 0


def _terminal(process: Process) -> tuple[int, int]:
    """The device number of the controlling terminal and its foreground group; 0 and -1 without one."""
    session = process.session
    if session.tty is None:
        return 0, -1
    return PTS_MAJOR << 8 | session.tty.number, session.foreground


def _is_within(space: PidSpace | None, outer: PidSpace) -> bool:
    while space is not None:
        if space is outer:
            return True
        space = space.parent
    return False


def _escaped_name(process: Process) -> str:
    return comm(process).replace("\\", "\\\\").replace("\n", "\\n")


def _kilobytes(count: int) -> str:
    return f"{count:8d} kB"


def _mask(numbers: object) -> str:
    value = 0
    for number in numbers:  # type: ignore[attr-defined]
        value |= 1 << (number - 1)
    return f"{value:016x}"


def _low_bits(numbers: object) -> int:
    return int(_mask(numbers), 16) & 0x7FFFFFFF


def fdinfo(process: Process, file: OpenFile, fd: int) -> bytes:
    flags = file.flags | (0o2000000 if fd in process.fds.cloexec else 0)
    return f"pos:\t{file.offset}\nflags:\t0{flags:o}\nmnt_id:\t1\nino:\t{file.stat().ino}\n".encode()


def limits(process: Process) -> str:
    lines = [f"{'Limit':<25} {'Soft Limit':<20} {'Hard Limit':<20} {'Units':<10}\n"]
    for resource in RESOURCES:
        soft, hard = ("unlimited" if value is None else str(value) for value in getrlimit(process, resource))
        units = f"{resource.shown:<10}\n" if resource.shown else "\n"
        lines.append(f"{'Max ' + resource.name:<25} {soft:<20} {hard:<20} {units}")
    return "".join(lines)


# Mounts.


def _mount_points(process: Process) -> list[tuple[Mount, str]]:
    """Every mount this process can reach, with its path."""
    found = []
    for mount in process.fs.namespace.mounts():
        path = path_of(process.fs, Place(mount, mount.root)) if mount.root.is_dir else None
        if path is not None:
            found.append((mount, path))
    return found


def _octal(text: str) -> str:
    for character in "\\ \t\n#":
        text = text.replace(character, f"\\{ord(character):03o}")
    return text


def mounts(process: Process) -> str:
    lines = []
    for mount, path in _mount_points(process):
        access = "ro" if mount.read_only else "rw"
        lines.append(f"{_octal(mount.source)} {_octal(path)} {mount.server.kind} {access},relatime 0 0\n")
    return "".join(lines)


def mountinfo(process: Process) -> str:
    points = _mount_points(process)
    numbers = {mount: 20 + index for index, (mount, _) in enumerate(points)}
    lines = []
    for mount, path in points:
        above = numbers.get(mount.point.mount, 1) if mount.point is not None else 1
        access = "ro" if mount.read_only else "rw"
        lines.append(
            f"{numbers[mount]} {above} 0:{mount.server.dev} / {_octal(path)} {access},relatime - "
            f"{mount.server.kind} {_octal(mount.source)} {access}\n"
        )
    return "".join(lines)
