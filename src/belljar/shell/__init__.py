"""The guest's bash: syntax, expansion, compilation and builtins."""
