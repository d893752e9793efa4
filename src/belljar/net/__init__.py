"""The network a sandbox may use.

`guest/` runs in the worker, `broker/` in the owner's process; they share the modules here (policy, parsing, frames: no
I/O) and never import each other.
"""

CPU_GUARD = "defer"
"""See kernel/cpu_guard_host.py."""
