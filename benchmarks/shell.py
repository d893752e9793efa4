# ruff: noqa: E501
"""The shell's speed beside real bash's, in the same run: `python benchmarks/shell.py [-n ROUNDS] [NAME...]`.

Each script runs in a session inside this process and in `bash -c`; of several rounds the best counts. "loop" scripts
are also given without bash's start (its time for `:` taken off).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from math import exp, log
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from adapter import new_session

LOOPS = {
    "while [ ]": "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo $i",
    "while (( ))": "i=0; while (( i < 200000 )); do (( i++ )); done; echo $i",
    "while [[ ]]": "i=0; while [[ $i -lt 200000 ]]; do i=$((i+1)); done; echo $i",
    "for (( ))": "s=0; for ((i=0; i<200000; i++)); do ((s+=i)); done; echo $s",
    "string building": "s=; for ((i=0; i<50000; i++)); do s+=x$i; done; echo ${#s}",
    "array push and sum": "a=(); for ((i=0; i<50000; i++)); do a+=($i); done; s=0; for x in ${a[@]}; do s=$((s+x)); done; echo $s",
    "array by index": "for ((i=0; i<50000; i++)); do a[i]=$i; done; s=0; for ((i=0; i<${#a[@]}; i++)); do ((s+=a[i])); done; echo $s",
    "word count": "declare -A c; for ((i=0; i<50000; i++)); do w=w$((i%97)); c[$w]=$((${c[$w]:-0}+1)); done; echo ${#c[@]}",
    "function calls": "f() { r=$(( $1 + 1 )); }; r=0; for ((i=0; i<50000; i++)); do f $r; done; echo $r",
    "function with locals": "f() { local a=$1 b=$2; r=$((a+b)); }; for ((i=0; i<50000; i++)); do f $i 2; done; echo $r",
    "case dispatch": "n=0; for ((i=0; i<50000; i++)); do case $((i%5)) in 0) n=$((n+1));; 1|2) n=$((n+2));; *) n=$((n+3));; esac; done; echo $n",
    "case patterns": "n=0; for x in {1..20000}; do case f$x.txt in *.c) n=1;; f1*.txt) ((n++));; *) :;; esac; done; echo $n",
    "nested loops": "n=0; for i in {1..300}; do for j in {1..300}; do n=$((n+1)); done; done; echo $n",
    "substrings": "s=abcdefghij; n=0; for ((i=0; i<50000; i++)); do c=${s:i%10:1}; if [[ $c == c ]]; then ((n++)); fi; done; echo $n",
    "strip and replace": "for ((i=0; i<30000; i++)); do p=/usr/lib/x$i.so; b=${p##*/}; b=${b%.so}; b=${b/x/y}; done; echo $b",
    "if elif": "n=0; for ((i=0; i<50000; i++)); do if [ $((i%3)) -eq 0 ]; then n=$((n+1)); elif [ $((i%3)) -eq 1 ]; then n=$((n+2)); else n=$((n+3)); fi; done; echo $n",
    "echo to /dev/null": "for ((i=0; i<50000; i++)); do echo line $i; done > /dev/null",
    "printf -v": "for ((i=0; i<30000; i++)); do printf -v x '%05d' $i; done; echo $x",
    "read lines": "while read -r a b; do n=$((n+b)); done < <(for ((i=0;i<20000;i++)); do echo x $i; done); echo $n",
    "continue and break": "n=0; for ((i=0; i<50000; i++)); do if ((i%2)); then continue; fi; n=$((n+1)); done; echo $n",
}
"""Scripts that run inside one shell: not slower than bash."""

FORKS = {
    "1000 x=$(echo)": "for ((i=0; i<1000; i++)); do x=$(echo $i); done; echo $x",
    "1000 pipelines": "for ((i=0; i<1000; i++)); do echo $i | cat >/dev/null; done",
    "1000 pipelines of utilities": "for ((i=0; i<1000; i++)); do seq 3 | head -n 1 >/dev/null; done",
    "300 $(dirname)": "for ((i=0; i<300; i++)); do x=$(dirname /a/b/c$i); done; echo $x",
    "1000 subshells": "for ((i=0; i<1000; i++)); do (x=$i); done",
    "1000 utilities": "for ((i=0; i<1000; i++)); do seq 1 >/dev/null; done",
}
"""Scripts for which bash forks: twenty times faster."""

NESTED = {
    "$( ) in $( )": "echo $({})",
    "in double quotes": 'echo "$({})"',
    "in assignments": "x=$({}); echo $x",
    "<( ) in <( )": "cat <({})",
    "last stage in last stage": "cat </dev/null | {{ {}; }}",
}
"""What nests: twice as deep takes about twice as long."""


def nested(shape: str, depth: int) -> str:
    script = f"echo {time.perf_counter_ns()}"  # a new text each time, as compiled ones are kept
    for _ in range(depth):
        script = shape.format(script)
    return script


def time_nested(shape: str, depth: int, rounds: int) -> float:
    return min(time_ours(nested(shape, depth), 1)[0] for _ in range(rounds))


def time_ours(script: str, rounds: int) -> tuple[float, bytes]:
    best = float("inf")
    output = b""
    for _ in range(rounds):
        session = new_session()
        session.exec(["bash", "-c", ":"])
        start = time.perf_counter()
        result = session.exec(["bash", "-c", script])
        best = min(best, time.perf_counter() - start)
        output = result.stdout + result.stderr
    return best, output


def time_bash(script: str, rounds: int) -> tuple[float, bytes]:
    best = float("inf")
    output = b""
    for _ in range(rounds):
        start = time.perf_counter()
        result = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
        best = min(best, time.perf_counter() - start)
        output = result.stdout + result.stderr
    return best, output


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=3, help="rounds")
    parser.add_argument("names", nargs="*", help="parts of names")
    options = parser.parse_args()
    startup, _ = time_bash(":", 10)
    print(f"bash starts in {1000 * startup:.1f} ms")
    for title, scripts, is_loop in (("in one shell", LOOPS, True), ("with forks", FORKS, False)):
        ratios, bare = [], []
        print(f"\n{title:<30}{'belljar ms':>12}{'bash ms':>10}{'ratio':>8}{'no start':>10}")
        for name, script in scripts.items():
            if options.names and not any(part in name for part in options.names):
                continue
            ours, output = time_ours(script, options.n)
            theirs, expected = time_bash(script, options.n)
            ratios.append(ours / theirs)
            bare.append(ours / (theirs - startup))
            wrong = "" if output == expected else f"   WRONG {output[:80]!r} {expected[:80]!r}"
            shown = f"{ratios[-1]:>8.2f}{bare[-1]:>10.2f}" if is_loop else f"{1 / ratios[-1]:>7.1f}x"
            print(f"{name:<30}{1000 * ours:>12.1f}{1000 * theirs:>10.1f}{shown}{wrong}")
        if ratios:
            mean = exp(sum(map(log, ratios)) / len(ratios))
            if is_loop:
                plain = exp(sum(map(log, bare)) / len(bare))
                print(f"geometric mean {mean:.2f} ({plain:.2f} without bash's start), worst {max(ratios):.2f}")
            else:
                print(f"geometric mean {1 / mean:.1f}x faster, least {1 / max(ratios):.1f}x")
    print(f"\n{'nested':<30}{'8 deep, ms':>12}{'16 deep':>10}{'ratio':>8}")
    for name, shape in NESTED.items():
        if options.names and not any(part in name for part in options.names):
            continue
        few, many = time_nested(shape, 8, options.n), time_nested(shape, 16, options.n)
        print(f"{name:<30}{1000 * few:>12.1f}{1000 * many:>10.1f}{many / few:>8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
