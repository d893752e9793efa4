"""A whole run is replayed: time and randomness come in through the machine, so the same inputs give the same bytes."""

import os
import subprocess
import sys
from pathlib import Path

from belljar.bin._kit.discovery import find, names
from belljar.kernel.machine import virtual_machine
from belljar.worker.session import Session

ROOT = Path(__file__).parents[2]

SCRIPT = r"""
echo $RANDOM $SRANDOM $$ $EPOCHREALTIME $SECONDS; date +%s.%N; mktemp; uuidgen; shuf -i 1-1000 -n 5
seq 20 | sort -R | paste -sd' '; head -c 8 /dev/urandom | od -An -tx1; awk 'BEGIN { srand(); print rand(), systime() }'
for i in 1 2 3; do (sleep 0.$i; echo $i $RANDOM) & done; wait
touch f g; ln f h; stat -c '%y %i %h' f g h; ls -la --time-style=full-iso /tmp /proc; ps aux; mount
cat /proc/{uptime,loadavg,stat,self/stat,meminfo} /proc/sys/kernel/random/{uuid,boot_id}
(yes a | head -c 300000 & yes b | head -c 300000 & wait) | md5sum
time sleep 1.5; times; jq -n 'now, {b: 1, a: 2}'; printf '%(%F %T)T\n'
git init -q r; cd r; git config user.name n; git config user.email e@x; git commit -q --allow-empty -m x
git log --format='%H %ad'
cd ..; tar c f g | md5sum; gzip -c f | md5sum; declare -A m=([x]=1 [y]=2 [z]=3); echo "${!m[@]}"; env | sort
compgen -c | md5sum
trap 'echo caught' USR1; (sleep 1; kill -USR1 $$) & wait; sleep 100 & kill $!; wait $!; echo $?
timeout 1 sleep 9; echo $?
"""


def play(seed: int) -> bytes:
    """Everything the script wrote, and how it ended."""
    session = Session(virtual_machine(seed), programs=find, names=names())
    result = session.exec(["bash", "-c", SCRIPT], cwd="/tmp", merge_stderr=True)
    return result.stdout + f"{result.status} {result.limit}".encode()


def test_the_same_seed_gives_the_same_run_in_any_process() -> None:
    """Python's own hashes differ between the two: nothing may hang on the order of a set."""
    command = [
        sys.executable,
        "-c",
        "import sys; from tests.worker.test_replay import play; sys.stdout.buffer.write(play(7))",
    ]
    one, two = (
        subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": hashes}, capture_output=True, check=True
        ).stdout
        for hashes in ("1", "2")
    )
    assert one.decode() == two.decode()
    assert one.endswith(b"caught\n143\n124\n0 None")


def test_another_seed_gives_another() -> None:
    one, two = (play(seed).splitlines() for seed in (1, 2))
    assert len(one) == len(two)
    assert one[0] != two[0]
    assert one[1] == two[1] == b"1767225600.000000000"
