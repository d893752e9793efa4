"""What Perl and Ruby ask of the sandbox beyond WASI: commands, pipes to them, file modes (see `support`).

A request is the opening of a file below `/.belljar`: the operation and its arguments, each in hexadecimal. The answer
is the file's contents; of a pipe it is the pipe itself.
"""

from __future__ import annotations

from typing import Final

from belljar.abi.flags import O_RDONLY, O_WRONLY
from belljar.abi.signals import Signal
from belljar.engines.wasi import numbers as n
from belljar.engines.wasi.descriptors import Descriptor, FileBytes, rights_for
from belljar.engines.wasi.preview1 import Preview1
from belljar.engines.wasi.program import Refused
from belljar.engines.wire.calls import AT_FDCWD

CHANNEL: Final = b".belljar/"
_REQUEST_MAX: Final = 1 << 20
_OUTPUT_MAX: Final = 256 << 20
_SHELL: Final = frozenset(b"$&*(){}[]'\";\\|?<>~`\n")
"""Characters for which they give a command to the shell."""
_PIECE: Final = 1 << 16


class ChannelWasi(Preview1):
    """WASI for an interpreter. `directory_at`: where its C library has the address of its working directory."""

    directory_at = 0

    def path_open(self, fd: int, lookup: int, address: int, length: int, *rest: int) -> int:
        if length <= _REQUEST_MAX and self.memory.read(address, min(length, len(CHANNEL))) == CHANNEL:
            oflags, rights, _, _, result = rest
            self.memory.check(result, 4)
            operation, *words = self.memory.read(address, length)[len(CHANNEL) :].split(b"/")
            try:
                answer = self._ask(operation, [bytes.fromhex(word.decode("ascii")) for word in words])
            except (ValueError, KeyError, IndexError, TypeError):
                return n.EINVAL
            if isinstance(answer, int):
                self.memory.write_u32(result, answer)
                return 0
            return self._open_held(b"/" + CHANNEL + operation, FileBytes(answer), oflags & 0, False, rights, result)
        return super().path_open(fd, lookup, address, length, *rest)

    def fd_close(self, fd: int) -> int:
        child = self._children.pop(fd, None)
        status = super().fd_close(fd)
        if child is not None:
            self._status = b"%d" % self._wait_for(child)
        return status

    def enter(self) -> None:
        """Begin as a program's process."""
        self._children: dict[int, int] = {}
        """Commands at the other end of pipes, by the descriptor."""
        self._status = b""
        self.compiled = False
        """Whether the program got past its compilation."""
        self.left: int | None = None
        """The code that it exits with while it is compiled."""

    def _ask(self, operation: bytes, words: list[bytes]) -> bytes | int:
        """The answer, or the descriptor of a pipe. Refused, ValueError."""
        match operation:
            case b"run":
                return b"%d" % self._wait_for(self._spawn(words))
            case b"capture":
                reader, writer = self._pipe()
                child = self._spawn(words, {1: writer})
                output = self._read_all(reader)
                return b"%d\n" % self._wait_for(child) + output
            case b"reader" | b"writer":
                return self._open_pipe(words, reads=operation == b"reader")
            case b"status":
                status, self._status = self._status, b""
                return status
            case b"dup":
                return self._duplicate(int(words[0]))
            case b"dup2":
                source, target = int(words[0]), int(words[1])
                self.share(source)
                self.call("dup2", source, target, 0)
                self.forget(target)
                return b""
            case b"ids":
                self.compiled = True
                return b" ".join(b"%d" % number for number in self.call("ids")[0])
            case b"leave":
                self.left = int(words[0]) & 0xFF
                return b""
            case b"kill":
                return self._kill(*words)
            case b"stat" | b"lstat":
                (stat,) = self.call("stat", AT_FDCWD, self._absolute(words[0]), int(operation == b"lstat"))
                return b"%d %d %d" % (stat[0], stat[4], stat[5])
            case b"chmod":
                self.call("chmod", AT_FDCWD, self._absolute(words[1]), int(words[0]), 0)
                return b""
            case b"umask":
                (old,) = self.call("umask", int(words[0]) if words else 0)
                if not words:
                    self.call("umask", old)
                return b"%d" % old
        raise Refused(n.ENOENT)

    def _directory(self) -> bytes:
        address = int.from_bytes(self.memory.read(self.directory_at, 4), "little")
        return self.memory.read(address, min(4096, self.memory.size() - address)).partition(b"\0")[0]

    def _absolute(self, path: bytes) -> bytes:
        return path if path.startswith(b"/") else self._directory() + b"/" + path

    def _pipe(self) -> tuple[int, int]:
        reader, writer = self.call("pipe", 1)
        return reader, writer

    def _spawn(self, words: list[bytes], targets: dict[int, int] | None = None) -> int:
        """Start a command: its environment's size, the environment, and its words. `targets` are its descriptors."""
        size = int(words[0])
        env, argv = words[1 : size + 1], words[size + 1 :]
        if not argv:
            raise Refused(n.EINVAL)
        if len(argv) == 1:
            argv = [b"/bin/sh", b"-c", argv[0]] if _SHELL & set(argv[0]) else argv[0].split() or [b""]
        targets = targets or {}
        for fd in (0, 1, 2):
            self.share(fd)
        try:
            sources = list(targets.values())
            (pid,) = self.call("spawn", argv[0], argv, env, self._directory(), list(targets), sources, 0)
        finally:
            for fd in targets.values():
                self.call("close", fd)
        return int(pid)

    def _wait_for(self, pid: int) -> int:
        """The status of a command, as wait(2) gives it."""
        _, code, signal = self.call("wait", pid, 0)
        return int(code << 8 | signal)

    def _read_all(self, fd: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while piece := self.call("read", fd, _PIECE)[0]:
            size += len(piece)
            if size > _OUTPUT_MAX:
                raise Refused(n.ENOMEM)
            parts.append(piece)
        self.call("close", fd)
        return b"".join(parts)

    def _duplicate(self, fd: int) -> int:
        """Another descriptor of the same file: the kernel keeps the offset for both."""
        found = self.descriptor(fd)
        self.share(fd)
        (copy,) = self.call("dup", fd, 3, 1)
        self._fds[copy] = Descriptor(found.kind, found.rights, found.inheriting, found.flags)
        return int(copy)

    def _kill(self, name: bytes, pid: bytes) -> bytes:
        number = name.removeprefix(b"-").removeprefix(b"SIG").decode()
        group = name.startswith(b"-")
        signal = int(number) if number.isdecimal() else Signal[number]
        self.call("kill", -abs(int(pid)) if group else int(pid), signal)
        return b""

    def _open_pipe(self, words: list[bytes], *, reads: bool) -> int:
        reader, writer = self._pipe()
        ours, theirs = (reader, writer) if reads else (writer, reader)
        child = self._spawn(words, {1 if reads else 0: theirs})
        kind, flags = n.file_type(0o010600), O_RDONLY if reads else O_WRONLY
        self._fds[ours] = Descriptor(kind, rights_for(kind, flags), n.ALL_RIGHTS, 0)
        self._children[ours] = child
        return ours
