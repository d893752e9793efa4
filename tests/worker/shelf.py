"""Run by test_shelf.py in a process of its own: its memory is put on the shelf, and it lives on."""

import json
import os
import platform
import sys

from belljar.worker.shelf_host import Shelf

SIZE = 20_000_000


def own_memory() -> int:
    with open("/proc/self/smaps_rollup") as lines:
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Anonymous:"))


def shared_mappings() -> int:
    """Through which the file behind the shelf could be changed."""
    with open("/proc/self/maps") as lines:
        return sum("memfd:belljar" in line and line.split()[1][3] == "s" for line in lines)


def changes(texts: list[str], live: list[int]) -> bool:
    """A branch that writes to all of it, to the counts of references at least, and sees the same."""
    pid = os.fork()
    if pid == 0:
        copies = [text + "" for text in texts]
        live.append(len(copies))
        os._exit(0 if copies == made() and live[-1] == len(texts) else 1)
    return os.waitpid(pid, 0)[1] == 0


def made() -> list[str]:
    return [f"{number}" * 20 for number in range(SIZE // 200)]


def main() -> None:
    texts, live = made(), [0]
    large = bytearray(b"abc" * 100_000)
    shelf = Shelf()
    before = own_memory()

    size = sum(map(sys.getsizeof, texts))
    found = {
        "machine": platform.machine() == "x86_64",
        "made": size,
        "moved": shelf.fill(),
        "before": before,
        "own": own_memory(),
        "kept": texts == made(),
        "branches": [changes(texts, live) for _ in range(5)],
        "shared": shared_mappings(),
    }
    live[0] += 1
    found["live"] = live == [1]
    large.extend(b"z" * (5 * SIZE))  # by mremap(2), which makes a mapping go on into the file
    found["grown"] = large[299_997:300_003] == b"abczzz" and large[-1:] == b"z"
    texts.sort()
    found["kept"] = found["kept"] and texts == sorted(made())
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
