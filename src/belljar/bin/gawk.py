"""gawk - scan text for patterns and process what matches (the same program as awk)

Usage: gawk [-F fs] [-v var=value]... [-f progfile | 'program'] [FILE]...
"""

from belljar.bin.awk import main

__all__ = ["main"]
