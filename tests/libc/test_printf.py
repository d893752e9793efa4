"""printf against a table recorded from bash 5.2."""

import json
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import cast

import pytest

from belljar.kernel.budget import Budget
from belljar.libc.printf import Printf
from belljar.shell.builtins.output import BashDialect
from belljar.shell.shell import Shell

TABLE = [json.loads(line) for line in (Path(__file__).parent / "printf.jsonl").read_text().splitlines()]


class Unlimited:
    def charge(self, steps: int = 1) -> None:
        pass

    def charge_size(self, size: int) -> None:
        pass


class Variables:
    def exported(self) -> dict[str, str]:
        return {"TZ": "UTC0"}


class Listener:
    """What of a shell printf needs: somewhere to complain."""

    vars = Variables()

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.process = SimpleNamespace(kernel=None)

    def error(self, message: str) -> None:
        self.messages.append(message.removeprefix("printf: "))


def answer(case: list[str]) -> tuple[str, int, list[str]]:
    listener = Listener()
    printf = Printf(BashDialect(cast(Shell, listener)), case[1:], cast(Budget, Unlimited()))
    data, status = printf.run(case[0])
    return data.decode("latin-1"), status, listener.messages


def test_printf_answers_as_bash_does() -> None:
    wrong = [(case, want, got) for case, *want in TABLE if list(got := answer(case)) != want]
    assert wrong == []


@pytest.mark.parametrize(
    "template", ["%" + "0" * 300_000 + "d", "%(" * 100_000, "%(" + "(x" * 100_000, "%" + "1" * 300_000]
)
def test_hostile_formats_end_soon(template: str) -> None:
    start = process_time()
    answer([template, "1"])
    assert process_time() - start < 1
