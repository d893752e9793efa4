"""The output of `time`: its default and POSIX forms, and TIMEFORMAT."""

from __future__ import annotations

import re

DEFAULT = "\nreal\t%3lR\nuser\t%3lU\nsys\t%3lS"
POSIX = "real %2R\nuser %2U\nsys %2S"
WRONG = re.compile(r"%[0-9]?l?([^RUS%P0-9l])", re.DOTALL)
FIELD = re.compile(r"%(?:(%)|([0-9]?)(l?)([RUS])|(P))")


def render_times(template: str | None, real: float, user: float, system: float, *, posix: bool) -> str:
    """The text `time` prints; empty if TIMEFORMAT is."""
    if posix:
        template = POSIX
    elif template is None:
        template = DEFAULT

    def field(match: re.Match[str]) -> str:
        percent, digits, long, which, share = match.groups()
        if percent:
            return "%"
        if share:
            return f"{100 * (user + system) / real if real else 0:.2f}"
        value = {"R": real, "U": user, "S": system}[which]
        places = min(int(digits), 3) if digits else 3
        if not long:
            return f"{value:.{places}f}"
        minutes = int(value // 60)
        return f"{minutes}m{value - 60 * minutes:.{places}f}s"

    return FIELD.sub(field, template)


def invalid_character(template: str) -> str:
    """The first invalid character behind a `%`; "" if there is none."""
    match = WRONG.search(FIELD.sub("", template))
    return match.group(1) if match else ""
