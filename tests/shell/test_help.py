"""`help`: what it knows, and how it shows it."""

from __future__ import annotations

import pytest

from tests.adapter import new_session, run_command


def shown(command: str, **env: str) -> str:
    result = run_command(new_session(env), ["bash", "-c", command])
    assert (result.stderr, result.status) == (b"", 0)
    return result.stdout.decode()


@pytest.mark.parametrize(
    "topic", ["if", "case", "[[", "((", "for", "for ((", "select", "{", "variables", "cd", "printf"]
)
def test_keywords_and_builtins_are_explained(topic: str) -> None:
    text = shown(f"help '{topic}'")
    assert text.startswith(f"{topic}: ")
    assert "\n    " in text


def test_the_overview_fits_the_terminal_and_marks_what_is_disabled() -> None:
    text = shown("enable -n pwd; help", COLUMNS="80")
    lines = text.split("\n")
    assert max(map(len, lines)) <= 80
    assert any(line.startswith(" job_spec [&] ") for line in lines)
    assert any("*pwd [-LP]" in line for line in lines)
    assert any(line.endswith("{ COMMANDS ; }") for line in lines)
