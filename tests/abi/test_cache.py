"""The cache directory: absolute, ours alone, and somewhere else where the home is of no use."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from belljar.abi import cache_host
from belljar.abi.cache_host import cache_directories, cache_directory

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes and owners are Unix's")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that names nothing but a directory for temporary files."""
    for name in ("BELLJAR_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.chdir(tmp_path)
    # Those of this machine may have what programs without a home left there.
    is_safe = cache_host._is_safe_for_all
    monkeypatch.setattr(cache_host, "_is_safe_for_all", lambda path: path not in ("/tmp", "/var/tmp") and is_safe(path))
    return temporary


def fallback(temporary: Path) -> str:
    return str(temporary / f"belljar-{os.geteuid()}")


def test_in_the_home(temporary: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_directory() == str(tmp_path / "home" / ".cache" / "belljar")
    assert cache_directories() == [cache_directory()]


@pytest.mark.parametrize("home", ["", "relative", "."])
def test_a_relative_home_is_none(temporary: Path, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: home or path)
    assert cache_directory() == fallback(temporary)


def test_a_relative_variable_is_not_heeded(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/dev/null")
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert cache_directory() == fallback(temporary)
    assert not Path("here").exists()


def test_a_home_that_cannot_be_written(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/proc/1/no-such-home")
    assert cache_directory() == fallback(temporary)
    assert os.stat(fallback(temporary)).st_mode & 0o777 == 0o700


def test_what_a_read_only_home_has_is_still_found(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    kept = cache_directory()
    assert kept is not None
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != kept and access(path, mode))
    assert cache_directory() == fallback(temporary)
    assert cache_directories() == [kept, fallback(temporary)]


def test_one_that_others_can_write_to_is_refused_and_not_passed_over(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "belljar").mkdir()
    (tmp_path / "belljar").chmod(0o777)
    assert cache_directory() is None
    assert cache_directories() == []


def test_a_link_that_somebody_put_there_is_refused(temporary: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    os.symlink(tmp_path / "elsewhere", fallback(temporary))
    assert cache_host.private_directory(fallback(temporary)) is None
    assert fallback(temporary) not in cache_directories()


def test_a_shared_directory_without_the_sticky_bit_is_not_used(temporary: Path) -> None:
    temporary.chmod(0o777)
    assert not any(path.startswith(str(temporary)) for path in cache_host._candidates())


def test_the_chosen_one_has_no_substitute(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLJAR_CACHE", "/proc/1/no-such-place")
    assert cache_directory() is None
