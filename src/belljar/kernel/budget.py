"""One exec's budget: charged before work is done or memory taken, shared by every process it starts."""

from math import inf
from typing import Final

from belljar.abi.errors import BudgetExceeded
from belljar.abi.limits import Limits
from belljar.kernel.fiber import Hub, Timer

QUANTUM: Final = 4000
"""Steps between two checks of the clock and yields to other fibers: a few milliseconds of interpreting."""


class Budget:
    """Resources used by one exec, checked against its limits.

    The hot path is `charge(1)`; interpreters may inline it as
    `budget.steps += 1` and `if budget.steps >= budget.checkpoint: budget.check()`.
    """

    __slots__ = (
        "_hub",
        "checkpoint",
        "cpu",
        "deadline",
        "earlier",
        "limits",
        "output",
        "processes",
        "spent",
        "steps",
        "timer",
    )

    def __init__(self, limits: Limits, hub: Hub) -> None:
        self._hub = hub
        self.limits = limits
        self.steps = self.earlier = 0
        """Charged since the last renewal, and before it."""
        self.checkpoint = min(QUANTUM, limits.steps)
        self.cpu = 0.0
        self.deadline = hub.clock.monotonic() + limits.wall_seconds
        self.output = 0
        self.processes = 0
        self.spent: BudgetExceeded | None = None
        self.timer: Timer | None = None
        """Fires at the deadline, for processes that only sleep; ends with the last process."""

    def renew(self, limits: Limits) -> None:
        """Reset for an interpreter's next run, without a deadline: its owner limits the time of a run."""
        self.limits = limits
        self.earlier += self.steps
        self.steps = self.output = 0
        self.checkpoint = min(QUANTUM, limits.steps)
        self.cpu = 0.0
        self.deadline = inf
        if self.timer is not None:
            self.timer.cancel()

    def renew_periodically(self) -> None:
        """For what has no deadline (a service): as much again in every period of the limit on the time of an exec."""
        if self.spent is None and self.processes:
            self.renew(self.limits)
            self._hub.call_later(self.limits.wall_seconds, self.renew_periodically)

    def charge(self, steps: int = 1) -> None:
        """Charge for work about to be done. Yields to other fibers now and then; raises when a limit is exceeded."""
        self.steps += steps
        if self.steps >= self.checkpoint:
            self.check()

    def check(self) -> None:
        """Check the limits on steps and time, and yield to the other fibers."""
        if self.spent is not None:
            raise self.spent
        if self.steps > self.limits.steps:
            self.exceed("steps")
        if self._hub.clock.monotonic() > self.deadline:
            self.exceed("wall_seconds")
        self.checkpoint = min(self.steps + QUANTUM, self.limits.steps + 1)
        if self._hub.current is not None:
            self._hub.pause()
            if self.spent is not None:
                raise self.spent

    def exceed(self, limit: str) -> None:
        """Mark the budget as exceeded and raise: every later charge of any process of this exec raises too."""
        self.spend(limit)
        assert self.spent is not None
        raise self.spent

    def spend(self, limit: str) -> None:
        """Mark the budget as exceeded without raising here: the next charge does."""
        if self.spent is None:
            self.spent = BudgetExceeded(limit, getattr(self.limits, limit))
        self.checkpoint = 0

    def charge_size(self, size: int) -> None:
        """Refuse a string or list of this size before it is built."""
        if size > self.limits.expansion_bytes:
            self.exceed("expansion_bytes")

    def charge_output(self, size: int) -> None:
        self.output += size
        if self.output > self.limits.output_bytes:
            self.exceed("output_bytes")

    def charge_time(self, cpu_seconds: float) -> bool:
        """Account processor time and check the deadline (called by the CPU guard); False once a limit is exceeded."""
        self.cpu += cpu_seconds
        if self.cpu > self.limits.cpu_seconds:
            self.spend("cpu_seconds")
        if self._hub.clock.monotonic() > self.deadline:
            self.spend("wall_seconds")
        return self.spent is None
