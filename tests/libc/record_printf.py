"""Records what real bash prints for a table of formats: `python record_printf.py > printf.jsonl`."""

import json
import random
import subprocess
import sys

NUMBERS = [
    "0",
    "1",
    "-1",
    "42",
    "-42",
    "007",
    "0x1F",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999",
]
REALS = [
    "0",
    "1",
    "-1.5",
    "3.14159",
    "1e10",
    "1e-10",
    "123456.789",
    "0.1",
    "1e300",
    "inf",
    "-inf",
    "nan",
    "0x1.8p3",
    "99.9999",
]
TEXTS = ["", "a", "hello", "a b", "é", "it's", "a\\tb", "\\0101\\x41", "$x", "\t", "-5", "3x", "abc\\c def"]


def cases() -> list[list[str]]:
    rng = random.Random(52)
    found: list[list[str]] = []
    for kind, letters, values in (("int", "diouxX", NUMBERS), ("real", "eEfFgGaA", REALS), ("text", "sbqQc", TEXTS)):
        for _ in range(700):
            flags = "".join(rng.sample("-+ 0#", rng.choice([0, 0, 1, 2])))
            width = rng.choice(["", "", "5", "12", "*"])
            precision = rng.choice(["", "", ".", ".0", ".1", ".3", ".10", ".*"])
            args = [rng.choice(["3", "-8", "0"])] * (width == "*") + [rng.choice(["2", "-1", "0"])] * (
                precision == ".*"
            )
            values_used = (
                rng.choice(values) if rng.random() < 0.9 or kind == "text" else rng.choice(["x", "5z", "'A", "08"])
            )
            found.append([f"[%{flags}{width}{precision}{rng.choice(letters)}]", *args, values_used])
    found += [
        ["%s %s|", "a", "b", "c"],
        ["plain", "x", "y"],
        ["%d %d|", "1"],
        ["%%|%5%|"],
        ["a\\tb\\x41\\101\\u00e9|%s", "x"],
    ]
    found += [
        ["%s\\n", "-n"],
        ["%z", "1"],
        ["%", "1"],
        ["%5", "1"],
        ["\\z\\\\|"],
        ["%(%Y-%m-%d)T|", "0"],
        ["%ld %hd|", "1", "2"],
    ]
    # Bash itself disagrees with its manual on %Q with a precision of "." or "*".
    return [case for case in found if not case[0].endswith((".Q]", "*Q]"))]


def main() -> None:
    for case in cases():
        run = subprocess.run(
            ["bash", "-c", 'printf "$@"', "bash", *case],
            capture_output=True,
            check=False,
            env={"LC_ALL": "C.UTF-8", "TZ": "UTC0"},
        )
        messages = [line.partition("printf: ")[2] for line in run.stderr.decode().splitlines()]
        sys.stdout.write(json.dumps([case, run.stdout.decode("latin-1"), run.returncode, messages]) + "\n")


main()
