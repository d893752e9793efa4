"""Functions of a C library that shell and utilities share: times, zones, patterns, quoting, printf, width of text."""

CPU_GUARD = "caller"
"""See kernel/cpu_guard_host.py."""
