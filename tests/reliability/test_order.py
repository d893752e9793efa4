"""Streams keep their order: tagged records through every path that carries a stream in pieces."""

import asyncio
import hashlib
import random
import threading
import time
from collections.abc import Iterator

import pytest

from belljar import AsyncSandbox, Limits, Sandbox
from tests.reliability.amount import amount

MIB = 1 << 20
SIZES = amount([1, 300_000, 17 * MIB + 5, 40 * MIB], [1, 300_000, 17 * MIB + 5, 40 * MIB, 200 * MIB])
LIMITS = Limits(output_bytes=1 << 30, wall_seconds=300, cpu_seconds=200)


def records(size: int) -> bytes:
    """Numbers in order: any swap of two pieces shows, and where."""
    return b"".join(i.to_bytes(8, "big") for i in range(size // 8 + 1))[:size]


def check_same(got: bytes, given: bytes) -> None:
    """Compare without printing megabytes."""
    assert len(got) == len(given)
    if got != given:
        first = next(i for i in range(0, len(given), 4096) if got[i : i + 4096] != given[i : i + 4096])
        pytest.fail(f"the stream differs from byte {first} of {len(given)} on")


def cut(data: bytes, seed: int) -> Iterator[bytes]:
    """Pieces of very different sizes."""
    rng = random.Random(seed)
    start = 0
    while start < len(data):
        end = start + rng.choice((1, 100, 65_536, 65_537, 262_144, MIB, 3 * MIB + 1))
        yield data[start:end]
        start = end


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(limits=LIMITS) as box:
        yield box


READERS = {
    "fast": "cat",
    "slow to begin": "sleep 0.2; cat",
    "through pipes": "cat | cat | dd bs=100001 2>/dev/null",
    "in small bites": "dd bs=4001 2>/dev/null",
}


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
def test_exec(sandbox: Sandbox, reader: str, size: int) -> None:
    data = records(size)
    result = sandbox.exec(reader, stdin=data)
    assert (result.exit_code, result.limit) == (0, None)
    check_same(result.stdout_bytes, data)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_spawn_with_input_from_the_start(sandbox: Sandbox, size: int) -> None:
    data = records(size)
    process = sandbox.spawn("sha256sum", stdin=data)
    assert process.stdout.read().split()[0].decode() == hashlib.sha256(data).hexdigest()
    assert process.wait() == 0


@pytest.mark.slow
@pytest.mark.parametrize("way", ["write", "send"])
@pytest.mark.parametrize("size", SIZES)
def test_spawn_with_input_in_pieces(sandbox: Sandbox, size: int, way: str) -> None:
    data = records(size)
    process = sandbox.spawn("cat")
    out: list[bytes] = []
    reader = threading.Thread(target=lambda: out.extend(process.stdout))
    reader.start()
    for piece in cut(data, size):
        getattr(process.stdin, way)(piece)
    process.stdin.close()
    reader.join()
    assert process.wait() == 0
    check_same(b"".join(out), data)


@pytest.mark.slow
def test_a_slow_reader_of_output(sandbox: Sandbox) -> None:
    data = records(20 * MIB)
    sandbox.files.write("/tmp/records", data)
    process = sandbox.spawn("cat /tmp/records; cat /tmp/records")
    out = []
    for number, piece in enumerate(process.stdout):
        out.append(piece)
        if number % 20 == 0:
            time.sleep(0.01)
    assert process.wait() == 0
    check_same(b"".join(out), data + data)


@pytest.mark.slow
def test_many_commands_at_once() -> None:
    """Each of several threads has its own stream over the one connection."""
    data = records(18 * MIB)
    wrong: list[int] = []
    with Sandbox(limits=LIMITS) as sandbox:

        def work(number: int) -> None:
            mine = data[number * 8 :]
            if sandbox.exec("cat", stdin=mine).stdout_bytes != mine:
                wrong.append(number)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


@pytest.mark.slow
def test_sums_under_load() -> None:
    """Half a gigabyte in and out, many times, while another sandbox keeps the machine at work."""
    pieces = random.Random(5)
    data = b"".join(pieces.randbytes(MIB) for _ in range(amount(50, 500)))
    sum_ = hashlib.sha256(data).hexdigest()
    done = threading.Event()

    def load() -> None:
        with Sandbox() as other:
            while not done.is_set():
                other.exec("seq 2000 | sort -r | tail -1")

    thread = threading.Thread(target=load)
    thread.start()
    try:
        with Sandbox(limits=LIMITS) as sandbox:
            for number in range(amount(2, 100)):
                if number % 2:
                    assert sandbox.exec("sha256sum", stdin=data).stdout.split()[0] == sum_
                else:
                    process = sandbox.spawn("cat", stdin=data)
                    out = hashlib.sha256()
                    for piece in process.stdout:
                        out.update(piece)
                    assert (process.wait(), out.hexdigest()) == (0, sum_)
    finally:
        done.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES[1:])
def test_async(size: int) -> None:
    data = records(size)

    async def main() -> None:
        async with AsyncSandbox(limits=LIMITS) as sandbox:
            results = await asyncio.gather(*(sandbox.exec("cat", stdin=data) for _ in range(2)))
            for result in results:
                check_same(result.stdout_bytes, data)
            process = await sandbox.spawn("cat")
            reading = asyncio.create_task(process.stdout.read())
            for piece in cut(data, size + 1):
                await process.stdin.write(piece)
            await process.stdin.close()
            check_same(await reading, data)

    asyncio.run(main())


@pytest.mark.slow
def test_files(sandbox: Sandbox) -> None:
    data = records(40 * MIB)
    sandbox.files.write("/tmp/big", data)
    check_same(sandbox.files.read_bytes("/tmp/big"), data)
    assert sandbox.exec("sha256sum < /tmp/big").stdout.split()[0] == hashlib.sha256(data).hexdigest()


@pytest.mark.slow
def test_interpreters(sandbox: Sandbox) -> None:
    """Code and values travel over the control channel, output beside it."""
    text = "".join(f"{i:07d}" for i in range(300_000))
    run = sandbox.python.run(f"text = {text!r}\nprint(text)\ntext")
    assert run.value == text
    assert run.stdout == text + "\n"


def test_input_for_who_no_longer_reads(sandbox: Sandbox) -> None:
    """The rest of a long input is dropped at once, and the command's end is the command's."""
    data = records(40 * MIB)
    assert (
        sandbox.exec("head -c 16; exec <&-; sleep 0.1; echo ' over'", stdin=data).stdout_bytes == data[:16] + b" over\n"
    )
    process = sandbox.spawn("head -c 16")
    process.stdin.write(data)
    process.stdin.send(data)
    process.stdin.close()
    assert process.stdout.read() == data[:16]
    assert process.wait() == 0
