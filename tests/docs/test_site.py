"""The documentation site names what there is; `make docs` builds it and stops at broken links."""

import re
from pathlib import Path

import pytest

import belljar
from belljar.cli.__main__ import build_parser

ROOT = Path(__file__).parents[2]


def test_the_command_line_page_names_every_command() -> None:
    page = (ROOT / "docs/command-line.md").read_text()
    names = re.findall(r"^    (\w+) +\S", build_parser().format_help(), re.MULTILINE)
    assert {"run", "shell", "doctor"} <= set(names)
    assert [name for name in names if f"`belljar {name}" not in page] == []


def test_the_reference_names_only_what_is_public() -> None:
    page = (ROOT / "docs/reference.md").read_text()
    named = re.findall(r"^::: belljar\.(\w+)$", page, re.MULTILINE)
    assert set(named) <= set(belljar.__all__)
    assert {"Sandbox", "Process", "Limits", "Mount", "Network", "ExecResult"} <= set(named)


def test_the_first_page_works_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/index.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(program, "index.md", "exec"), {})  # noqa: S102 - our own page
    assert capsys.readouterr().out == "HELLO\n\n45\n[1, 4, 9]\n"
