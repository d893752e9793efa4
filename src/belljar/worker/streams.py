"""Standard input, output and error of a command whose input is all there from the start.

Three pipes. Most commands leave them as they got them, and then the next command gets them too.
"""

from __future__ import annotations

from belljar.abi.flags import O_RDONLY, O_WRONLY
from belljar.kernel.kernel import Kernel
from belljar.kernel.pipe import Outlet, Pipe, PipeEnd, PipeNode, Take, discard
from belljar.kernel.vfs.openfile import OpenFile


class Streams:
    """The pipes, for one command after the other."""

    __slots__ = ("_files", "_input", "_kernel", "error", "output")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._input = Pipe(kernel.hub)
        self.output = Outlet(kernel.hub)
        self.error = Outlet(kernel.hub)
        self._files = (
            kernel.open_end(kernel.new_pipe(kernel.init, self._input), O_RDONLY),
            kernel.open_end(kernel.new_pipe(kernel.init, self.output), O_WRONLY),
            kernel.open_end(kernel.new_pipe(kernel.init, self.error), O_WRONLY),
        )
        for file in self._files:
            file.handle.close()

    def begin(self, stdin: bytes | None, output: Take, error: Take | None) -> dict[int, OpenFile]:
        """The descriptors of a command: 0, unless `stdin` is None, 1 and 2. Without `error`, that is output too."""
        now = self._kernel.now()
        given, written, said = self._files
        self.output.take = output
        _reopen(written, O_WRONLY, now)
        files = {1: written, 2: written}
        if error is not None:
            self.error.take = error
            _reopen(said, O_WRONLY, now)
            files[2] = said
        if stdin is not None:
            _reopen(given, O_RDONLY, now)
            files[0] = given
            self._input.hold(stdin)
        return files

    def end(self) -> bool:
        """Stop passing output on. Return whether no process holds the pipes, so that they can be reused."""
        output, error, source = self.output, self.error, self._input
        output.take = error.take = discard
        return not (output.writers or output.busy or error.writers or error.busy or source.readers or source.writers)


def _reopen(file: OpenFile, access: int, now: int) -> None:
    """Make an end of a pipe, whose last descriptor is closed, as if it had just been opened."""
    node, end = file.place.node, file.handle
    assert isinstance(node, PipeNode)
    assert isinstance(end, PipeEnd)
    node.time = now
    file.flags, file.offset = access, 0
    end.reopen()
