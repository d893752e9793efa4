"""Records how real bash quotes a table of words in each place: `python record_quotes.py > quotes.jsonl`."""

import json
import random
import subprocess
import sys

SCRIPT = r"""
w=$1 key=$1.
printf '%q\0' "$w"; printf '%s\0' "${w@Q}"; s=$(declare -p w; echo x); printf '%s\0' "${s%$'\n'x}"
s=$(set | grep -a '^w=' -A9 | grep -av '^[a-vx-zA-Z_]*='; echo x); printf '%s\0' "${s%$'\n'x}"
s=$(set -x; { : "$w"; } 2>&1; set +x 2>/dev/null; echo x); s=${s%$'\n'x}; printf '%s\0' "${s%$'\n'*+ set +x}"
declare -A m=(["$key"]=1); s=$(declare -p m; echo x); printf '%s\0' "${s%$'\n'x}"
alias zz="$w"; s=$(alias zz; echo x); printf '%s\0' "${s%$'\n'x}"
printf '%s\0' "${w@A}"
"""
PLACES = ["printf", "reuse", "declare", "set", "trace", "key", "single", "assign"]


def words() -> list[str]:
    rng = random.Random(7)
    found = ["", "'", "~", "a~", "a:~", "a=~b", "#", "a#", " #", "é", "\udcff", "\u200b", "\u00a0", "\u2028", "-n", "@"]
    found += [chr(code) for code in range(1, 127)]
    found += [f"a{chr(code)}b" for code in range(1, 127)]
    for _ in range(150):
        found.append("".join(rng.choice("ab~#:=,'\"\\$`! \t\n\x01é\udcc3*[]{}()") for _ in range(rng.randint(1, 6))))
    return found


def main() -> None:
    for word in words():
        run = subprocess.run(
            ["bash", "-c", SCRIPT, "bash", word.encode("utf-8", "surrogateescape")],
            capture_output=True,
            check=True,
            env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
        )
        answers = run.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
        assert len(answers) == len(PLACES), (word, run)
        sys.stdout.write(json.dumps([word, dict(zip(PLACES, answers, strict=True))]) + "\n")


main()
