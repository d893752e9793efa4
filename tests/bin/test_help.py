"""Every utility's help begins as GNU's do."""

from __future__ import annotations

import pytest

from belljar.bin._kit.discovery import find, names


@pytest.mark.parametrize("name", names())
def test_help_begins_with_usage(name: str) -> None:
    program = find(name)
    assert program is not None
    assert program.help().startswith("Usage: ")
