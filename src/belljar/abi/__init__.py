"""Words shared by every layer: errors, limits, flags, signals, records. Imports nothing of ours."""

CPU_GUARD = "caller"
"""See kernel/cpu_guard_host.py."""
