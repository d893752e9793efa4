"""From the syntax tree to closures that run it: `run(shell) -> status`. Compiled once, shared by every shell."""
