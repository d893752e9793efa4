"""Vi's keys on a terminal: each line as real bash made of it (see record_vi.py)."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import Sandbox
from tests.shell.test_interactive import PROMPT, Person

TABLE = Path(__file__).with_name("vi.jsonl")


@pytest.fixture
def person() -> Iterator[Person]:
    with Sandbox() as sandbox:
        person = Person(sandbox.pty(["bash", "-i"], env={"PS1": PROMPT, "HISTFILE": ""}, rows=24, cols=80))
        person.wait(PROMPT)
        person.run("set -o vi")
        yield person


def test_lines_are_edited_as_bash_does(person: Person) -> None:
    wrong = []
    for row in TABLE.read_text().splitlines():
        keys, expected = json.loads(row)
        if "\x1b/" in keys:
            person.press(keys.partition("\r")[0] + "\r")
            keys = keys.partition("\r")[2]
        if (said := person.run(keys)) != expected:
            wrong.append((keys, expected, said))
    assert wrong == [], "\n".join(map(repr, wrong))


def test_any_keys_leave_a_shell_that_answers(person: Person) -> None:
    chance = random.Random(3)
    keys = string.ascii_letters + string.digits + "~`|%^$.,;_/?é \x0b\x14\x15\x17\x19\x1f\x7f\x1b\x1b\x1b"
    for number in range(30):
        person.press("".join(chance.choices(keys, k=80)))
        person.press(f"\x1b\x1bccecho {number} fine\r")
        person.wait(f"\n{number} fine\n{PROMPT}")
    assert person.run("set -o emacs") == ""
    assert person.run("echo ab\x02X") == "aXb\n"
