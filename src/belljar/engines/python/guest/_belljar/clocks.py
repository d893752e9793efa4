"""Processor time for `time` and `os`: WASI's C library has a clock on the wall instead."""

import os
import time

from _belljar import door


def process_time_ns():
    """Processor time of the program, in nanoseconds."""
    return door.processor_ns()


def process_time():
    """Processor time of the program, in seconds."""
    return door.processor_ns() / 1e9


def times():
    """Processor times of the program, and a clock. Those of its children are the sandbox's."""
    return os.times_result((process_time(), 0.0, 0.0, 0.0, time.monotonic()))


def install():
    for made in (process_time, process_time_ns):
        made.__module__ = "time"
        setattr(time, made.__name__, made)
        setattr(time, made.__name__.replace("process", "thread"), made)  # a program has one thread
    times.__module__ = "posix"
    os.times = os.sys.modules["posix"].times = times
