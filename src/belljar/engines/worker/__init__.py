"""In the worker: programs that run in engine processes, and the kernel's side of their system calls."""
