"""The outer wall: how a process that will run guest code seals itself. Used by workers and by engine processes."""

CPU_GUARD = "defer"
"""See kernel/cpu_guard_host.py."""
