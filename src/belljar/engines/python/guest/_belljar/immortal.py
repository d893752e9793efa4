"""Makes what a template holds immortal: programs then write to none of it, not even the count of references.

A program is a fork of its template and shares its memory until it writes there; most of what it would write are such
counts. CPython itself has immortal objects, and the process around us, which can write to our memory, makes the others
so. What is immortal counts as shared, so nothing is changed in place that was not before.
"""

import gc
import sys
import types
from array import array
from itertools import filterfalse

from _belljar import hostcalls

BATCH = 2000


def freeze_all():
    """Make all objects that there are now immortal, of which collections need not look at anything either."""
    gc.unfreeze()
    gc.collect()
    sample = object()
    if immortalise([sample]) and sys._is_immortal(sample):
        spread(gc.get_objects())
    gc.freeze()


def immortalise(objects):
    """Whether the process around us knows how."""
    status, _ = hostcalls.exchange(hostcalls.IMMORTAL, array("I", map(id, objects)).tobytes())
    return status == 0


def spread(todo):
    """Make these objects and all reachable from them immortal, in batches: there are hundreds of thousands."""
    while todo:
        batch = list(filterfalse(sys._is_immortal, todo[-BATCH:]))
        del todo[-BATCH:]
        immortalise(batch)
        todo += filterfalse(sys._is_immortal, gc.get_referents(*batch))
        for one in batch:
            if type(one) is types.CodeType:
                todo += parts(one)


def parts(code):
    """Objects referenced by a code object, which the garbage collector does not traverse."""
    return [
        code.co_consts,
        code.co_names,
        code.co_filename,
        code.co_name,
        code.co_qualname,
        code.co_linetable,
        code.co_exceptiontable,
        *code.co_consts,
        *code.co_names,
        *code.co_varnames,
    ]
