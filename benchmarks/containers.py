"""How long a container inside a sandbox takes to be made, run `echo` and be removed.

Usage: python benchmarks/containers.py [--json]

The best and the median of single runs, in a loop of the guest's own shell, and without the loop's share.
"""

from __future__ import annotations

import json
import statistics
import sys

from belljar import Sandbox

RUNS = 200
LOOP = (
    "for i in $(seq {runs}); do a=$EPOCHREALTIME; {command} >/dev/null; b=$EPOCHREALTIME; "
    "echo $((${{b/./}}-${{a/./}})); done"
)


def main() -> int:
    found: dict[str, tuple[float, float]] = {}
    with Sandbox(user="root") as sandbox:
        for name, command in (
            ("container run --rm base echo", "container run --rm base echo hi"),
            ("container exec box echo", "container exec box echo hi"),
            ("/usr/bin/echo", "/usr/bin/echo hi"),
        ):
            sandbox.containers.run("base", "sleep 600", name="box")
            sandbox.exec(command)
            result = sandbox.exec(LOOP.format(runs=RUNS, command=command), check=True)
            times = [int(line) / 1000 for line in result.stdout.split()]
            found[name] = min(times), statistics.median(times)
            sandbox.containers.get("box").remove(force=True)
    if "--json" in sys.argv:
        print(json.dumps({name: {"best_ms": best, "median_ms": median} for name, (best, median) in found.items()}))
        return 0
    for name, (best, median) in found.items():
        print(f"{name:<32} best {best:7.3f} ms   median {median:7.3f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
