"""The kernel's side of an engine process's system calls."""
