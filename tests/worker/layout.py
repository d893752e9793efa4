"""Run by test_layout.py in a process of its own, with memory nobody else has used: on how many pages things lie."""

import json
import sys
from collections.abc import Callable

from belljar.worker.layout_host import fill_holes, gather_code

PAGE = 4096
SIZES = (64, 80, 160, 512)


def make_functions(count: int) -> list[Callable[[int], int]]:
    """Functions of which each has its own code."""
    functions: list[Callable[[int], int]] = []
    for number in range(count):
        scope: dict[str, Callable[[int], int]] = {}
        source = f"def add(x):\n    inner = lambda y: y + {number}\n    return inner(x) + {number}000"
        exec(compile(source, f"made {number}", "exec"), scope)  # noqa: S102 - nothing else makes code
        functions.append(scope["add"])
    return functions


def pages(objects: list[object]) -> int:
    return len({id(each) // PAGE for each in objects})


def main() -> None:
    functions = make_functions(2000)
    called, idle = functions[::20], functions[1]
    unmoved, spread = id(idle.__code__), pages([function.__code__ for function in called])
    holes = {size: [bytes(size - 33) for _ in range(4000)] for size in SIZES}
    for objects in holes.values():
        del objects[::7]
    fillers = fill_holes()
    gather_code(lambda: [function(1) for function in called])
    found = {
        "spread": spread,
        "gathered": pages([function.__code__ for function in called]),
        "idle": id(idle.__code__) == unmoved,
        "values": [function(1) for function in called] == [1 + n + n * 1000 for n in range(0, 2000, 20)],
        "fresh": {size: pages([bytes(size - 33) for _ in range(200)]) for size in SIZES},
    }
    sys.stdout.write(json.dumps(found))
    del holes, fillers


if __name__ == "__main__":
    main()
