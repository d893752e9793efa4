"""Processor time and load for `time` and `os`: WASI's C library has a clock on the wall instead."""

import os
import posix
import time

from _belljar import hostcalls


def process_time_ns():
    """Processor time of the program, in nanoseconds."""
    return hostcalls.processor_ns()


def process_time():
    """Processor time of the program, in seconds."""
    return hostcalls.processor_ns() / 1e9


def times():
    """Processor times of the program, and a clock. Those of its children are the sandbox's."""
    return os.times_result((process_time(), 0.0, 0.0, 0.0, time.monotonic()))


def getloadavg():
    """The sandbox's load, over the last 1, 5 and 15 minutes."""
    with open("/proc/loadavg") as file:
        return tuple(map(float, file.read().split()[:3]))


def install():
    for made in (process_time, process_time_ns):
        made.__module__ = "time"
        setattr(time, made.__name__, made)
        setattr(time, made.__name__.replace("process", "thread"), made)  # a program has one thread
    for made in (times, getloadavg):
        made.__module__ = "posix"
        setattr(os, made.__name__, made)
        setattr(posix, made.__name__, made)
