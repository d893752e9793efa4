"""What a command finds on its standard input when none, some, or a promise of some is given."""

import asyncio
import subprocess
from collections.abc import Iterator

import pytest

from belljar import AsyncSandbox, Sandbox

KIND = "stat -Lc %F /dev/stdin; cat"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(files={"/workspace/notes": "a needle\n"}) as box:
        yield box


@pytest.mark.parametrize(
    ("stdin", "kind"),
    [
        (None, "character special file"),
        (subprocess.DEVNULL, "character special file"),
        (b"", "fifo"),
        ("text", "fifo"),
        (bytes(17 << 20), "fifo"),
    ],
    ids=["none", "devnull", "empty", "text", "long"],
)
def test_exec(sandbox: Sandbox, stdin: object, kind: str) -> None:
    result = sandbox.exec(KIND, stdin=stdin)  # type: ignore[call-overload]
    first, _, rest = result.stdout_bytes.partition(b"\n")
    assert first.decode() == kind
    given = stdin.encode() if isinstance(stdin, str) else stdin if isinstance(stdin, bytes) else b""
    assert rest == given


@pytest.mark.parametrize(
    ("stdin", "kind"), [(None, "socket"), (subprocess.PIPE, "fifo"), (subprocess.DEVNULL, "character special file")]
)
def test_spawn(sandbox: Sandbox, stdin: int | None, kind: str) -> None:
    process = sandbox.spawn(KIND, stdin=stdin)
    process.stdin.write("typed")
    process.stdin.close()
    assert process.stdout.read().decode() == f"{kind}\n" + ("" if stdin == subprocess.DEVNULL else "typed")


def test_a_search_without_a_path_searches_the_directory(sandbox: Sandbox) -> None:
    wanted = "notes:a needle\n"
    assert sandbox.exec("rg --no-line-number needle").stdout == wanted
    process = sandbox.spawn("rg --no-line-number needle")
    assert process.stdout.read().decode() == wanted
    process.stdin.close()
    assert sandbox.exec("rg needle", stdin="no\nneedles\n").stdout == "needles\n"
    assert sandbox.exec("echo a needle | rg -o needle").stdout == "needle\n"
    inside = "import subprocess as s; print(s.run(['rg', '-IN', 'needle'], capture_output=True).stdout)"
    assert sandbox.exec(["python3", "-c", inside]).stdout == "b'a needle\\n'\n"


def test_async() -> None:
    async def main() -> None:
        async with AsyncSandbox(files={"/workspace/notes": "a needle\n"}) as box:
            assert (await box.exec("rg -o needle")).stdout == "notes:needle\n"
            process = await box.spawn("rg -o needle")
            assert await process.stdout.read() == b"notes:needle\n"
            process = await box.spawn("cat", stdin=subprocess.PIPE)
            await process.stdin.write("x")
            await process.stdin.close()
            assert await process.stdout.read() == b"x"

    asyncio.run(main())


def test_node_reads_what_is_typed_while_it_does_other_things(sandbox: Sandbox) -> None:
    code = "process.stdin.on('data', d => console.log('got ' + d)); setTimeout(() => console.log('tick'), 50)"
    process = sandbox.spawn(["node", "-e", code])
    assert process.stdout.next_chunk(120) == b"tick\n"
    process.stdin.write("x")
    assert process.stdout.next_chunk(120) == b"got x\n"
    process.stdin.close()
    assert process.wait() == 0
