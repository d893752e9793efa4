"""The table from changed paths to batteries: it has a row for every file, and no test is outside of all rooms."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.rooms import ALL, CHANGES, ROOT, affected, batteries, room_of, rooms


def tracked() -> list[str]:
    """Files of the tree as git sees it; of an unpacked archive, what lies there."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        found = [
            path for top in ("src", "tests", "docs", "tools") for path in (ROOT / top).rglob("*") if path.is_file()
        ]
        return [str(path.relative_to(ROOT)) for path in found if "__pycache__" not in path.parts]
    return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).exists()]


def test_every_test_file_belongs_to_a_room() -> None:
    tests = [name for name in tracked() if Path(name).name.startswith("test_") or name.endswith((".spec", "_test.py"))]
    assert len(tests) > 300
    assert [name for name in tests if name.startswith("tests/") and room_of(name) not in rooms()] == []
    others = [name for name in tests if not name.startswith("tests/") and name.endswith((".py", ".spec"))]
    assert others == [], "tests outside of tests/: nothing runs them"


def test_every_file_has_a_row() -> None:
    assert [name for name in tracked() if affected(name) is None] == []


def test_the_table_names_what_exists() -> None:
    named = {room for row in CHANGES.values() if row != ALL for room in row}
    assert named - set(rooms()) == set()
    assert [prefix for prefix in CHANGES if not (ROOT / prefix).exists()] == []


@pytest.mark.parametrize(
    "path", ["src/belljar/abi/wire.py", "src/belljar/kernel/pipe.py", "tests/conftest.py", "new.txt"]
)
def test_what_everything_stands_on_calls_for_all_rooms(path: str) -> None:
    assert batteries([path]) == rooms()


def test_a_change_calls_for_the_rooms_it_can_break() -> None:
    assert batteries(["src/belljar/browser/build_host.py"]) == ["browser"]
    assert batteries(["tests/net/test_framing.py", "docs/index.md"]) == ["docs", "net"]
    assert batteries(["CHANGELOG.md"]) == []
    assert batteries([]) == []


def test_each_package_calls_for_its_own_room() -> None:
    packages = {path.name for path in (ROOT / "src/belljar").iterdir() if (path / "__init__.py").exists()}
    own = sorted(packages.intersection(rooms()))
    assert len(own) > 20
    assert [name for name in own if name not in batteries([f"src/belljar/{name}/x.py"])] == []


def test_an_unknown_commit_calls_for_all_rooms() -> None:
    program = [sys.executable, "-m", "tests.rooms", "--since", "0" * 40]
    ran = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == rooms()
    assert "no commit" in ran.stderr
