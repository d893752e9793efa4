"""The virtual kernel: fibers, processes, pipes, ttys, budgets, and the files they see."""

CPU_GUARD = "defer"
"""See kernel/cpu_guard_host.py."""
