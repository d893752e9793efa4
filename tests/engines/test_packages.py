"""What pip installs is imported and run: in the interpreter's own place, in a venv, from a project being edited."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belljar import Sandbox
from tests.bin.pip.archives import INDEX, index, wheel

FILES = index(
    {
        "greet-1.0-py3-none-any.whl": wheel(
            "greet",
            "1.0",
            {"greet.py": "import shout\ndef main():\n    print(shout.up('hi'))\n"},
            requires=("shout>=1",),
            scripts="greet = greet:main",
        ),
        "shout-1.5-py3-none-any.whl": wheel("shout", "1.5", {"shout.py": "def up(text):\n    return text.upper()\n"}),
    }
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(files=FILES, env={"PIP_INDEX_URL": INDEX}) as made:
        yield made


def test_what_is_installed_is_imported_and_run(sandbox: Sandbox) -> None:
    assert sandbox.exec("python3 -c 'import greet'").exit_code == 1
    assert (
        sandbox.exec("python3 -m pip install greet")
        .check()
        .stdout.endswith("Successfully installed greet-1.0 shout-1.5\n")
    )
    assert sandbox.exec("greet").stdout == "HI\n"
    assert sandbox.exec("python3 -c 'import greet; greet.main()'").stdout == "HI\n"
    version = "from importlib.metadata import version; print(version('greet'))"
    assert sandbox.exec(["python3", "-c", version]).stdout == "1.0\n"
    sandbox.exec("pip uninstall -y greet shout").check()
    assert sandbox.exec("greet").exit_code == 127


def test_what_comes_with_the_interpreter(sandbox: Sandbox) -> None:
    listed = sandbox.exec("pip list --format=freeze").stdout
    assert "numpy==" in listed
    assert "pandas==" in listed
    satisfied = sandbox.exec("pip install numpy 'pandas>=2'").check().stdout
    assert satisfied.startswith("Requirement already satisfied: numpy in ")
    assert "Requirement already satisfied: pandas>=2 in " in satisfied
    assert "Successfully" not in satisfied
    assert "comes with the interpreter" in sandbox.exec("pip uninstall -y numpy").stdout


def test_a_venv_has_its_own_packages(sandbox: Sandbox) -> None:
    made = sandbox.exec(
        "python3 -m venv .venv && . .venv/bin/activate && pip install greet && greet && which python3 pip"
    )
    assert made.exit_code == 0, made.stderr
    assert made.stdout.endswith("HI\n/workspace/.venv/bin/python3\n/workspace/.venv/bin/pip\n")
    assert sandbox.exec("python3 -c 'import greet'").exit_code == 1
    assert sandbox.exec(".venv/bin/python -c 'import greet, sys; print(sys.prefix)'").stdout == "/workspace/.venv\n"
    assert sandbox.exec(".venv/bin/greet").stdout == "HI\n"
    assert sandbox.exec(".venv/bin/python -m pip list -l").stdout.split()[4:] == ["greet", "1.0", "shout", "1.5"]
    left = sandbox.exec(". .venv/bin/activate; deactivate; which python3; echo ${VIRTUAL_ENV-none}").stdout
    assert left == "/usr/bin/python3\nnone\n"
    assert sandbox.exec("python3 -m venv").exit_code == 2


def test_a_project_being_edited(sandbox: Sandbox) -> None:
    sandbox.files.write("/workspace/app/pyproject.toml", '[project]\nname = "app"\nversion = "1"\n')
    sandbox.files.write("/workspace/app/src/app/__init__.py", "value = 1\n")
    sandbox.exec("pip install -e ./app").check()
    assert sandbox.exec("python3 -c 'import app; print(app.value)'").stdout == "1\n"
    sandbox.files.write("/workspace/app/src/app/__init__.py", "value = 22\n")
    assert sandbox.exec("python3 -c 'import app; print(app.value)'").stdout == "22\n"
    assert sandbox.python.run("import app\napp.value").value == 22
