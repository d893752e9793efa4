"""Scripts of the kind agents write say in a sandbox what native Python says (`record_scripts.py` records that)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belljar import Sandbox
from tests.engines.record_scripts import ARGUMENTS, INPUT, SCRIPTS, names, render

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as made:
        yield made


@pytest.mark.parametrize("name", names())
def test_says_what_native_python_says(sandbox: Sandbox, name: str) -> None:
    directory = f"/tmp/scripts/{name}"
    sandbox.files.write(f"{directory}/{name}.py", (SCRIPTS / f"{name}.py").read_text())
    result = sandbox.exec(["python3", f"{name}.py", *ARGUMENTS], cwd=directory, stdin=INPUT, timeout=120)
    said = render(result.stdout, result.stderr, result.exit_code, directory)
    assert said == (SCRIPTS / f"{name}.out").read_text()
