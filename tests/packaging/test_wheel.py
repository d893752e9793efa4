"""The wheel that `make wheel` builds runs Python, JavaScript and native programs where there is no compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import shutil
import subprocess
from belljar import Sandbox
from belljar.engines.owner import js_build_host as build_host
from belljar.native.agent_build_host import agent_program, shipped_agent

assert not any(map(shutil.which, ("cc", "c++", "gcc", "g++", "clang", "clang++"))), "a compiler is on PATH"
assert build_host.addon() == build_host.addon_places()[0], "the addon is not the wheel's"
assert agent_program() == shipped_agent(), "the agent is not the wheel's"
assert subprocess.run([agent_program(), "help"]).returncode == 2, "the agent can't be executed"
with Sandbox() as sandbox:
    assert sandbox.exec("echo $((6 * 7))").stdout == "42\\n"
    assert sandbox.python.run("6 * 7").value == 42
    assert sandbox.js.run("6 * 7").value == 42
print("works")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("wheel")
    addon, agent = (
        subprocess.run(
            [sys.executable, "-m", module, str(made / "parts")], capture_output=True, text=True, check=True
        ).stdout.strip()
        for module in ("belljar.engines.owner.js_build_host", "belljar.native.agent_build_host")
    )
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps"]
    environment = {**os.environ, "BELLJAR_WHEEL_ADDON": addon, "BELLJAR_WHEEL_AGENT": agent}
    subprocess.run([*build, "--no-build-isolation", "-w", str(made), str(ROOT)], env=environment, check=True)
    (found,) = made.glob("belljar_sandbox-*.whl")
    return found


@pytest.mark.battery
@pytest.mark.slow
def test_it_carries_the_console(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    page = [name.rpartition("/")[2] for name in names if name.startswith("belljar/server/console/static/")]
    assert {"index.html", "LICENSES.txt"} <= set(page)
    assert any(name.startswith("console-") and name.endswith(".js") for name in page)


@pytest.mark.slow
def test_it_is_for_this_platform_only(wheel: Path) -> None:
    assert "-py3-none-" in wheel.name
    assert wheel.name.endswith(f"_{os.uname().machine}.whl")


@pytest.mark.slow
def test_it_runs_without_a_compiler(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    # What belljar needs is what this environment has: a path file makes it importable, without its editable installs.
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    others = [sysconfig.get_path("purelib"), *(path for path in sys.path if path.endswith("site-packages"))]
    (home / "lib" / version / "site-packages" / "needs.pth").write_text("\n".join(dict.fromkeys(others)) + "\n")
    environment = {**os.environ, "PATH": str(home / "bin"), "PYTHONPATH": ""}
    environment.pop("CXX", None)
    ran = subprocess.run([python, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.returncode) == ("works\n", 0), ran.stderr
