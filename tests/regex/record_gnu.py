"""Records what GNU grep and sed answer to the patterns in `patterns.txt`; run by hand, not by the tests.

python tests/regex/record_gnu.py > tests/regex/gnu.jsonl
"""

import json
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}


def record(syntax: str, pattern: str, subject: str) -> dict[str, object]:
    """`error`, or whether lines are selected (grep), or every match in brackets with its groups (sed)."""
    data = (subject + "\n").encode("utf-8", "surrogateescape")
    if syntax in ("grep", "egrep"):
        option = "-G" if syntax == "grep" else "-E"
        done = subprocess.run(["grep", option, "-e", pattern], input=data, capture_output=True, env=ENVIRONMENT)
        result: object = done.returncode == 0
        failed = done.returncode == 2
    else:
        opening = "(" if syntax == "sed-ere" else "\\("
        groups = min(pattern.count(opening) - (pattern.count("\\(") if syntax == "sed-ere" else 0), 3)
        wanted = "".join(f"|\\{n}" for n in range(1, groups + 1))
        options = ["-E"] if syntax == "sed-ere" else []
        script = f"s\x01{pattern}\x01[&{wanted}]\x01g"
        done = subprocess.run(["sed", *options, script], input=data, capture_output=True, env=ENVIRONMENT)
        result = done.stdout.decode("utf-8", "surrogateescape")[:-1]
        failed = done.returncode != 0
    entry: dict[str, object] = {"syntax": syntax, "pattern": pattern, "subject": subject}
    if failed:
        entry["error"] = done.stderr.decode().strip().rpartition(": ")[2]
    else:
        entry["result"] = result
    return entry


def main() -> None:
    for line in (Path(__file__).parent / "patterns.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        kind, pattern, *subjects = line.split("\t")
        for syntax in {"B": ("grep", "sed"), "E": ("egrep", "sed-ere")}[kind]:
            for subject in subjects or [""]:
                entry = record(syntax, pattern, subject)
                if "unterminated" not in str(entry.get("error")):  # sed's complaint, not the pattern's
                    sys.stdout.write(json.dumps(entry) + "\n")


if __name__ == "__main__":
    main()
