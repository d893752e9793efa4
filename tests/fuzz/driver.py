"""The fuzzing loop that all targets share: cases from a corpus, changed piece by piece, and what must hold after each.

A case is bytes. A target splits it into the pieces of its protocol (frames, lines, messages) and makes new pieces; the
driver leaves some out, repeats, exchanges and damages them. Cases with an outcome that was not seen before are kept to
be changed further. The same seed gives the same cases, as long as the target answers alike.
"""

from __future__ import annotations

import faulthandler
import gc
import hashlib
import importlib
import os
import pkgutil
import random
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.fuzz import targets

CORPUS: Final = Path(__file__).with_name("corpus")
FOUND: Final = Path(__file__).parents[2] / "build" / "fuzz"
"""Where a case that broke something is written."""
GROWTH_MAX: Final = 64 << 20
CASE_MAX: Final = 256 << 10
PIECES_MAX: Final = 400
HANG_SECONDS: Final = 20.0
CHECK_EVERY: Final = 200
"""Cases between two looks at the target's health and the process's memory."""
_KEPT_BYTES: Final = 8 << 20
"""Cases that are kept to be changed further, in all: they are not to be taken for growth."""


_SHOWN: Final = 100


class Target(ABC):
    """One side of a protocol under attack. A context manager: `__enter__` starts what it needs, for many cases."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Let go of servers and processes."""

    @abstractmethod
    def piece(self, rng: random.Random) -> bytes:
        """One piece of the protocol: right in form, odd in content."""

    @abstractmethod
    def split(self, data: bytes) -> list[bytes]:
        """The pieces of a case. Joined they are the case again, whatever it is."""

    @abstractmethod
    def run(self, data: bytes) -> Hashable:
        """Try one case; gives its outcome in a few words. Any exception is a finding: catch what is right."""

    @abstractmethod
    def check(self) -> None:
        """Assert that all is well: an honest neighbour is served, nothing is held that should not be."""


class Finding(AssertionError):
    """A case that broke something."""


@dataclass(slots=True)
class Report:
    cases: int = 0
    outcomes: set[Hashable] = field(default_factory=set)
    growth: int = 0
    kept: list[bytes] = field(default_factory=list)
    """The first case of each of some outcomes."""


def names() -> list[str]:
    """All targets."""
    return sorted(m.name for m in pkgutil.iter_modules(targets.__path__) if not m.name.startswith("_"))


def load(name: str) -> Target:
    made: Target = importlib.import_module(f"tests.fuzz.targets.{name}").target()
    return made


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def corpus(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def fuzz(name: str, seconds: float, seed: int) -> Report:
    """Try cases for so long. Finding, with the file that has the case."""
    rng = random.Random(seed)
    report = Report()
    with load(name) as target:
        kept = corpus(name) or [b""]
        room = _KEPT_BYTES
        for case in kept:
            _try(name, target, case, report)
        _check(name, target, kept[-1])
        gc.collect()
        before = resident()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            case = change(target, rng.choice(kept), rng)
            if _try(name, target, case, report) and room > len(case):
                kept.append(case)
                room -= len(case)
            if report.cases % CHECK_EVERY == 0:
                _check(name, target, case)
                gc.collect()
                report.growth = resident() - before
                if report.growth > GROWTH_MAX:
                    raise Finding(f"{name}: grew by {report.growth >> 20} MB in {report.cases} cases (seed {seed})")
        _check(name, target, case)
    return report


def change(target: Target, case: bytes, rng: random.Random) -> bytes:
    """A new case from an old one."""
    pieces = target.split(case)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = rng.randrange(len(pieces) + 1)
        match rng.randrange(10):
            case 0 | 1 | 2:
                pieces.insert(at, target.piece(rng))
            case 3:
                pieces[at : at + 1] = [target.piece(rng)]
            case 4:
                del pieces[at : at + rng.choice((1, 1, 2, 10))]
            case 5:
                pieces[at:at] = pieces[at : at + 1] * rng.choice((1, 2, 5, 50))
            case 6 if len(pieces) > 1:
                other = rng.randrange(len(pieces))
                at %= len(pieces)
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case _ if pieces:
                at %= len(pieces)
                pieces[at] = damage(pieces[at], rng)
    return b"".join(pieces[:PIECES_MAX])[:CASE_MAX]


def damage(piece: bytes, rng: random.Random) -> bytes:
    """The piece with bytes changed, left out, repeated or cut off."""
    data = bytearray(piece)
    if not data:
        return bytes(rng.randrange(256) for _ in range(4))
    at = rng.randrange(len(data))
    match rng.randrange(7):
        case 0:
            data[at] ^= 1 << rng.randrange(8)
        case 1:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, 10, 13, 32))
        case 2:
            del data[at : at + rng.choice((1, 2, 4, 100))]
        case 3:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 2, 8))))
        case 4:
            data[at:at] = data[at : at + 16] * rng.choice((1, 8, 200))
        case 5:
            number = rng.choice((0, 1, 0x7FFF, 0xFFFF, 1 << 20, 0x7FFFFFFF, 0xFFFFFFFF))
            data[at : at + 4] = number.to_bytes(4, rng.choice(("little", "big")))
        case _:
            del data[at:]
    return bytes(data)


def _try(name: str, target: Target, case: bytes, report: Report) -> bool:
    """Run one case; whether its outcome is new."""
    began = time.monotonic()
    faulthandler.dump_traceback_later(5 * HANG_SECONDS, exit=False)
    try:
        outcome = target.run(case)
    except Exception as error:
        raise _finding(name, case, "".join(traceback.format_exception(error))) from error
    finally:
        faulthandler.cancel_dump_traceback_later()
    if time.monotonic() - began > HANG_SECONDS:
        raise _finding(name, case, f"took {time.monotonic() - began:.1f} s")
    report.cases += 1
    if outcome in report.outcomes:
        return False
    report.outcomes.add(outcome)
    if len(report.kept) < _SHOWN:
        report.kept.append(case)
    return True


def _check(name: str, target: Target, last: bytes) -> None:
    try:
        target.check()
    except Exception as error:
        raise _finding(name, last, f"not well after some case:\n{traceback.format_exc()}") from error


def _finding(name: str, case: bytes, why: str) -> Finding:
    FOUND.mkdir(parents=True, exist_ok=True)
    path = FOUND / f"{name}-{hashlib.sha256(case).hexdigest()[:12]}"
    path.write_bytes(case)
    return Finding(f"{name}: {path} {why}")
