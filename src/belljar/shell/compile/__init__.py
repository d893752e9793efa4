"""Compiler of the syntax tree to closures: `run(shell) -> status`. Compiled once, shared by every shell."""
