"""Times of files as a process's time zone shows them, to the nanosecond."""

from __future__ import annotations

import re
from collections.abc import Mapping

from belljar.abi.records import NANO
from belljar.shell.strftime import Zone, local, parse_zone, strftime

_FINE = re.compile(r"%%|%([-_0]*)(\d*)N|%(:{1,3})z")


def zone_of(env: Mapping[str, str]) -> Zone:
    return parse_zone(env.get("TZ", "UTC0") or "UTC0")


def format_time(template: str, ns: int, zone: Zone) -> str:
    """strftime, and %N for nanoseconds and %:z for +01:00."""
    seconds, fraction = divmod(ns, NANO)
    moment = local(seconds, zone)

    def fine(match: re.Match[str]) -> str:
        if match[3]:
            return _offset(moment.offset, len(match[3]))
        if match[0] == "%%":
            return "%%"
        digits = f"{fraction:09d}"
        width = int(match[2] or 9)
        if "-" in match[1]:
            return digits.rstrip("0") or "0"
        return digits[:width] + "0" * min(width - 9, 1000)

    return strftime(_FINE.sub(fine, template) if "N" in template or ":" in template else template, moment)


def _offset(offset: int, colons: int) -> str:
    sign = "-" if offset < 0 else "+"
    hours, rest = divmod(abs(offset), 3600)
    minutes, seconds = divmod(rest, 60)
    text = f"{sign}{hours:02d}"
    if colons == 3:
        return text + (f":{minutes:02d}" if minutes or seconds else "") + (f":{seconds:02d}" if seconds else "")
    return f"{text}:{minutes:02d}" + (f":{seconds:02d}" if colons == 2 else "")
