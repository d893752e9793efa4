"""Scripts that want too much end by the limit they hit, in bounded time; readers that leave end their writers."""

import sys

import pytest

from belljar.abi.limits import Limits
from tests.adapter import new_session

LIMITS = Limits(steps=300_000, wall_seconds=120, processes=400, expansion_bytes=1 << 20, depth=300)


@pytest.mark.parametrize(
    ("script", "limit"),
    [
        ("f(){ f; }; f", "depth"),
        ("f(){ g; }; g(){ if :; then { f; }; fi; }; f", "depth"),
        ("echo '. ./s' > /tmp/s; cd /tmp; . ./s", "depth"),
        ("f() { echo $(f); }; f", "depth"),
        ('x=\'eval "$x"\'; eval "$x"', "depth"),
        ("set -E; trap 'false; true' ERR; f() { false; f; }; f", "depth"),
        ("while :; do :; done", "steps"),
        ("until false; do :; done", "steps"),
        ("for ((;;)); do :; done", "steps"),
        ("trap 'kill -USR1 $$' USR1; kill -USR1 $$; while :; do :; done", "steps"),
        ("echo {1..999999999}", "expansion_bytes"),
        ("echo {a..z}{a..z}{a..z}{a..z}{a..z}", "expansion_bytes"),
        ("x=a; while :; do x=$x$x; done", "expansion_bytes"),
        ("x=a; while :; do x+=$x; done", "expansion_bytes"),
        ("x=$(printf '%09999d' 1); y=${x//0/$x}", "expansion_bytes"),
        ("x=$(while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done)", "expansion_bytes"),
    ],
)
def test_a_runaway_ends_by_its_limit(script: str, limit: str) -> None:
    result = new_session(limits=LIMITS).exec(["bash", "-c", script])
    assert (result.limit, result.status) == (limit, 137)


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("yes | head -n 1", b"y\n"),
        ("while :; do echo x; done | head -n 3", b"x\nx\nx\n"),
        ("cat <(seq 1000000000) | head -n 1", b"1\n"),
        ("(while echo loop; do :; done) | read x; echo $?", b"0\n"),
    ],
)
def test_a_writer_ends_when_nobody_reads(script: str, output: bytes) -> None:
    result = new_session(limits=LIMITS).exec(["bash", "-c", script])
    assert (result.stdout, result.limit) == (output, None)


def test_deep_calls_need_no_more_frames_than_the_interpreter_has() -> None:
    before = sys.getrecursionlimit()
    body = "if (($1)); then for i in 1; do case x in x) { f $(($1-1)); } ;; esac; done; else echo bottom; fi"
    script = f"f() {{ {body}; }}; f 900"
    result = new_session().exec(["bash", "-c", script])
    assert result.stdout == b"bottom\n"
    sys.setrecursionlimit(before)


def test_a_large_here_document_needs_no_reader_to_start_with() -> None:
    script = "x=$(printf '%0300000d' 1); { :; } <<< $x; cat <<EOF | wc -c\n$x\nEOF"
    result = new_session().exec(["bash", "-c", script])
    assert result.stdout.strip() == b"300001"
