"""Power cuts and faults with a journaling file system inside: one machine writes, then disks are cut at every moment.

A recording store sees what a real one would: writes, and flushes, after which they must be there. Of what was written
since the last flush any part may be missing, torn, or from an older write. After each cut the file system must be
repairable by its journal, and have every file whose fsync the guest had seen return.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from belljar import BlockStore, Rootfs, Sandbox
from belljar.vm.blockstore import BlockContext, BlockRange, Chunk
from belljar.vm.memory_host import copy_memory
from belljar.vm.parts_host import find_parts, run_tool
from tests.vm.conftest import MACHINE

pytestmark = pytest.mark.slow
WHOLE = bool(os.environ.get("BELLJAR_WHOLE"))
CUTS = 60 if WHOLE else 6
FILES = 12
_SCRIPT = """
import os
def tell(*words):
    print(*words, flush=True)
    input()  # it was noted
for number in range(FILES):
    os.makedirs(f"/var/cut/{number % 3}", exist_ok=True)
    path = f"/var/cut/{number % 3}/{number}"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.write(fd, bytes([65 + number]) * (3000 + 9000 * number))
    os.fsync(fd)
    directory = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(directory)
    tell(number)
    if number % 4 == 3:
        os.rename(path, path + ".renamed")
        os.unlink(f"/var/cut/{(number - 1) % 3}/{number - 1}")
        os.sync()
        tell("moved", number)
"""


class Recorder(BlockStore):
    """Notes all that happens, in order."""

    block_size = 4096

    def __init__(self) -> None:
        self.blocks: dict[int, bytes] = {}
        self.events: list[list[Chunk] | str] = []

    def list(self, context: BlockContext) -> Sequence[int]:
        return [*self.blocks]

    def read(self, range: BlockRange, context: BlockContext) -> Sequence[Chunk]:
        return [(index, self.blocks[index]) for index in [*_all(range)] if index in self.blocks]

    def write(self, chunks: Sequence[Chunk], context: BlockContext) -> None:
        self.blocks.update(chunks)
        self.events.append([*chunks])

    def flush(self, context: BlockContext) -> None:
        self.events.append("flush")


def _all(wanted: BlockRange) -> range:
    return range(wanted.start, wanted.stop)


@pytest.fixture(scope="module")
def recorded(debian: Rootfs) -> Recorder:
    store = Recorder()
    rootfs = Rootfs.cow(debian, store, max_dirty_bytes=1 << 20)
    with Sandbox(**MACHINE, rootfs=rootfs, user="root") as lane:
        script = _SCRIPT.replace("FILES", str(FILES))
        writer = lane.spawn(["python3", "-c", script])
        for line in writer.stdout.lines():
            store.events.append(line)
            writer.stdin.write(b"\n")
        assert writer.wait() == 0, writer.stderr.read()
    return store


@pytest.mark.battery(sample=1)
@pytest.mark.parametrize("seed", range(CUTS))
def test_a_cut_loses_nothing_that_was_synced(recorded: Recorder, debian: Rootfs, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    cut = chance.randrange(len(recorded.events))
    durable, pending, said = dict[int, bytes](), list[Chunk](), list[str]()
    for event in recorded.events[:cut]:
        if event == "flush":
            durable.update(pending)
            pending = []
        elif isinstance(event, str):
            said.append(event)
        else:
            pending += event
    image = tmp_path / "disk"
    _cut(image, debian, durable, pending, chance)
    parts = find_parts()
    repaired = run_tool(parts, ["e2fsck", "-f", "-y", str(image)])
    assert repaired.returncode in (0, 1), repaired.stdout.decode()
    again = run_tool(parts, ["e2fsck", "-f", "-n", str(image)])
    assert again.returncode == 0, again.stdout.decode()
    for path, data in _expected(said).items():
        found = run_tool(parts, ["debugfs", "-R", f"cat {path}", str(image)]).stdout
        assert found == data, f"{path} at event {cut} of {len(recorded.events)}"


def _cut(image: Path, base: Rootfs, durable: dict[int, bytes], pending: list[Chunk], chance: random.Random) -> None:
    with open(base.disk().path, "rb") as source, image.open("wb") as target:
        copy_memory(source.fileno(), target.fileno())
        chance.shuffle(pending)  # nothing says in which order they arrive
        for index, data in [*durable.items(), *(each for each in pending if chance.random() < 0.5)]:
            torn = chance.random() < 0.1 and index not in durable
            data = data[: 512 * chance.randrange(8)] if torn else data
            os.pwrite(target.fileno(), data, index * 4096)


def _expected(said: list[str]) -> dict[str, bytes]:
    """Files that must be there."""
    found: dict[str, bytes] = {}
    for line in said:
        number = int(line.split()[-1])
        place = f"/var/cut/{number % 3}/{number}"
        if line.startswith("moved"):
            found[f"{place}.renamed"] = found.pop(place)
            found.pop(f"/var/cut/{(number - 1) % 3}/{number - 1}")
        else:
            found[place] = bytes([65 + number]) * (3000 + 9000 * number)
    unsure = [line for line in said if int(line.split()[-1]) % 4 == 3 and not line.startswith("moved")]
    for line in unsure:  # it may have been moved since, and what came before it removed
        number = int(line)
        if f"moved {number}" not in said:
            found.pop(f"/var/cut/{number % 3}/{number}", None)
            found.pop(f"/var/cut/{(number - 1) % 3}/{number - 1}", None)
    return found
