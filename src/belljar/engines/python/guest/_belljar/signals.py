"""Signals: the kernel delivers them, and rings the alarm."""

import signal

from _belljar import hostcalls
from _belljar.protocol import DEFAULT, IGNORED, REPORTED

ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF = 0, 1, 2
ItimerError = OSError
_catch = signal.signal


def set_handler(signalnum, handler, /):
    old = _catch(signalnum, handler)
    how = {signal.SIG_DFL: DEFAULT, signal.SIG_IGN: IGNORED}.get(handler, REPORTED)
    hostcalls.call("catch", int(signalnum), how)
    return old


def _set(value, interval):
    return tuple(number / 1e9 for number in hostcalls.call("setitimer", value, interval))


def _nanoseconds(seconds):
    if seconds < 0:
        raise hostcalls.error(22)
    return round(seconds * 1e9) or int(seconds > 0)


def _check(which):
    if which != ITIMER_REAL:
        raise OSError(
            hostcalls.FROM_LINUX[22], "Invalid argument: only ITIMER_REAL is there; processor time is limited outside"
        )


def alarm(seconds, /):
    """Have SIGALRM sent after so many seconds; returns how many were left of the alarm before."""
    left = _set(max(int(seconds), 0) * 10**9, 0)[0]
    return -int(-left // 1)


def setitimer(which, seconds, interval=0.0, /):
    """Have SIGALRM sent after so many seconds, then at intervals; returns what was set before."""
    _check(which)
    return _set(_nanoseconds(seconds), _nanoseconds(interval))


def getitimer(which, /):
    _check(which)
    return _set(-1, 0)


def pause():
    """Wait until a signal was caught."""
    status = 0
    while status != 4:
        status, _ = hostcalls.exchange(hostcalls.CALLS["sleep"].number, hostcalls.encode("q", [1 << 60]))


def siginterrupt(signalnum, flag, /):
    """Nothing: a call that a signal interrupts goes on afterwards, as Python wants it."""


def valid_signals():
    return {_signal(number) for number in range(1, 65) if number not in (32, 33)}


def _signal(number):
    try:
        return signal.Signals(number)
    except ValueError:
        return number


def install():
    set_handler.__name__ = set_handler.__qualname__ = "signal"
    set_handler.__doc__ = _catch.__doc__
    signal.signal = set_handler
    for made in (alarm, setitimer, getitimer, pause, siginterrupt, valid_signals):
        made.__module__ = "signal"
        setattr(signal, made.__name__, made)
    for name in ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF", "ItimerError"):
        setattr(signal, name, globals()[name])
