"""How much of the battery to run: a sample by default, everything where BELLJAR_WHOLE=1 (`make reliability`)."""

import os
from typing import Final, TypeVar

T = TypeVar("T")

WHOLE: Final = os.environ.get("BELLJAR_WHOLE") == "1"


def amount(sample: T, whole: T) -> T:
    """One of the two."""
    return whole if WHOLE else sample
