"""Versions and ranges mean what npm's own semver says they mean."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.bin.npm.project import is_subset
from belljar.engines.owner.js_build_host import node
from belljar.packages.semver import parse_range, parse_version, satisfies, sort_key

CASES = Path(__file__).with_name("semver_cases.cjs")


def test_ranges_mean_what_npm_says() -> None:
    module = node().parent.parent / "lib/node_modules/npm/node_modules/semver"
    command = [str(node()), str(CASES), str(module), "20261116", "4000"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()
    assert len(lines) == 4000
    for line in lines:
        case = json.loads(line)
        wanted = parse_range(case["wanted"])
        assert (wanted is not None) == case["valid"], case["wanted"]
        for text, valid, fits in case["versions"]:
            version = parse_version(text)
            assert (None if version is None else str(version)) == valid, text
            assert satisfies(text, case["wanted"]) == fits, (text, case["wanted"])


def test_the_order_of_versions() -> None:
    ordered = "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1"
    assert sorted(reversed(ordered.split()), key=sort_key) == ordered.split()


@given(st.text(alphabet="0123456789.xX*^~<>=|- vabz+", max_size=40))
def test_whatever_is_written_is_a_range_or_is_not(text: str) -> None:
    parsed = parse_range(text)
    assert parsed is None or parsed.test(parse_version("1.2.3") or pytest.fail("no version")) in (True, False)
    parse_version(text)


@given(st.text(max_size=30))
def test_any_text_will_do(text: str) -> None:
    parse_range(text)
    parse_version(text)


@pytest.mark.parametrize(
    ("inner", "outer", "is_inside"),
    [
        ("^1.2.3", "^1.0.0", True),
        ("^1.2.3", "1.x", True),
        ("^1.2.3", "*", True),
        ("^1.2.3", "~1.2.0", False),
        ("^1.2.3", "1.x <1.5", False),
        ("^1.2.3", "0.x || 1.x", True),
        ("1.2.3", "~1.2.0", True),
        ("^0.2.3", ">=0.2", True),
    ],
)
def test_one_range_inside_another(inner: str, outer: str, is_inside: bool) -> None:
    assert is_subset(inner, outer) == is_inside
