"""A template of one prepared program: `python -I -m belljar.engines.wasm.tool_host KIND ARTEFACT LIBRARY ARCHIVE FD`.

The program's start, which is the same in every run, is made once: it runs until it asks for its arguments, and waits
there, inside that host call, to be forked. Each child seals itself, learns what it is to do, and returns from the call.
The program is one that we chose and know by its digest; what it reads is the guest's, so each child is sealed first.
"""

from __future__ import annotations

import gc
import hashlib
import mmap
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

import wasmtime

from belljar.engines.artefact_host import open_checked
from belljar.engines.calls.client_host import Client, ConnectionEnded
from belljar.engines.wasi import numbers
from belljar.engines.wasi.descriptors import FileBytes, Library, LibraryFile
from belljar.engines.wasi.kernel_host import HostWorld
from belljar.engines.wasi.linker_host import Bindings, engine, guest_memory
from belljar.engines.wasi.preview1 import Preview1, functions
from belljar.engines.wasi.program import Kernel, Refused
from belljar.engines.wasm.running_host import Running
from belljar.engines.wasm.tar_library import tar_library
from belljar.engines.wasm.template_host import DATA_START, DIRECTORY, MEMORY_MAX, OVERHEAD, SPARES
from belljar.engines.wire.calls import BadFrame
from belljar.engines.wire.tools import TOOLS, Tool
from belljar.forking.server.server_host import become_child
from belljar.lockdown.children_host import Children
from belljar.lockdown.seal_host import ENGINE_SPACE, LockdownFailed, enter_namespaces, prepare_filter, prove, seal

_SUPPORT: Final = Path(__file__).parent / "support"


class NoKernel:
    """The kernel of a template: no file but the library's, and what is written is lost."""

    def call(self, name: str, *arguments: Any) -> list[Any]:
        match name:
            case "write":
                return [len(arguments[1])]
            case "fstat" if 0 <= arguments[0] <= 2:
                return [(0o010600, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0)]
            case "getfl":
                return [2, 0]
        raise Refused(numbers.ENOENT)

    def post(self, name: str, *arguments: Any) -> None:
        return


class Template:
    """The program, from its loading to its end in one of the children."""

    parks_in: tuple[str, ...] = ("args_sizes_get", "environ_sizes_get")
    """The calls that differ between runs: the first of them is where the program waits to be forked."""

    def __init__(self, tool: Tool, artefact: Path, library: Library, control: socket.socket) -> None:
        self.tool = tool
        self._control = control
        self.running: Running | None = None
        native = engine()
        with open_checked(artefact) as name:
            self.module = wasmtime.Module.deserialize_file(native, name)
        self.store = wasmtime.Store(native)
        linker = wasmtime.Linker(native)
        self.bindings = Bindings(linker)
        self.wasi = self.make_wasi(NoKernel(), HostWorld(_ended_early), library)
        calls = functions(self.wasi)
        for name in self.parks_in:
            calls[name] = self._after_fork(calls[name])
        self.bindings.define_all("wasi_snapshot_preview1", numbers.SIGNATURES, calls)
        self.define_imports()
        self.exports = linker.instantiate(self.store, self.module).exports(self.store)
        self.wasi.memory = guest_memory(self.store, self.exports)

    def make_wasi(self, kernel: Kernel, world: HostWorld, library: Library) -> Preview1:
        return Preview1(kernel, world, library)

    def define_imports(self) -> None:
        """Define what the program imports beside WASI."""

    def _after_fork(self, function: Callable[..., int]) -> Callable[..., int]:
        """A host function whose answer is another one in each child."""

        def call(*arguments: int) -> int:
            if self.running is None:
                self.park()
            return function(*arguments)

        return call

    def run(self) -> NoReturn:
        start = self.exports["_start"]
        assert isinstance(start, wasmtime.Func)
        try:
            start(self.store)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            self.failed(error)
        if self.running is None:
            raise SystemExit("the program ended before it asked for its arguments")
        self.running.end(0, 0)

    def call(self, name: str, *arguments: int) -> int:
        """Call a function of the program's; ends the process where that traps."""
        function = self.exports[name]
        assert isinstance(function, wasmtime.Func)
        try:
            found: int | None = function(self.store, *arguments)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            self.failed(error)
        return found or 0

    def failed(self, error: Exception) -> NoReturn:
        """End the process after an error of a call of the program's."""
        if self.bindings.raised is not None:
            raise self.bindings.raised from error
        if self.running is not None:
            self.running.trapped(error)
        raise error

    def park(self) -> Running:
        """Wait to be forked; return in each child, when it knows what to do."""
        prepare_filter(judged=False, threads=True)
        children = Children()
        enter_namespaces()
        gc.collect()
        gc.freeze()
        child = become_child(self._control, SPARES, children=children)
        if child is None:
            os._exit(0)
        try:
            memory = min(child.request.memory_bytes, MEMORY_MAX)
            self.store.set_limits(memory_size=memory)
            cpu_seconds = int(child.request.cpu_seconds) + 2
            keep = {child.connection.fileno()}
            seal(keep, memory + OVERHEAD, cpu_seconds, threads=True, address_space=ENGINE_SPACE)
            prove()
            client = Client(child.connection)
            self.running = Running(client, client.wait_for_start())
        except (LockdownFailed, OSError):
            os._exit(1)
        except (ConnectionEnded, BadFrame):
            os._exit(0)
        self.running.adopt(self.wasi)
        self._enter_directory(self.running.program.cwd)
        return self.running

    def _enter_directory(self, path: bytes) -> None:
        """Set the working directory that the program's C library keeps: WASI has none to begin in."""
        memory = self.wasi.memory
        memory.write(DIRECTORY, path[: DATA_START - DIRECTORY - 1] + b"\0")
        memory.write_u32(self.tool.directory, DIRECTORY)


def _ended_early(code: int) -> int:
    raise SystemExit(f"the program ended with status {code} before it asked for its arguments")


def support_files(tool: Tool) -> dict[bytes, LibraryFile | list[bytes]]:
    """Our own files for a tool, where it finds them."""
    top = _SUPPORT / tool.support
    found: dict[bytes, LibraryFile | list[bytes]] = {}
    for path in (top, *sorted(top.rglob("*"))) if tool.support else ():
        name = f"{tool.support_root}/{path.relative_to(top)}".removesuffix("/.").encode()
        is_directory = path.is_dir()
        names = sorted(os.fsencode(entry.name) for entry in path.iterdir()) if is_directory else []
        found[name] = names if is_directory else FileBytes(path.read_bytes())
    return found


def main(arguments: list[str], template: type[Template] = Template) -> None:
    kind, artefact, library, archive, fd = arguments
    tool = TOOLS[kind]
    files = support_files(tool)
    if library:
        with open(library, "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        if hashlib.sha256(mapped).hexdigest() != tool.library_sha256:
            raise SystemExit(f"{library} is not what was written there; remove it, and run `belljar prepare toolchain`")
        files |= tar_library(mapped, tool.root.encode())
    if archive:
        with open_checked(Path(archive)) as name:
            files[f"{tool.support_root}/{tool.archive}".encode()] = FileBytes(Path(name).read_bytes())
    template(tool, Path(artefact), files, socket.socket(fileno=int(fd))).run()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ConnectionEnded:
        os._exit(0)
