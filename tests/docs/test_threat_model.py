"""Each test that docs/THREAT_MODEL.md names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/THREAT_MODEL.md").read_text()


def test_named_files_exist() -> None:
    named = set(re.findall(r"`(?:tests/)?([a-z_]+/(?:[a-z_]+/)?test_\w+\.py)", TEXT))
    assert len(named) > 8
    assert not [name for name in named if not (ROOT / "tests" / name).exists()]


def test_named_tests_exist() -> None:
    """A name may be cut off by `...`, or begin with `test_*_`."""
    tests = "\n".join(
        path.read_text() for name in ("escape", "server") for path in (ROOT / "tests" / name).glob("test_*.py")
    )
    named = re.findall(r"`(test_[\w*]+)(?:\.\.\.)?`", TEXT)
    assert len(named) > 20
    assert not [name for name in named if not re.search("def " + name.replace("*", r"\w+"), tests)]


def test_named_fuzzers_exist() -> None:
    paragraphs = [text for text in TEXT.split("\n\n") if "tests/fuzz/" in text]
    named = {name for text in paragraphs for name in re.findall(r"`([a-z_0-9]+)`", text)}
    assert named == {path.stem for path in (ROOT / "tests/fuzz/targets").glob("[a-z]*.py")}
