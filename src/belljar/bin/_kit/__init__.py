"""The parts of a utility: its options, its entry point, and bulk reading of lines."""

from belljar.bin._kit.options import choice, count, flag, many, value
from belljar.bin._kit.program import Program, UsageError, utility
from belljar.bin._kit.text import LineBatches, line_batches

__all__ = [
    "LineBatches",
    "Program",
    "UsageError",
    "choice",
    "count",
    "flag",
    "line_batches",
    "many",
    "utility",
    "value",
]
