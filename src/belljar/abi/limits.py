"""Resource limits of one exec and of one sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Final, Self

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
OVERHEAD = 256 * MIB
"""Memory the interpreter itself needs on top of a sandbox's memory limit."""
_MOST: Final = 1 << 53
_MOST_SECONDS: Final = 1e9


def check_positive(limits: "Limits | RunLimits") -> None:
    """TypeError, ValueError for a field that is no positive number. A whole number may be written as 1e6."""
    kind = type(limits).__name__
    for field in fields(limits):
        value = getattr(limits, field.name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{kind}.{field.name} must be a number, not {type(value).__name__}")
        if not value > 0:
            raise ValueError(f"{kind}.{field.name} must be positive, not {value!r}")
        if value > (_MOST if field.type is int else _MOST_SECONDS):
            raise ValueError(f"{kind}.{field.name}={value!r} is more than any machine has: choose a smaller number")
        if field.type is int and isinstance(value, float):
            if not value.is_integer():
                raise ValueError(f"{kind}.{field.name} must be a whole number, not {value!r}")
            object.__setattr__(limits, field.name, int(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Budgets of one exec, shared by everything it starts, and the quotas of the sandbox around it.

    The defaults allow a long build or data job and stop an endless loop within a minute.
    """

    # One exec: when one of these is spent, every process of the exec ends and the result names it.
    steps: int = 2_000_000_000
    """Units of interpreter work: a simple command, a loop turn, an awk statement, a record."""
    cpu_seconds: float = 60.0
    """Processor time of the exec."""
    wall_seconds: float = 600.0
    """Time from start to end, sleeping included."""
    output_bytes: int = 64 * MIB
    """Output sent to the caller, stdout and stderr together."""
    processes: int = 1024
    """Live processes of the exec at one moment."""
    depth: int = 1000
    """Nested function calls, sources, substitutions and subshells."""
    expansion_bytes: int = 64 * MIB
    """The size of any one string or word list that an expansion builds."""

    # One process.
    open_files: int = 1024
    """File descriptors of one process (EMFILE)."""

    # The whole sandbox, for as long as it lives: the answer is ENOSPC, as a full disk gives.
    file_bytes: int = 1 * GIB
    """Bytes held by all files, deleted-but-open ones included."""
    files: int = 1_000_000
    """Files, directories and links."""
    memory_bytes: int = 2 * GIB
    """Memory of the worker process (enforced from outside it)."""

    def __post_init__(self) -> None:
        check_positive(self)

    def merged(self, other: Self) -> Self:
        """These limits with those of `other` that are not its defaults. ValueError for one that would be higher."""
        chosen = {f.name: getattr(other, f.name) for f in fields(self) if getattr(other, f.name) != f.default}
        for name, value in chosen.items():
            if value > getattr(self, name):
                raise ValueError(
                    f"limits: {name}={value:,} is more than the sandbox's own {getattr(self, name):,}; "
                    f"give it to Sandbox(limits=Limits({name}=...))"
                )
        return replace(self, **chosen) if chosen else self

    @lru_cache(maxsize=32)  # noqa: B019 - frozen, and mostly the same few: each run of an interpreter asks
    def narrowed(self, other: Self) -> Self:
        """The smaller of the two in every field: an exec may ask for less than its sandbox, never more."""
        return type(self)(**{f.name: min(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)})

    def lowered(self, given: Mapping[str, float]) -> Self:
        """These limits with the given ones, where those are lower."""
        return replace(self, **{name: min(value, getattr(self, name)) for name, value in given.items()})


def explain_limit(name: str, allowed: float) -> str:
    """One line for a command's standard error: the limit that stopped it, and its value."""
    match name:
        case "wall_seconds":
            what = f"timed out after {allowed:g} s"
        case "cpu_seconds":
            what = f"used up {allowed:g} s of processor time"
        case "output_bytes":
            what = f"wrote more than {_size(allowed)} of output"
        case "memory_bytes":
            what = f"needed more than {_size(allowed)} of memory"
        case _ if name.endswith("_bytes"):
            what = f"needed more than {_size(allowed)}"
        case _:
            what = f"needed more than {allowed:,.0f} {name}"
    return f"belljar: {what} (limit {name}) and was stopped\n"


def _size(count: float) -> str:
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:g} {name}" if count % unit == 0 else f"{count / unit:.1f} {name}"
    return f"{count:.0f} bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Limits of one run of an interpreter. A run that reaches one of them ends, and its error says which."""

    cpu_ms: int = 30_000
    """Processor time; waiting does not count."""
    wall_ms: int = 60_000
    """Time from start to end, host functions included."""
    memory_mb: int = 512
    """Memory on top of what the interpreter (or its prefix) already held."""
    max_bridge_calls: int = 10_000
    """Calls of host functions."""
    max_bridge_bytes: int = 64 * MIB
    """Arguments and results of host functions together, as they travel."""

    def __post_init__(self) -> None:
        check_positive(self)
