"""Runs CPython's own tests in a sandbox's Python and says what differs.

Usage: python tools/python_tests.py [--write] [MODULE...]

`--write` puts the figures into docs/COMPATIBILITY.md. Without modules, those of `MODULES`.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)]

from tests.engines.cpython_suite import differences, fetch, known_difference, run, sandbox  # noqa: E402

MODULES = (
    "test_json test_re test_dataclasses test_pathlib test_csv test_zipfile test_sqlite3 test_subprocess test_os "
    "test_shutil test_tempfile test_glob test_posixpath test_argparse test_datetime test_collections test_httplib"
).split()
HEADING = "## CPython's own tests"
COMPATIBILITY = ROOT / "docs" / "COMPATIBILITY.md"


def measure(modules: list[str]) -> tuple[list[str], bool]:
    """A table's lines, and whether nothing failed that was not known to."""
    known = differences()
    used: Counter[str] = Counter()
    lines = ["| module | passed | known to differ | skipped by the suite | unexpected |", "|---|---|---|---|---|"]
    fine = True
    with sandbox(fetch()) as box:
        for module in modules:
            outcomes = run(box, module)
            count = Counter(outcome for outcome, _ in outcomes.values())
            bad = [test for test, (outcome, _) in outcomes.items() if outcome in ("failed", "crashed")]
            surprises = [test for test in bad if known_difference(test, known) is None]
            used.update(filter(None, (known_difference(test, known) for test in bad)))
            figures = count["passed"], len(bad) - len(surprises), count["skipped"], len(surprises)
            row = f"| {module} | {' | '.join(map(str, figures))} |"
            print(row, flush=True)
            lines.append(row)
            for test in surprises:
                print(f"  {test}\n    {outcomes[test][1].strip().splitlines()[-1:]}", flush=True)
                fine = False
    lines += ["", "What is known to differ, and why:", ""]
    reasons = Counter[str]()
    for pattern, number in used.items():
        reasons[known[pattern]] += number
    lines += [f"- {reason} ({number})" for reason, number in reasons.most_common()]
    return lines, fine


def write(lines: list[str]) -> None:
    """Put the table where the old one was, before the known differences."""
    before, _, _ = COMPATIBILITY.read_text().partition("## Known differences")
    before = re.sub(rf"{re.escape(HEADING)}\n.*", "", before, flags=re.S)
    about = "The guest's Python runs the tests of its own version (3.15.0), by `tools/python_tests.py`."
    section = "\n".join([HEADING, "", about, "", *lines, "", ""])
    known = (ROOT / "docs" / "known-differences.md").read_text()
    COMPATIBILITY.write_text(before + section + known)


def main() -> None:
    modules = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    lines, fine = measure(modules or MODULES)
    if "--write" in sys.argv:
        write(lines)
    sys.exit(not fine)


if __name__ == "__main__":
    main()
