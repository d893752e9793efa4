"""Writers killed at random moments: `python -m tests.store.killed KIND DIRECTORY ROUNDS SEED`.

In each round two processes write, one more collects, and all are killed. What they said was done must be there.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

from belljar.store.collect import check, collect
from belljar.store.objects import digest_of
from tests.store import test_stores
from tests.store.contract import directory, save

WRITERS = 2


def content(writer: int, number: int) -> dict[str, str]:
    shared = "x" * (1 + number % 5 * 3000)
    return {"number": str(number), "same": "same", "shared": shared, "own": f"{writer} {number}" * (1 + number % 7)}


def write(kind: str, path: Path, writer: int, number: int, acknowledge: int) -> None:
    store = getattr(test_stores, kind)(path)
    while True:
        number += 1
        save(store, f"work/{writer}", **content(writer, number))
        os.write(acknowledge, b"%d %d\n" % (writer, number))


def tidy(kind: str, path: Path, now: float) -> None:
    """Collect: what was condemned in the round before is removed."""
    store = getattr(test_stores, kind)(path)
    while True:
        collect(store, now=now, grace=500.0)


def main(kind: str, path: Path, rounds: int, seed: int) -> None:
    rng = random.Random(seed)
    reached = dict.fromkeys(range(WRITERS), 0)
    for round_ in range(rounds):
        reader, acknowledge = os.pipe()
        children: list[int] = []
        for job in range(WRITERS + 1):
            child = os.fork()
            if not child:
                os.close(reader)
                try:
                    if job < WRITERS:
                        write(kind, path, job, reached[job], acknowledge)
                    tidy(kind, path, round_ * 1000.0)
                except BaseException:  # noqa: BLE001 - it must not go on as the parent
                    traceback.print_exc()
                finally:
                    os._exit(1)
            children.append(child)
        os.close(acknowledge)
        time.sleep(rng.uniform(0.0, 0.06))
        for child in children:
            os.kill(child, signal.SIGKILL)
        ends = [os.waitpid(child, 0)[1] for child in children]
        assert ends == [signal.SIGKILL] * len(children), "one of them failed"
        with open(reader) as said:
            for line in said:
                writer, number = map(int, line.split())
                reached[writer] = number
        store = getattr(test_stores, kind)(path)
        assert list(check(store)) == []
        for writer, number in reached.items():
            root = store.get(f"work/{writer}")
            allowed = [
                n for n in (number, number + 1) if root == (digest_of(directory(**content(writer, n))) if n else None)
            ]
            assert allowed, (round_, writer, number)
            reached[writer] = allowed[0]
        store.close()
    print(rounds, "rounds,", sum(reached.values()), "writes acknowledged")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
