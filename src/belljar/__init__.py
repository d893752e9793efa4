"""belljar: a sandbox for AI agents. The public names, nothing else."""

__version__ = "0.1.0"
