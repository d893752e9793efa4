"""Whether a program uses the data libraries: it then begins as a copy of an interpreter that has them loaded."""

from __future__ import annotations

import re
from typing import Final

_IMPORTS: Final = re.compile(
    rb"(?m)^[ \t]*(?:import|from)[ \t]+[^#\n]*?\b(?:numpy|pandas|matplotlib|scipy|sklearn|seaborn|statsmodels)\b"
    rb"|[;:][ \t]*(?:import|from)[ \t]+[^#\n]*?\b(?:numpy|pandas|matplotlib|scipy|sklearn|seaborn|statsmodels)\b"
)


def uses_data(text: bytes) -> bool:
    return _IMPORTS.search(text) is not None
