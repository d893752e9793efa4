"""belljar where there is no Linux: a stand-in for macOS and Windows, with everything that is Linux's taken away."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

import pytest

from tests.worker.elsewhere import LINUX_ONLY

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it is a stand-in made of Linux")


@pytest.mark.battery(sample=1)
@pytest.mark.slow
@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_commands_files_tools_and_an_honest_info(platform: str, tmp_path: Path) -> None:
    """The kernel, the shell and the utilities run in a spawned process that nothing seals, and `info` says so."""
    said = tmp_path / "said"
    with said.open("wb") as file:
        program = [sys.executable, str(HERE / "elsewhere_program.py"), platform]
        done = subprocess.run(program, stdout=file, stderr=subprocess.STDOUT, timeout=240, check=False)
    assert done.returncode == 0, said.read_text()
    assert f"all of it works on {platform}" in said.read_text()


def test_the_types_are_checked_for_every_module_that_is_imported_there() -> None:
    """`tools/mypy_elsewhere.ini` leaves out the modules that the program above must not import, and few others."""
    config = configparser.ConfigParser()
    config.read(HERE.parents[1] / "tools" / "mypy_elsewhere.ini")
    left_out = {
        name
        for section in config.sections()
        if config[section].get("ignore_errors") == "True"
        for name in section.removeprefix("mypy-").split(",")
    }
    assert left_out >= LINUX_ONLY
    others = left_out - LINUX_ONLY
    assert not {name for name in others if name.startswith(("belljar.api", "belljar.worker", "belljar.lockdown"))}
