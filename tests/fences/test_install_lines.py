"""No line of ours installs `belljar` from PyPI: that is somebody else's package. Ours is belljar-sandbox."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from belljar.abi.install import install_hint

ROOT = Path(__file__).parents[2]
INSTALLERS = r"(?:pip3?|pipx|uv|uvx)"
STRANGER = re.compile(
    # an installer and the bare name, perhaps on the next line; not belljar-sandbox, a path or a module
    rf"{INSTALLERS}\s+(?:(?:tool|pip)\s+)?(?:install|add|run)\s+(?:#\s*)?(?:-[-\w=]+\s+)*['\"]?belljar(?![\w/.-])"
    # a requirement with extras, as in a Dockerfile's argument
    r"|\bbelljar\[[a-z]"
)


def wrong(text: str) -> list[str]:
    return [found[0] for found in STRANGER.finditer(text)]


@pytest.mark.parametrize(
    "line",
    [
        "pip " + "install belljar",
        "pip " + "install 'belljar" + "[all]'",
        "pip " + "install --no-cache-dir -U belljar",
        "Needs `pip " + "install\n'belljar" + "[python]'`",
        "uv pip " + "install belljar",
        'ARG BELLJAR="belljar' + '[all]"',
    ],
)
def test_a_strangers_package_is_seen(line: str) -> None:
    assert wrong(line)


@pytest.mark.parametrize(
    "line",
    [
        "pip install '.[all]'",
        "pip install belljar-sandbox",
        "pip install dist/belljar_sandbox-0.1.0-py3-none-any.whl[all]",
    ],
)
def test_our_own_is_not(line: str) -> None:
    assert not wrong(line)


def test_no_tracked_file_installs_a_strangers_package() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    found = {}
    for name in listed.stdout.decode().split("\0")[:-1]:
        path = ROOT / name
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        if b"\0" not in data[:8192] and (lines := wrong(data.decode("utf-8", "replace"))):
            found[name] = lines
    assert not found


def test_hints_name_extras_that_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == "belljar-sandbox"
    used = set()
    for path in (ROOT / "src").rglob("*.py"):
        used.update(re.findall(r"""install_hint\(["']([a-z-]+)["']\)""", path.read_text()))
    assert used
    assert used <= set(project["optional-dependencies"])
    assert install_hint("js") == "in belljar's checkout, run: pip install -e '.[js]'"
    assert install_hint() == "in belljar's checkout, run: pip install -e ."
