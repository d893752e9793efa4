"""The locale a process asks for: whether its characters are UTF-8 sequences or single bytes."""

from __future__ import annotations

from collections.abc import Mapping


def is_utf8(env: Mapping[str, str]) -> bool:
    """LC_ALL, LC_CTYPE, LANG, the first that is set; with none of them the sandbox's own, C.UTF-8."""
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        value = env.get(name)
        if value:
            charset = value.partition(".")[2].partition("@")[0]
            return charset.replace("-", "").lower() == "utf8"
    return True
