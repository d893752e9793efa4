"""Utilities that are asked for too much: the right answer, or the right limit, in little time and memory.

THREATS.md BOMB 32-38, 42 and 45, PARSE 51, inside one session (no worker around it whose death could save the day).
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import pytest

from belljar.abi.limits import Limits
from belljar.worker.session import Result
from tests.adapter import new_session, put, run_command

MIB = 1 << 20
LIMITS = {
    "cpu_seconds": 0.6,
    "wall_seconds": 200.0,  # what is judged is processor time
    "output_bytes": MIB,
    "expansion_bytes": 4 * MIB,
    "file_bytes": 16 * MIB,
    "files": 5000,
    "processes": 64,
}
MOST_CPU = 3.0
"""Seconds of processor time past the limit that a case may take: our own, so that a busy machine does not matter."""
MOST_MEMORY = 250 * MIB
"""Bytes that the process may grow by: interpreters' values are counted roughly and bounded from outside."""

SIZE, CPU, OUT = "expansion_bytes", "cpu_seconds", "output_bytes"
PATIENT = {"cpu_seconds": 20.0}
FULL = "No space left on device"


@dataclass(frozen=True)
class Bomb:
    """A command and what must come of it: a limit, or (`limit` empty) an answer."""

    script: str
    limit: str = ""
    out: str | None = None
    says: str = ""
    status: int | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)


Judge = Callable[[Bomb], None]


@dataclass(frozen=True)
class Explosion:
    result: Result
    after: bytes
    """What `echo ok` of the same session printed after it."""
    cpu: float
    memory: int


def _memory() -> int:
    return int(re.findall(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[0]) * 1024


def explode(bomb: Bomb, limits: Limits) -> Explosion:
    session = new_session(limits=limits)
    put(session, "/tmp/w", ("dir",))
    for name, data in bomb.files.items():
        put(session, f"/tmp/w/{name}", data)
    Path("/proc/self/clear_refs").write_text("5")  # starts the high-water mark of memory anew
    memory, cpu = _memory(), time.process_time()
    result = run_command(session, ["bash", "-c", bomb.script], cwd="/tmp/w")
    cpu, memory = time.process_time() - cpu, _memory() - memory
    return Explosion(result, run_command(session, ["echo", "ok"]).stdout, cpu, memory)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """Explodes bombs in a process of their own: threads and heaps of other tests have no part in what is measured."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
        yield lambda bomb: check(bomb, apart)


def check(bomb: Bomb, apart: Executor) -> None:
    limits = {**LIMITS, **bomb.limits}
    most = limits["cpu_seconds"] + MOST_CPU
    if CPU not in bomb.limit:  # a slow machine must not meet this limit before the one that is meant
        limits["cpu_seconds"] = most
    explosion = apart.submit(explode, bomb, Limits(**limits)).result()  # type: ignore[arg-type]
    assert explosion.cpu < most
    assert explosion.memory < MOST_MEMORY
    assert explosion.after == b"ok\n", "the session is no longer usable"
    result = explosion.result
    said = result.stderr.decode()
    assert "Traceback" not in said
    assert (result.limit or "") in bomb.limit.split("|"), (result.limit, result.status, said[:300])
    if bomb.out is not None:
        assert result.stdout.decode() == bomb.out, said[:300]
    assert bomb.says in said
    if bomb.status is not None:
        assert result.status == bomb.status


def bombs(*given: Bomb) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("bomb", [pytest.param(bomb, id=bomb.script[:60]) for bomb in given])


@bombs(
    Bomb("yes >&2", OUT),
    Bomb("yes & yes >&2 & wait", OUT),
    Bomb("ls $(seq 1 100000)", OUT),
)
def test_32_floods(bomb: Bomb, judge: Judge) -> None:
    judge(bomb)


STREAMING = [
    "wc",
    "md5sum",
    "cksum",
    "cmp - /dev/zero <",
    "grep -c x",
    "od",
    "strings",
    "dd of=/dev/null if=/dev/stdin <",
]
PRINTING = ["cat", "cat -n", "head -n 1", "tr a b <", "base64", "tar cf -", "xxd", "tee /dev/null <"]
HOLDING = [
    "sort", "tac", "tail -n 1", "cut -c 1", "uniq", "paste", "fold", "nl", "rev", "fmt", "shuf", "column", "expand",
    "sed p", "awk 1", "jq .", "jq -R .", "yq .", "diff /dev/zero", "comm /dev/zero", "join /dev/zero", "bc", "dc <",
    "xargs <", "date -f", "sha256sum -c", "grep x -f", "sed -f", "awk -f", "jq -f", "bash", "source", "mapfile <",
]  # fmt: skip


@pytest.mark.parametrize("command", STREAMING)
def test_33_sparse_files_are_streamed(command: str, judge: Judge) -> None:
    judge(Bomb(f"truncate -s 4E f; {command} f", CPU, limits={"cpu_seconds": 0.2}))


@pytest.mark.parametrize("command", PRINTING)
def test_33_sparse_files_are_printed_up_to_the_limit(command: str, judge: Judge) -> None:
    judge(Bomb(f"truncate -s 4E f; {command} f", OUT))


@pytest.mark.parametrize("command", HOLDING)
def test_33_lines_without_end_are_refused(command: str, judge: Judge) -> None:
    judge(Bomb(f"truncate -s 4E f; {command} f", SIZE))


@bombs(
    Bomb("truncate -s 8E f", says="Value too large for defined data type", status=1),
    Bomb("dd if=/dev/zero of=f bs=1 count=1 seek=1T status=none; stat -c %s f", out="1099511627777\n"),
    Bomb("truncate -s 4E f; cp f g; stat -c %s g; du g", out="4611686018427387904\n0\tg\n"),
    Bomb("truncate -s 4E f; tail -c 3 f | od -An -tx1", out=" 00 00 00\n"),
    Bomb("truncate -s 4E f; tar cf g f", says=FULL, status=2),
    Bomb("truncate -s 4E f; split -b 1M f", says=FULL, status=1),
)
def test_33_sparse_files(bomb: Bomb, judge: Judge) -> None:
    judge(bomb)


@bombs(
    Bomb("head -c 99999999999999 /dev/zero | sort", SIZE),
    Bomb("yes | sort", SIZE),
    Bomb("yes | sort -u", SIZE),
    Bomb("sort -R /dev/zero", SIZE),
    Bomb("yes | tac", SIZE),
    Bomb("yes | shuf", SIZE),
    Bomb("yes | tsort", SIZE),
    Bomb("yes | fmt", SIZE),
    Bomb("yes | diff - /dev/null", SIZE),
    Bomb("yes | jq -sR length", SIZE),
    Bomb("yes | tail -n 999999999999", SIZE),
    Bomb("yes | head -n -99999999999", SIZE),
    Bomb("yes | tail -n 3", CPU),
    Bomb("yes | uniq -c", CPU),
    Bomb("yes | sed -n 'H;${x;p}'", f"{CPU}|{SIZE}"),
    Bomb("yes | sed ':a;N;ba'", f"{CPU}|{SIZE}"),
    Bomb("yes | xargs -n 1 echo | head -n 2", out="y\ny\n"),
    Bomb("seq 100000 | sed ':a;N;$!ba;s/\\n/,/g' | wc -c", out="588895\n", limits=PATIENT),
    Bomb("seq 100000 | sed -n 'H;${x;p}' | wc -c", out="588896\n", limits=PATIENT),
    Bomb("yes | head -n 300000 | uniq -c", out=" 300000 y\n", limits=PATIENT),
)
def test_34_input_without_end(bomb: Bomb, judge: Judge) -> None:
    judge(bomb)


A = "a" * 60 + "!"


@bombs(
    Bomb(f"echo {A} | grep -cE '^(a+)+$'", out="0\n"),
    Bomb(f"echo {A} | grep -cE '^(a|aa)+$'", out="0\n"),
    Bomb(f"echo {A} | grep -cP '^(a+)+$'", f"|{CPU}"),
    Bomb(f"echo {A} | rg -c '^(a+)+$'", out=""),
    Bomb(f"echo {A} | sed -nE '/^(a+)+$/p'", out=""),
    Bomb(f"echo {A} | awk '/^(a+)+$/'", out=""),
    Bomb(f"echo {A} | awk '{{ print gsub(/(a|aa)+$/, \"x\") }}'", out="0\n"),
    Bomb(f"[[ {A} =~ ^(a+)+$ ]]; echo $?", out="1\n"),
    Bomb(f'jq -n \'"{A}" | test("^(a+)+$"), test("^(a|aa)+$")\'', out="false\nfalse\n"),
    Bomb(f"expr {A} : '\\(a*\\)*b'", out="\n"),
    Bomb(f"echo {A} | grep -E '^(a*)*\\1$'", f"|{CPU}"),
    Bomb(f"echo {'ab' * 40} | sed 's/\\(a*b*\\)*\\1\\1x//'", f"|{CPU}"),
    Bomb("echo aaa | grep -cE '((a{1,255}){1,255}){1,255}'", says="too big", status=2),
    Bomb("echo aaa | grep -P '(?:a{1,65535}){1,65535}'", says="too large", status=2),
    Bomb("echo aaa | awk '/((a{1,1000}){1,1000}){1,1000}/'", says="too big"),
    Bomb("x=$(printf '(%.0s' {1..5000}); grep -E \"$x\" /etc/passwd", status=2),
)
def test_35_patterns_that_explode(bomb: Bomb, judge: Judge) -> None:
    judge(bomb)


ZEROS = bytes(64 * MIB)
SMALL = {"z.gz": gzip.compress(ZEROS), "z.bz2": bz2.compress(ZEROS), "z.xz": lzma.compress(ZEROS, preset=0)}


def nested_archive(levels: int) -> bytes:
    data = bytes(4 * MIB)
    for level in range(levels):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            member = tarfile.TarInfo(f"level{level}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        data = buffer.getvalue()
    return data


@pytest.mark.parametrize(("name", "tool"), [("z.gz", "gzip"), ("z.bz2", "bzip2"), ("z.xz", "xz")])
def test_37_compressed_bombs(name: str, tool: str, judge: Judge) -> None:
    files = {name: SMALL[name]}
    judge(Bomb(f"{tool} -dc {name}", OUT, files=files, limits=PATIENT))
    judge(Bomb(f"{tool} -d {name}; ls", out=f"{name}\n", says=FULL, files=files, limits=PATIENT))
    judge(Bomb(f"{tool} -dc {name} | wc -c", out="67108864\n", files=files, limits=PATIENT))
    judge(Bomb(f"{tool} -dc {name} | sort", SIZE, files=files, limits=PATIENT))


@bombs(
    Bomb("zcat many.gz | wc -c", out="0\n", files={"many.gz": gzip.compress(b"") * 20_000}, limits=PATIENT),
    Bomb(
        "mv 0 l; while tar xzf l 2>/dev/null; do rm l; mv level* l; done; stat -c %s l",
        out=f"{4 * MIB}\n",
        files={"0": nested_archive(20)},
        limits=PATIENT,
    ),
)
def test_37_archives_in_archives(bomb: Bomb, judge: Judge) -> None:
    judge(bomb)


@pytest.mark.battery(sample=8)
@bombs(
    Bomb("jq -n 'repeat(1)'", f"{OUT}|{CPU}"),
    Bomb("jq -n '[repeat(1)]'", f"{SIZE}|{CPU}"),
    Bomb("jq -n 'last(repeat(1))'", CPU),
    Bomb("jq -n 'range(0; 1e18)' > /dev/null", CPU),
    Bomb("jq -n '[range(0; 1e18)]'", f"{SIZE}|{CPU}"),
    Bomb("jq -n 'def f: f; f'", f"{CPU}|depth"),
    Bomb("jq -n 'def f: 1 + f; f'", says="too deeply", status=5),
    Bomb("jq -n '\"x\" * 1e10'", says="too long", status=5),
    Bomb("jq -n '[.[1e9] = 1]'", f"|{SIZE}", out=""),
    Bomb("jq -n 'reduce range(1e9) as $i (\"x\"; . + .)'", SIZE),
    Bomb("awk 'BEGIN { while (1); }'", CPU),
    Bomb("awk 'BEGIN { x = \"a\"; while (1) x = x x }'", SIZE),
    Bomb("awk 'BEGIN { printf \"%0999999999d\", 1 }'", SIZE),
    Bomb("awk 'BEGIN { $1000000000 = 1 }'", says="fields", status=2),
    Bomb("awk 'function f() { return f() } BEGIN { f() }'", says="nested too deeply", status=2),
    Bomb("awk 'BEGIN { while (1) print > \"f\" i++ }'", says="Too many open files", status=2),
    Bomb("echo | sed ':a;ba'", CPU),
    Bomb("echo a | sed ':a;s/.*/&&/;ba'", SIZE),
    Bomb("echo '2^2^30' | bc", SIZE),
    Bomb("echo 'while (1) {}' | bc", CPU),
    Bomb("echo 'scale=2000000000; 1/3' | bc", SIZE),
    Bomb("echo '9 9 9 9^^^p' | dc", SIZE),
    Bomb("echo '[lax]salax' | dc", CPU),
    Bomb("echo $((9**9**9))", out="-2123029214124047543\n"),
    Bomb("factor $((1000000007 * 1000000009))", out="1000000016000000063: 1000000007 1000000009\n"),
    Bomb("printf '%0999999999d' 1", SIZE),
    Bomb("seq -f %.999999999f 1", SIZE),
    Bomb("expand -t 999999999 <<< $'a\\tb'", SIZE),
    Bomb("dd if=/dev/zero of=f bs=1T count=1", says=FULL, status=1),
    Bomb("numfmt --padding=999999999 1", SIZE),
)
def test_38_programs_without_end(bomb: Bomb, judge: Judge) -> None:
    judge(bomb)


def test_42_many_files_in_one_directory(judge: Judge) -> None:
    count = 30_000
    judge(
        Bomb(
            f"seq {count} | xargs touch; ls | wc -l; find . -type f | wc -l; set -- *; echo $#; rm -f *; ls -A",
            out=f"{count}\n" * 3,
            limits={"files": 100_000, "cpu_seconds": 60.0},
        )
    )


@bombs(
    Bomb("for ((i = 0;; i++)); do : > f$i || break; done", says=FULL, limits=PATIENT),
    Bomb("seq 100000 | xargs touch", says=FULL, status=123, limits={**PATIENT, "output_bytes": 64 * MIB}),
    Bomb("head -c 100000 /dev/zero > f; split -a 5 -b 1 f", says=FULL, status=1, limits=PATIENT),
    Bomb("yes | split -a 9 -l 1", says=FULL, status=1, limits=PATIENT),
    Bomb("split -n 999999999 /etc/passwd", says=FULL, status=1, limits=PATIENT),
)
def test_42_more_files_than_there_may_be(bomb: Bomb, judge: Judge) -> None:
    judge(bomb)


@bombs(
    Bomb("seq 60000 > a; seq 60000 -1 1 > b; diff a b > /dev/null", f"|{CPU}", limits=PATIENT),
    Bomb("seq 1 2 60000 > a; seq 2 2 60000 > b; diff a b | wc -l", out="60002\n", limits=PATIENT),
    Bomb("seq 100000 | shuf > a; seq 100000 | shuf > b; diff a b > /dev/null", f"|{CPU}|{SIZE}", limits=PATIENT),
    Bomb("cmp /dev/zero /dev/zero", f"|{CPU}"),
    Bomb("seq 50000 | sort -R | sort -n | cksum; seq 50000 | cksum", limits=PATIENT),
    Bomb("shuf -i 1-1000000000000 -n 3 | wc -l", out="3\n"),
    Bomb("shuf -i 1-1000000000000", SIZE),
    Bomb("shuf -r -i 1-10", f"{OUT}|{CPU}"),
)
def test_45_much_from_little(bomb: Bomb, judge: Judge) -> None:
    judge(bomb)


DEPTH = 200_000
ALIASES = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 9)) for i in range(12)
)


@bombs(
    Bomb("jq . f", says="depth", status=5, files={"f": b"[" * DEPTH + b"]" * DEPTH}),
    Bomb("jq . f", says="depth", status=5, files={"f": b'{"a":' * DEPTH}),
    Bomb("jq . f | wc -c", out="3000001\n", files={"f": b"9" * 3_000_000}, limits=PATIENT),
    Bomb("jq length f", out="500000\n", files={"f": b'"' + b"\\u0041" * 500_000 + b'"'}, limits=PATIENT),
    Bomb("jq length < f", SIZE, files={"f": b'"' + b"x" * 6 * MIB}, limits=PATIENT),
    Bomb("yq . f", says="depth", status=1, files={"f": b"[" * DEPTH + b"]" * DEPTH}),
    Bomb("yq . f", says="depth", status=1, files={"f": b"- " * 20_000 + b"x"}),
    Bomb("yq . f", f"|{SIZE}", files={"f": ALIASES}),
    Bomb("yq -o json '.m | length' f", out="9\n", files={"f": ALIASES}),
    Bomb("yq . f", says="anchor", status=1, files={"f": b"a: &a [*a]\n"}),
    Bomb("yq -p csv . f", SIZE, files={"f": b'"' + b"x" * 6 * MIB}),
    Bomb("awk -F, '{ print NF }' f", out="1000001\n", files={"f": b"," * 1_000_000}, limits=PATIENT),
    Bomb("cut -d, -f 2- f | wc -c", out="3000000\n", files={"f": b"," * 3_000_000}, limits=PATIENT),
)
def test_parse_51_data_that_explodes(bomb: Bomb, judge: Judge) -> None:
    judge(bomb)
