"""The `belljar` command: one module a subcommand."""
