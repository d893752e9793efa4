"""The process a sandbox lives in: the session, and what serves it to the owner."""

CPU_GUARD = "defer"
"""See kernel/cpu_guard_host.py."""
