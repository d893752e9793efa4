"""Runs inside a sandbox: tests of CPython's own suite, a line of JSON for whatever happens to each.

Usage: python3 cpython_guest.py NAME [TEST...]; the tests named are left out.
"""

from __future__ import annotations

import json
import os
import sys
import unittest
from collections.abc import Iterator
from typing import Any

out = os.fdopen(os.dup(1), "w")
"""Standard output is what tests replace."""


class Result(unittest.TestResult):
    """Says of each test what became of it, as soon as that is known."""

    def __init__(self) -> None:
        super().__init__()
        self._bad: set[str] = set()

    def say(self, test: Any, outcome: str, why: str = "") -> None:
        name = test.id().removeprefix("test.")
        if name not in self._bad:
            print(json.dumps({"test": name, "outcome": outcome, "why": why[-2000:]}), file=out, flush=True)
        if outcome == "failed":
            self._bad.add(name)

    def startTest(self, test: Any) -> None:
        super().startTest(test)
        self.say(test, "started")

    def addSuccess(self, test: Any) -> None:
        self.say(test, "passed")

    def addFailure(self, test: Any, err: Any) -> None:
        self.say(test, "failed", self._exc_info_to_string(err, test))  # type: ignore[attr-defined]

    def addError(self, test: Any, err: Any) -> None:
        self.addFailure(test, err)

    def addSkip(self, test: Any, reason: str) -> None:
        self.say(test, "skipped", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self.say(test, "passed")

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.say(test, "failed", "an unexpected success")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.addFailure(test, err)


def flattened(suite: Any) -> Iterator[Any]:
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flattened(item)
        else:
            yield item


def main() -> None:
    from test import support  # type: ignore[import-not-found, unused-ignore]

    # What WASI lacks and a sandbox has: the suite goes by the platform's name.
    support.has_subprocess_support = support.has_socket_support = True
    support.verbose = 0
    name, *left_out = sys.argv[1:]
    suite = unittest.defaultTestLoader.loadTestsFromName(f"test.{name}")
    tests = [test for test in flattened(suite) if test.id().removeprefix("test.") not in left_out]
    unittest.TestSuite(tests).run(Result())
    print(json.dumps({"test": "", "outcome": "done", "why": ""}), file=out, flush=True)


if __name__ == "__main__":
    main()
