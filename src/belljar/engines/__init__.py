"""Interpreters for programs that are not ours: each program runs in an operating-system process of its own."""
