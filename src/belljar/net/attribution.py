"""Names by address, as this sandbox's accepted DNS answers have them: the only source of a trusted host name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from belljar.net.addresses import Address

GRACE: Final = 60.0
"""Seconds past its TTL for which an answer still names an address: connections come late."""
KEEP_MAX: Final = 3600.0
"""Upper bound of a TTL, in seconds."""
NAMES_MAX: Final = 1024


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    addresses: tuple[Address, ...]
    records: tuple[str, ...]
    """The whole answer, as lines."""
    fresh_until: float
    until: float


class Attribution:
    """The accepted answers of one sandbox, for a while."""

    def __init__(self) -> None:
        self._names: OrderedDict[tuple[str, str], CachedAnswer] = OrderedDict()

    def learn(
        self, name: str, kind: str, addresses: Sequence[Address], ttl: float, now: float, records: Sequence[str] = ()
    ) -> None:
        """Store an accepted answer: `name` is at these addresses."""
        ttl = min(max(ttl, 0.0), KEEP_MAX)
        self._names.pop((name, kind), None)
        self._names[name, kind] = CachedAnswer(tuple(addresses), tuple(records), now + ttl, now + ttl + GRACE)
        while len(self._names) > NAMES_MAX:
            self._names.popitem(last=False)

    def fresh(self, name: str, kind: str, now: float) -> CachedAnswer | None:
        """Return a name's cached answer while its TTL lasts."""
        known = self._names.get((name, kind))
        return known if known is not None and now < known.fresh_until else None

    def names(self, address: Address, now: float) -> tuple[str, ...]:
        """The names that led to an address, latest first."""
        found = [name for (name, _), known in self._names.items() if address in known.addresses and now < known.until]
        return tuple(dict.fromkeys(reversed(found)))
