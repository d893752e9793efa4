"""Interpreters for programs that are not ours: each program runs in an operating-system process of its own."""

CPU_GUARD = "raise"
"""See kernel/cpu_guard_host.py."""
