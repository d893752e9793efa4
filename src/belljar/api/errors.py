"""Errors that the owner of a sandbox sees. Every message says what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from belljar.abi.errno import strerror
from belljar.abi.errors import ImageError as ImageError
from belljar.abi.errors import PolicyError as PolicyError
from belljar.abi.errors import SandboxError as SandboxError
from belljar.abi.errors import SnapshotError as SnapshotError
from belljar.lockdown.layers import LAYERS, TIERS

if TYPE_CHECKING:
    from belljar.api.results import ExecResult


_SHOWN: Final = 4000
_LISTED: Final = 20


def printable(text: str) -> str:
    """Guest text for a message or a log line: no control characters, no line breaks, not endless."""
    cut = text[:_SHOWN]
    shown = cut if cut.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut)
    return shown if len(text) <= _SHOWN else shown + "..."


class SandboxClosed(SandboxError):
    """The sandbox is gone: closed by you, or its worker ended. Make a new one."""


class InfrastructureError(Exception):
    """The server of a remote sandbox, or the way to it, failed: nothing is known to be wrong with the task. Try again,
    or elsewhere."""


ENDED: Final = (SandboxError, InfrastructureError)
"""Raised when a sandbox has ended, for whatever reason."""
EndedError = SandboxError | InfrastructureError


class SandboxCreationError(SandboxError):
    """A sandbox could not be made; `__cause__` has the reason."""


class NotOnThisTier(SandboxError):
    """A sandbox's tier can't do this; the message names one that can."""

    def __init__(self, call: str, tier: str, other: str, why: str = "") -> None:
        reason = f" ({why})" if why else ""
        super().__init__(f"{call} is not possible on tier {tier!r}{reason}: use tier={other!r}")
        self.call = call
        self.tier = tier
        self.other = other


class IsolationUnavailable(SandboxError):
    """A layer of isolation that was required does not hold on this machine."""

    def __init__(self, missing: set[str], held: list[str]) -> None:
        names = ", ".join(sorted(missing))
        what = f"required isolation is not available here: {names}" + (f" (held: {', '.join(held)})" if held else "")
        unknown = sorted(missing - {name for layers in TIERS.values() for name in layers})
        super().__init__(
            f"{what}. There is no layer called {', '.join(unknown)}: choose from {', '.join(LAYERS)}."
            if unknown
            else f"{what}. Allow it on this machine (`belljar doctor` tells more), or leave it out of require=."
        )
        self.missing = missing
        self.held = held


class EngineUnavailable(SandboxError):
    """An interpreter is not installed; the message says what to install."""


class FileError(SandboxError):
    """A file operation failed, as the guest's system call would: `errno` and `path`."""

    def __init__(self, errno: int, path: str) -> None:
        self.strerror = strerror(errno)
        super().__init__(f"{printable(path)}: {self.strerror}")
        self.errno = errno
        self.path = path


class RefusedFile(NamedTuple):
    """A file that was not written to your machine, and the rule that forbids it."""

    path: str
    rule: str
    why: str


class ProtectedFileError(SandboxError):
    """Nothing was written, because of files that would make your machine run something: `refused` names them."""

    def __init__(self, refused: Sequence[RefusedFile]) -> None:
        shown = "".join(f"\n  {printable(file.path)}: {file.why} (rule {file.rule!r})" for file in refused[:_LISTED])
        more = f"\n  and {len(refused) - _LISTED} more" if len(refused) > _LISTED else ""
        rules = ", ".join(repr(rule) for rule in dict.fromkeys(file.rule for file in refused))
        super().__init__(
            f"nothing was written: {len(refused)} of the files may make this machine run something by themselves"
            f"{shown}{more}\nLook at them first; then let rules through by trust=[{rules}], or single paths by "
            "trust=[path, ...], or everything by trust=True."
        )
        self.refused = list(refused)


class ConflictError(SandboxError):
    """Changes were not applied: the files of `conflicts` are not as they were before them, on your machine."""

    def __init__(self, conflicts: Sequence[str]) -> None:
        shown = "".join(f"\n  {printable(path)}" for path in conflicts[:_LISTED])
        more = f"\n  and {len(conflicts) - _LISTED} more" if len(conflicts) > _LISTED else ""
        super().__init__(
            f"{len(conflicts)} of the files were changed on this machine as well{shown}{more}\n"
            "Ask for the changes again and read their diff: trust=['conflict'] lets those through that it marks as "
            "changed since they were copied. Or name other paths."
        )
        self.conflicts = list(conflicts)


class ExecError(SandboxError):
    """A command did not exit with 0; raised by `ExecResult.check()`."""

    def __init__(self, result: ExecResult) -> None:
        tail = result.stderr.strip().splitlines()[-3:]
        said = f": {printable(' / '.join(tail))}" if tail else ""
        why = f" (limit: {result.limit})" if result.limit else ""
        super().__init__(f"exit code {result.exit_code}{why}{said}")
        self.result = result


class ContainerError(SandboxError):
    """A container can't be made, or is not there; the message says why."""


class ServiceError(SandboxError):
    """A service is not there, or not ready; the message says why."""


class ToolError(SandboxError):
    """Raise it in a tool or host function: the guest sees its text as it is.

    Of any other exception it sees the text without paths and addresses of your process.
    """


class PortClosed(SandboxError, ConnectionRefusedError):
    """Nothing listens on a port of the sandbox."""
