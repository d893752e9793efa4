"""Warm processes that fork sealed children on request: zygotes, engine templates, and processes forked from those.

`owner/` runs in the owner's process, `server/` in the process that is forked; `wire.py` is what they say to each other.
"""

CPU_GUARD = "defer"
"""See kernel/cpu_guard_host.py."""
