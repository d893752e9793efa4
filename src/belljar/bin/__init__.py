"""The utilities, one module (or package) each, found by file name: `bin/wc.py` is `wc`."""

CPU_GUARD = "raise"
"""See kernel/cpu_guard_host.py."""
