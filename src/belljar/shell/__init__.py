"""The guest's bash: syntax, expansion, compilation and builtins."""

CPU_GUARD = "raise"
"""See kernel/cpu_guard_host.py."""
