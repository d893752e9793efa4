"""/proc: the processes of one pid space and the figures of the sandbox, in Linux's formats; nothing of the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from belljar.abi.errno import EACCES, EINVAL, ENOENT, EPERM, ESRCH
from belljar.abi.errors import SysError
from belljar.abi.flags import O_ACCMODE
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.system import DOMAINNAME, OSRELEASE, OSTYPE, VERSION
from belljar.kernel.fs import proc_system as system
from belljar.kernel.fs import proc_text as text
from belljar.kernel.fs.proc_net import tcp_table
from belljar.kernel.fs.synthetic import Entry, Folder, Link, SyntheticServer, Text, folder, static_text
from belljar.kernel.vfs.namespace import Place

if TYPE_CHECKING:
    from belljar.kernel.kernel import Kernel
    from belljar.kernel.pids import PidSpace
    from belljar.kernel.process import Process

HOSTNAME_MAX = 64


class ProcServer(SyntheticServer):
    """/proc of one pid space; the calling process decides `self` and what may be read."""

    kind = "proc"

    def __init__(self, kernel: Kernel, space: PidSpace) -> None:
        self._kernel = kernel
        self._space = space
        self._load = system.LoadAverage()
        self._boot_id = ""
        kernel_settings: dict[str, Entry] = {
            "hostname": Text(self._hostname, 0o644, write=self._set_hostname),
            "domainname": static_text(DOMAINNAME + "\n"),
            "ostype": static_text(OSTYPE + "\n"),
            "osrelease": static_text(OSRELEASE + "\n"),
            "version": static_text(VERSION + "\n"),
            "pid_max": static_text("4194304\n"),
            "threads-max": Text(lambda: b"%d\n" % kernel.limits.processes),
            "ngroups_max": static_text("65536\n"),
            "random": folder({
                "uuid": Text(lambda: fsencode(_uuid(kernel.machine.entropy.random_bytes(16)) + "\n")),
                "boot_id": Text(self._boot),
                "entropy_avail": static_text("256\n"),
                "poolsize": static_text("256\n"),
            }),
        }  # fmt: skip
        self._top: dict[str, Entry] = {
            "self": Link(self._self),
            "thread-self": Link(lambda: f"{self._self()}/task/{self._self()}"),
            "meminfo": Text(lambda: system.meminfo(kernel)),
            "cpuinfo": Text(lambda: system.cpuinfo(kernel)),
            "uptime": Text(lambda: system.uptime(kernel)),
            "loadavg": Text(lambda: self._load.render(kernel, space)),
            "stat": Text(lambda: system.stat(kernel, space)),
            "version": static_text(f"{OSTYPE} version {OSRELEASE} (belljar@belljar) {VERSION}\n"),
            "filesystems": Text(system.filesystems),
            "cmdline": static_text("belljar\n"),
            "swaps": static_text("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"),
            "mounts": Link(lambda: "self/mounts"),
            "net": folder({
                "tcp": Text(lambda: tcp_table((space.tcp_sockets or kernel.tcp_sockets)(), 4)),
                "tcp6": Text(lambda: tcp_table((space.tcp_sockets or kernel.tcp_sockets)(), 6)),
            }),
            "sys": folder({
                "kernel": folder(kernel_settings),
                "fs": folder({
                    "file-max": static_text("9223372036854775807\n"),
                    "pipe-max-size": static_text("1048576\n"),
                }),
                "vm": folder({"overcommit_memory": static_text("0\n"), "swappiness": static_text("60\n")}),
            }),
        }  # fmt: skip
        super().__init__(Folder(self._names, self._find), kernel.now)

    # The caller.

    def _caller(self) -> Process:
        return self._kernel.caller()

    def _self(self) -> str:
        pid = self._caller().pids.get(self._space)
        if pid is None:
            raise SysError(ENOENT)
        return str(pid)

    def _check_access(self, process: Process) -> None:
        """Only the same user or root may follow a process's links. EACCES; ESRCH once it is gone."""
        if process.status is not None:
            raise SysError(ESRCH)
        caller = self._caller()
        if caller is not process and caller.fs.credentials.uid not in (0, process.fs.credentials.uid):
            raise SysError(EACCES)

    # The top.

    def _boot(self) -> bytes:
        """Drawn when it is first read: sandboxes are forked from one that has booted already."""
        self._boot_id = self._boot_id or _uuid(self._kernel.machine.entropy.random_bytes(16))
        return fsencode(self._boot_id + "\n")

    def _names(self) -> list[str]:
        return [*map(str, sorted(self._space.table)), *self._top]

    def _find(self, name: str) -> Entry | None:
        entry = self._top.get(name)
        if entry is None and _is_number(name):
            process = self._space.table.get(int(name))
            if process is not None:
                return self._process(process)
        return entry

    def _hostname(self) -> bytes:
        return fsencode(self._caller().hostname + "\n")

    def _set_hostname(self, data: bytes) -> None:
        if self._caller().fs.credentials.uid != 0:
            raise SysError(EPERM)
        name = fsdecode(data.partition(b"\n")[0].partition(b"\0")[0])
        if len(name) > HOSTNAME_MAX:
            raise SysError(EINVAL)
        self._caller().space.hostname = name

    # One process.

    def _process(self, process: Process) -> Folder:
        who = process.fs.credentials
        owner = (who.uid, who.gid)
        entries = self._process_files(process, owner)
        own = dict(entries)
        name = str(process.pids[self._space])
        own["task"] = folder({name: folder(entries, owner=owner)}, owner=owner)
        return folder(own, owner=owner)

    def _process_files(self, process: Process, owner: tuple[int, int]) -> dict[str, Entry]:
        kernel, space = self._kernel, self._space

        def show(render: Callable[[], str | bytes], mode: int = 0o444) -> Text:
            def checked() -> bytes:
                if process.pids.get(space) not in space.table:
                    raise SysError(ESRCH)
                found = render()
                return found if isinstance(found, bytes) else fsencode(found)

            return Text(checked, mode, owner)

        def private(render: Callable[[], bytes]) -> Text:
            def checked() -> bytes:
                self._check_access(process)
                return render()

            return Text(checked, 0o400, owner)

        def link(find: Callable[[], Place], target: Callable[[], str]) -> Link:
            def jump() -> Place:
                self._check_access(process)
                return find()

            def readlink() -> str:
                self._check_access(process)
                return target()

            return Link(readlink, jump, 0o777, owner)

        fs = process.fs
        return {
            "status": show(lambda: text.status(process, space)),
            "stat": show(lambda: text.stat(process, space)),
            "statm": static_text("0 0 0 0 0 0 0\n"),
            "comm": show(lambda: text.comm(process) + "\n"),
            "cmdline": show(lambda: text.cmdline(process)),
            "environ": private(lambda: text.environ(process)),
            "cwd": link(lambda: fs.cwd, lambda: text.place_name(self._caller(), fs.cwd)),
            "root": link(lambda: fs.root, lambda: text.place_name(self._caller(), fs.root)),
            "exe": link(lambda: fs.resolve(text.executable(process)), lambda: text.executable(process)),
            "fd": Folder(
                lambda: self._fd_names(process), lambda name: self._fd_link(process, name, owner), 0o500, owner
            ),
            "fdinfo": Folder(
                lambda: self._fd_names(process), lambda name: self._fd_info(process, name, owner), 0o500, owner
            ),
            "ns": folder(
                {
                    kind: Link(partial(text.namespace_name, kernel, process, kind), None, 0o777, owner)
                    for kind in ("mnt", "pid", "uts")
                },
                0o511,
                owner,
            ),
            "mounts": show(lambda: text.mounts(process)),
            "mountinfo": show(lambda: text.mountinfo(process)),
            "limits": show(lambda: text.limits(process)),
            "maps": private(lambda: b""),
            "oom_score": static_text("0\n"),
            "oom_score_adj": static_text("0\n"),
            "oom_adj": static_text("0\n"),
            "loginuid": static_text("4294967295"),
            "cgroup": static_text("0::/\n"),
            "wchan": static_text("0"),
        }

    def _fd_names(self, process: Process) -> list[str]:
        self._check_access(process)
        return [str(fd) for fd in process.fds.fds()]

    def _fd_link(self, process: Process, name: str, owner: tuple[int, int]) -> Link | None:
        file = process.fds.get(int(name)) if _is_number(name) else None
        if file is None:
            return None
        self._check_access(process)
        access = (0o500, 0o300, 0o700, 0o700)[file.flags & O_ACCMODE]
        return Link(lambda: text.file_name(process, file), lambda: file.place, access, owner)

    def _fd_info(self, process: Process, name: str, owner: tuple[int, int]) -> Text | None:
        file = process.fds.get(int(name)) if _is_number(name) else None
        if file is None:
            return None
        fd = int(name)
        return Text(lambda: text.fdinfo(process, file, fd), 0o400, owner)


def _is_number(name: str) -> bool:
    """Whether Linux reads it as a pid or descriptor: digits, no leading zero, not very long."""
    return name.isascii() and name.isdigit() and len(name) < 12 and (name == "0" or name[0] != "0")


def _uuid(data: bytes) -> str:
    """A random UUID (RFC 9562): version 4 in byte 6, the variant in byte 8."""
    digits = bytearray(data)
    digits[6] = digits[6] & 0x0F | 0x40
    digits[8] = digits[8] & 0x3F | 0x80
    text = digits.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
