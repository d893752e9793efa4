"""Every utility's help begins as GNU's do."""

from __future__ import annotations

import pytest

from belljar.bin._kit.discovery import find, names
from tests.adapter import new_session, run_command


@pytest.mark.parametrize("name", names())
def test_help_begins_with_usage(name: str) -> None:
    program = find(name)
    assert program is not None
    assert program.help().startswith("Usage: ")


@pytest.mark.parametrize("command", ["git", "git status", "npm", "npm install", "npx", "pip", "uv", "uv pip"])
def test_tools_with_commands_of_their_own_begin_so_too(command: str) -> None:
    result = run_command(new_session(), ["bash", "-c", f"{command} --help"])
    assert result.stdout.decode().lower().split()[0] == "usage:"
