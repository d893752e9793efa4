"""The virtual kernel: fibers, processes, pipes, ttys, budgets, and the files they see."""
