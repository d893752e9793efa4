"""A part of CPython's own tests in the guest; what fails is known to, with a reason. See tools/python_tests.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belljar import Sandbox
from tests.engines.cpython_suite import Unreachable, differences, fetch, known_difference, run, sandbox

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    try:
        directory = fetch()
    except Unreachable as error:
        pytest.skip(f"CPython's tests could not be fetched from Debian: {error}")
    with sandbox(directory) as made:
        made.exec(["python3", "-c", "pass"], timeout=590).check()
        yield made


@pytest.mark.battery(sample=2)
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("test_json", 220),
        ("test_re", 160),
        ("test_csv", 130),
        ("test_dataclasses", 275),
        ("test_sqlite3", 480),
        ("test_pathlib.test_join", 10),
        ("test_zipfile.test_core.StoredTestsWithSourceFile", 20),
        ("test_subprocess.ContextManagerTests", 4),
        ("test_tempfile", 100),
    ],
)
def test_cpythons_own_tests(box: Sandbox, name: str, least: int) -> None:
    outcomes = run(box, name, timeout=120)
    known = differences()
    bad = {test: why for test, (outcome, why) in outcomes.items() if outcome in ("failed", "crashed")}
    surprises = {test: why for test, why in bad.items() if known_difference(test, known) is None}
    # Some measure time, and this machine may have other work: what fails must fail again, alone.
    assert {test: why for test, why in surprises.items() if not any(passes(box, test) for _ in range(3))} == {}
    assert sum(outcome == "passed" for outcome, _ in outcomes.values()) >= least


def passes(box: Sandbox, test: str) -> bool:
    return all(outcome == "passed" for outcome, _ in run(box, test, timeout=120).values())


def test_the_list_of_differences_is_one() -> None:
    known = differences()
    assert known
    assert all(known.values())
    assert known_difference("test_csv.MiscTestCase.test_lazy_import", known) == "*.test_lazy_import"
    assert known_difference("test_json.test_dump.TestCDump.test_dumps", known) is None
