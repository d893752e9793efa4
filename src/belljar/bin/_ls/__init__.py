"""ls, dir and vdir: one listing program with three defaults."""
