"""How many columns of a terminal a text takes: what the shell's line editor counts by."""

from belljar.shell.width import display_width

__all__ = ["display_width"]
