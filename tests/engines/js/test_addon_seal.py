"""The addon in the cache is native code: what we did not write is not loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from belljar.engines.artefact_host import store
from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner import js_build_host as build_host


@pytest.fixture
def built(tmp_path: Path) -> Path:
    path = tmp_path / "belljar-137-abc.node"
    store(path, b"\x7fELF native code")
    return path


def test_the_seal_of_one_we_built_holds(built: Path) -> None:
    assert len(build_host.addon_digest(built)) == 64


@pytest.mark.parametrize("damage", ["contents", "seal", "no seal", "key", "name"])
def test_any_other_is_refused_and_removed(built: Path, damage: str) -> None:
    if damage == "contents":
        built.write_bytes(b"\x7fELF other native code")
    elif damage == "seal":
        built.with_suffix(".mac").write_bytes(bytes(32))
    elif damage == "no seal":
        built.with_suffix(".mac").unlink()
    elif damage == "key":
        (built.parent / "key").write_bytes(bytes(32))
    else:
        for suffix in (".node", ".mac"):
            built.with_suffix(suffix).rename(built.with_name(f"belljar-137-def{suffix}"))
        built = built.with_name("belljar-137-def.node")
    with pytest.raises(EngineUnavailable, match="is not what was written there"):
        build_host.addon_digest(built)
    assert not built.exists()


def test_a_link_is_not_followed(built: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.node"
    link.symlink_to(built)
    with pytest.raises(EngineUnavailable):
        build_host.addon_digest(link)
