"""The zygote: the warm, clean process that forks workers."""

CPU_GUARD = "defer"
"""See kernel/cpu_guard_host.py."""
