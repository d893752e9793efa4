"""Registries on disk, and packages from directories: what the owner of a registry does."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from pathlib import Path
from threading import Thread
from time import time

import pytest
from msgspec.structs import replace

from belljar.packages.archive import compress
from belljar.packages.catalog import DAY, archive_path
from belljar.packages.errors import PackageError
from belljar.packages.owner.registry_host import Registry, _sign
from belljar.packages.owner.serve_host import RegistryServer
from belljar.packages.owner.source_host import new_package, read_package
from tests.packages.kit import package, registry


def test_the_same_source_gives_the_same_digest(tmp_path: Path) -> None:
    digests = set()
    for place, order in ((tmp_path / "a" / "hello", 1), (tmp_path / "b" / "hello", -1)):
        new_package(place, "python")
        for name in ["x.txt", "y.txt", "z"][::order]:
            (place / name).write_text(name)
        os.utime(place / "z", (order + 5, order + 5))
        (place / ".hidden").write_text(str(order))
        (place / "bin" / "__pycache__").mkdir()
        (place / "bin" / "__pycache__" / "a.pyc").write_text(str(order))
        made = read_package(place)
        (place / "hello-1.0.0.tar.gz").write_bytes(compress(made.tar))
        digests |= {made.digest, read_package(place).digest, read_package(place / "hello-1.0.0.tar.gz").digest}
    assert len(digests) == 1


def test_a_version_never_changes_and_can_be_withdrawn(tmp_path: Path) -> None:
    made = registry(tmp_path, package("hello"))
    assert not made.add(package("hello"))
    with pytest.raises(PackageError, match=r"hello 1\.0\.0 is there already, with other contents"):
        made.add(package("hello", manifest='description = "other"\n'))
    made.yank("hello", "1.0.0", "a hole")
    assert made.catalog.packages["hello"]["1.0.0"].yanked == "a hole"
    assert made.catalog.serial == 3
    with pytest.raises(PackageError, match=r"has no hello 2\.0\.0: it has 1\.0\.0"):
        made.yank("hello", "2.0.0", "")
    assert list(made.problems()) == []


def test_only_the_owner_of_the_key_can_change_a_registry(tmp_path: Path) -> None:
    registry(tmp_path, package("hello"))
    registry(tmp_path, name="other")
    assert tmp_path.joinpath("main.pem").stat().st_mode & 0o777 == 0o600
    assert not any(path.suffix == ".pem" for path in (tmp_path / "main").rglob("*"))
    for key, why in (
        (tmp_path / "other.pem", "is not the key of"),
        (tmp_path / "no.pem", "only its owner can change it"),
    ):
        with pytest.raises(PackageError, match=why):
            Registry(tmp_path / "main", key).add(package("evil"))
    with pytest.raises(PackageError, match="is a registry already"):
        Registry.create(tmp_path / "main")
    with pytest.raises(PackageError, match="is no registry: `belljar registry init"):
        Registry(tmp_path)


def test_damage_is_found(tmp_path: Path) -> None:
    made = registry(tmp_path, package("hello"), package("words"))
    (made.directory / archive_path(package("hello").digest)).write_bytes(compress(package("words").tar))
    (made.directory / archive_path(package("words").digest)).unlink()
    (made.directory / "archives" / "left").write_text("")
    found = "\n".join(made.problems())
    assert "hello 1.0.0: archives/sha256-" in found
    assert "is another package" in found
    assert "is missing" in found
    assert "archives/left belongs to no package" in found
    catalog = made.directory / "catalog.json"
    catalog.write_text(catalog.read_text().replace("words", "wards"))
    with pytest.raises(PackageError, match="wrong signature"):
        Registry(made.directory)


def test_circles_are_refused_when_they_are_published(tmp_path: Path) -> None:
    made = registry(tmp_path, package("a", b="*"))
    with pytest.raises(PackageError, match="in a circle"):
        made.add(package("b", a="*"))
    made.add(package("b", a=">=2"))  # which there is none of


def test_links_are_refused_and_can_be_left_out(tmp_path: Path) -> None:
    new_package(tmp_path / "hello", "shell")
    (tmp_path / "hello" / "link").symlink_to("/etc/passwd")
    with pytest.raises(PackageError, match="link is a link or a device"):
        read_package(tmp_path / "hello")
    manifest = tmp_path / "hello" / "package.toml"
    manifest.write_text('exclude = ["link"]\n' + manifest.read_text())
    assert read_package(tmp_path / "hello").manifest.name == "hello"


def test_nothing_but_the_registry_is_served(tmp_path: Path) -> None:
    made = registry(tmp_path, package("hello"))
    with RegistryServer(made.directory, "127.0.0.1", 0) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            base = f"http://127.0.0.1:{server.server_port}/"
            with urllib.request.urlopen(base + "catalog.json", timeout=30) as response:  # noqa: S310 - our own
                assert response.read() == (made.directory / "catalog.json").read_bytes()
            for path in ("", "main.pem", "../main.pem", "archives/", "archives/..%2f..%2fmain.pem", "catalog.json/"):
                with pytest.raises(urllib.error.HTTPError, match="404"):
                    urllib.request.urlopen(base + path, timeout=30)  # noqa: S310
        finally:
            server.shutdown()
            thread.join()


def test_a_catalog_expires_and_is_signed_anew(tmp_path: Path) -> None:
    made = Registry.create(tmp_path / "r", "r", tmp_path / "key", valid_days=10)
    assert 0 <= time() + 10 * DAY - made.catalog.expires < 600
    made.add(package("hello"))
    before = made.catalog
    made.refresh_in_time()
    assert made.catalog == before, "there is time enough"
    made.refresh(30)
    assert (made.catalog.packages, made.catalog.serial) == (before.packages, before.serial + 1)
    assert 0 <= time() + 30 * DAY - made.catalog.expires < 600
    assert list(made.problems()) == []
    old = replace(made.catalog, expires=int(time()) - 5)
    (tmp_path / "r" / "catalog.json").write_bytes(_sign(old, made._signing_key()))
    assert ["the catalog expired on" in each for each in Registry(tmp_path / "r").problems()] == [True]
    made.refresh_in_time()
    assert made.catalog.expires > time()
    assert made.catalog.serial == old.serial + 1
    made.refresh(0)
    assert Registry(tmp_path / "r").catalog.expires == 0
    with pytest.raises(PackageError, match="1 to 3650 days"):
        made.refresh(10_000)


def test_a_registry_that_is_served_without_its_key_is_left_as_it_is(tmp_path: Path) -> None:
    made = Registry.create(tmp_path / "r", "r", tmp_path / "key", valid_days=1)
    old = _sign(replace(made.catalog, expires=5), made._signing_key())
    (tmp_path / "r" / "catalog.json").write_bytes(old)
    (tmp_path / "key").unlink()
    made.refresh_in_time()
    assert (tmp_path / "r" / "catalog.json").read_bytes() == old
