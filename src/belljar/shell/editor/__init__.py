"""Editing the command line on a terminal: keys, a buffer with a kill ring, the screen, completion, history."""

from belljar.shell.editor.editor import Editor, Suspended

__all__ = ["Editor", "Suspended"]
