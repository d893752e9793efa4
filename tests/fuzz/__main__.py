"""Run fuzzers for as long as you like.

Usage: python -m tests.fuzz [TARGET...] [--seconds N] [--seed N] [--keep N]

Without a target the time is shared by all, each in a process of its own. `--keep` adds so many cases with new outcomes
to the corpus. A case that broke something is in build/fuzz; to try it again, copy it to tests/fuzz/corpus/TARGET.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import subprocess
import sys
import time

from tests.fuzz.driver import CORPUS, Finding, corpus, fuzz, names


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(names()))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", type=int, default=0)
    options = parser.parse_args()
    wanted = options.targets or names()
    if len(wanted) > 1:
        share = str(options.seconds / len(wanted))
        command = [sys.executable, "-m", "tests.fuzz", "--seconds", share, "--seed", str(options.seed)]
        return max(subprocess.run([*command, name], check=False).returncode for name in wanted)
    [name] = wanted
    logging.disable()  # a worker that breaks the protocol is told of, and here every one does
    try:
        report = fuzz(name, options.seconds, options.seed)
    except Finding as finding:
        print(finding)
        return 1
    print(
        f"{name}: {report.cases} cases, {len(report.outcomes)} outcomes, {report.growth >> 10} KB more memory, "
        f"seed {options.seed}"
    )
    known = set(corpus(name))
    for case in [case for case in report.kept if case not in known][: options.keep]:
        (CORPUS / name).mkdir(parents=True, exist_ok=True)
        (CORPUS / name / hashlib.sha256(case).hexdigest()[:12]).write_bytes(case)
    return 0


if __name__ == "__main__":
    sys.exit(main())
