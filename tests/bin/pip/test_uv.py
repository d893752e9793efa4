"""uv's command line over pip and venv."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belljar import Sandbox
from tests.bin.pip.archives import INDEX, index, wheel

FILES = index(
    {
        "shout-1.0-py3-none-any.whl": wheel(
            "shout", "1.0", {"shout.py": "def main():\n    print('HI')\n"}, scripts="shout = shout:main"
        ),
        "shout-2.0-py3-none-any.whl": wheel(
            "shout", "2.0", {"shout.py": "def main():\n    print('HI 2')\n"}, scripts="shout = shout:main"
        ),
    }
)
SCRIPT = """# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "shout<2",
# ]
# ///
import shout
shout.main()
"""


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(files=FILES, env={"PIP_INDEX_URL": INDEX}) as made:
        yield made


def test_pip_works_in_the_environment_that_is_there(sandbox: Sandbox) -> None:
    made = sandbox.exec("uv venv && uv pip install --quiet shout && uv pip list --format freeze --local")
    assert made.exit_code == 0, made.stderr
    assert "Creating virtual environment at: .venv" in made.stderr
    assert made.stdout == "shout==2.0\n"
    assert sandbox.exec(".venv/bin/shout").stdout == "HI 2\n"
    assert sandbox.exec("python3 -c 'import shout'").exit_code == 1
    assert sandbox.exec("mkdir -p a/b && cd a/b && uv pip uninstall -q shout && uv pip freeze").stdout == ""
    assert sandbox.exec("uv pip install -q --system shout && python3 -c 'import shout'").exit_code == 0


def test_run_brings_what_is_asked_for(sandbox: Sandbox) -> None:
    assert sandbox.exec("uv run --with shout==1.0 python -c 'import shout; shout.main()'").stdout == "HI\n"
    sandbox.files.write("job.py", SCRIPT)
    assert sandbox.exec("uv run job.py").stdout == "HI\n"
    assert sandbox.exec("uvx shout; uvx shout@1.0; uv tool run --from shout==1.0 shout").stdout == "HI 2\nHI\nHI\n"
    assert sandbox.exec("python3 -c 'import shout'").exit_code == 1, "nothing of it stays outside"


def test_run_in_a_project(sandbox: Sandbox) -> None:
    sandbox.files.write("pyproject.toml", '[project]\nname = "p"\nversion = "1"\ndependencies = ["shout"]\n')
    sandbox.files.write("main.py", "import shout\nshout.main()\n")
    assert sandbox.exec("uv run main.py && uv run shout && uv run -m shout").stdout == "HI 2\nHI 2\n"
    sandbox.files.write("pyproject.toml", '[project]\nname = "p"\nversion = "1"\ndependencies = ["shout<2"]\n')
    assert sandbox.exec("uv sync && uv run shout").stdout == "HI\n"
    assert sandbox.exec("uv run false").exit_code == 1


def test_what_is_not_there_is_said(sandbox: Sandbox) -> None:
    assert "uv publish is not there" in sandbox.exec("uv publish").stderr
    assert sandbox.exec("uv run nothing-of-this-name").exit_code == 127
    assert sandbox.exec("uv --version").stdout.startswith("uv ")
