"""Registries that lie: each is refused with the reason, and nothing changes."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from belljar.libc.tar_header import Member, encode, pad
from belljar.packages.archive import compress, digest_of
from belljar.packages.catalog import Offer, archive_path
from belljar.packages.owner.registry_host import Registry, _sign
from tests.packages.kit import World, package, registry


@pytest.fixture
def world() -> World:
    return World()


def publish(made: Registry, **offers: Any) -> None:
    """Have a registry's catalog say something that no honest registry does, rightly signed."""
    packages = {**made.catalog.packages, **{name: {"1.0.0": offer} for name, offer in offers.items()}}
    made.catalog = replace(made.catalog, packages=packages, serial=made.catalog.serial + 1)
    (made.directory / "catalog.json").write_bytes(_sign(made.catalog, made._signing_key()))


def offer(made: Registry, data: bytes, **changes: Any) -> Offer:
    """An archive of any kind, offered rightly."""
    digest, archive = digest_of(data), compress(data)
    (made.directory / archive_path(digest)).write_bytes(archive)
    return replace(Offer(digest, len(data), len(archive)), **changes)


def tar(*files: tuple[str, bytes], kind: bytes = b"0", link: str = "") -> bytes:
    toml = b'name = "evil"\nversion = "1.0.0"\n[commands]\nevil = "evil.sh"\n'
    pieces = []
    for name, data in (("package.toml", toml), ("evil.sh", b"echo evil\n"), *files):
        plain = name in ("package.toml", "evil.sh")
        member = Member(name, kind=b"0" if plain else kind, size=len(data), link="" if plain else link)
        pieces += [encode(member, "posix"), pad(data)]
    return b"".join([*pieces, bytes(1024)])


def test_a_catalog_that_was_changed_on_the_way(world: World, tmp_path: Path) -> None:
    made = registry(tmp_path, package("hello"))
    url = world.put(made)
    envelope = json.loads((made.directory / "catalog.json").read_bytes())
    envelope["signed"] = envelope["signed"].replace('"hello"', '"hallo"')
    world.write("/srv/main/catalog.json", json.dumps(envelope).encode())
    world.ok(f"pkg registry add {url} --name main --key {made.key}")
    assert "has a wrong signature" in world.refused("pkg update")


def test_a_catalog_signed_by_somebody_else(world: World, tmp_path: Path) -> None:
    world.use(registry(tmp_path / "good", package("hello")))
    world.put(registry(tmp_path / "evil", package("hello"), package("evil")))
    assert "which was trusted so far" in world.refused("pkg update")
    stolen = json.loads(world.ok("cat /srv/main/catalog.json"))
    stolen["key"] = json.loads(world.ok("cat /srv/main/catalog.json"))["key"][:-4] + "AAA="
    world.write("/srv/main/catalog.json", json.dumps(stolen).encode())
    assert "which was trusted so far" in world.refused("pkg update")


def test_a_catalog_that_was_rolled_back_or_forked(world: World, tmp_path: Path) -> None:
    made = registry(tmp_path, package("hello"))
    world.use(made)
    old = (made.directory / "catalog.json").read_bytes()
    made.yank("hello", "1.0.0", "it has a hole")
    world.put(made)
    world.ok("pkg update")
    assert "of which there" not in world.refused("pkg install hello")
    world.write("/srv/main/catalog.json", old)
    assert "is older than the one from before (serial 2, not 3)" in world.refused("pkg update")
    forked = replace(made.catalog, packages={})
    world.write("/srv/main/catalog.json", _sign(forked, made._signing_key()))
    assert "another one under the same serial number, 3" in world.refused("pkg update")


def sign(world: World, made: Registry, seconds: int) -> None:
    """Serve a registry's catalog signed anew, so that it expires so many seconds later by the sandbox's clock."""
    expires = int(world.session.kernel.now() / 1e9) + seconds
    made.catalog = replace(made.catalog, serial=made.catalog.serial + 1, valid_days=7, expires=expires)
    world.write("/srv/main/catalog.json", _sign(made.catalog, made._signing_key()))


def test_a_catalog_that_hides_newer_ones_expires(world: World, tmp_path: Path) -> None:
    made = registry(tmp_path, package("hello"), package("other"))
    world.use(made)
    sign(world, made, 300)
    assert world.ok("pkg update; sleep 200; pkg update") == "main: 2 packages, nothing new\n" * 2
    world.ok("pkg install hello; pkg lock /tmp/lock; sleep 101")
    assert "the catalog of file:///srv/main expired on 20" in world.refused("pkg update")
    assert "the catalog of main expired on 20" in world.refused("pkg install other")
    assert world.ok("hello; pkg remove hello") == "hello 1.0.0\nremoved hello 1.0.0\n", "what is here stays of use"
    world.ok("pkg install --lock /tmp/lock")
    assert "is not in the cache" in world.refused("pkg install --offline other")
    sign(world, made, 300)
    world.ok("pkg update; pkg install other")


@pytest.mark.parametrize("changes", [{"expires": -1}, {"expires": 10**30}, {"valid_days": 10**6}, {"valid_days": -1}])
def test_a_catalog_with_a_date_that_is_none(changes: dict[str, int], world: World, tmp_path: Path) -> None:
    made = registry(tmp_path, package("hello"))
    world.put(made)
    world.write("/srv/main/catalog.json", _sign(replace(made.catalog, **changes), made._signing_key()))
    world.ok("pkg registry add file:///srv/main --name main")
    said = world.refused("pkg update")
    assert "it has no date that can be read" in said or "can't be read" in said


def test_an_archive_that_was_replaced(world: World, tmp_path: Path) -> None:
    made = registry(tmp_path, package("hello"))
    path = archive_path(package("hello").digest)
    world.use(made)
    world.write(
        f"/srv/main/{path}", compress(package("hello", files={"h.sh": ""}, manifest='[commands]\nh = "h.sh"').tar)
    )
    said = world.refused("pkg install hello")
    assert "is not what its registry promised" in said or "more than the" in said
    for data in (b"", b"no gzip", compress(package("hello").tar)[:-9], compress(package("hello").tar) + b"more"):
        world.write(f"/srv/main/{path}", data)
        assert "hello 1.0.0" in world.refused("pkg install hello") or data
    world.write(f"/srv/main/{path}", compress(package("hello").tar))
    world.ok("pkg install hello")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (tar(("../../etc/passwd", b"root::0:0")), "would be outside of it"),
        (tar(("/etc/cron", b"")), "would be outside of it"),
        (tar(("a/../../b", b"")), "would be outside of it"),
        (tar(("a\nb", b"")), "would be outside of it"),
        (tar(("evil.sh", b"again")), "two files 'evil.sh'"),
        (tar(("l", b""), kind=b"2", link="/etc"), "which is no plain file"),
        (tar(("l", b""), kind=b"1", link="/etc/passwd"), "which is no plain file"),
        (tar(("d", b""), kind=b"3"), "which is no plain file"),
        (tar()[1024:], "does not begin with package.toml"),
        (b"", "an empty archive"),
        (b"x" * 5000, "is no archive of a package"),
    ],
)
def test_an_archive_with_files_that_no_package_has(data: bytes, said: str, world: World, tmp_path: Path) -> None:
    made = registry(tmp_path)
    publish(made, evil=replace(offer(made, data), size=max(1, len(data))))
    world.use(made)
    assert said in world.refused("pkg install evil")


def test_an_archive_that_is_far_larger_than_it_says(world: World, tmp_path: Path) -> None:
    made = registry(tmp_path)
    bomb = tar(("zeros", bytes(30 << 20)))
    publish(made, evil=offer(made, bomb, size=4096))
    world.use(made)
    assert "unpacks to more than the 4,096 bytes that it should have" in world.refused("pkg install evil")
    publish(made, evil=offer(made, bomb, archive_size=100))
    world.put(made)
    world.ok("pkg update")
    assert "has more than the 100 bytes that it should have" in world.refused("pkg install evil")
    publish(made, evil=offer(made, bomb, size=10 << 30))
    world.put(made)
    assert "would have 10,737,418,240 bytes: a package has at most" in world.refused("pkg update")


def test_texts_that_are_meant_for_a_terminal(world: World, tmp_path: Path) -> None:
    made = registry(tmp_path)
    for text in ("\x1b[2Jgone", "a\nb", "\u202ebackwards"):
        publish(made, evil=offer(made, tar(), description=text))
        url = world.put(made)
        world.ok(f"pkg registry add {url} --name main")
        assert "it has a text that can't be shown" in world.refused("pkg update")


def test_packages_that_need_each_other(world: World, tmp_path: Path) -> None:
    made = registry(tmp_path)
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        each = package(name, manifest=f'[dependencies]\n{other} = "*"\n')
        publish(made, **{name: offer(made, each.tar, dependencies={other: "*"})})
    world.use(made)
    said = world.refused("pkg install b")
    assert said == "pkg: packages need each other in a circle: a 1.0.0 needs b, b 1.0.0 needs c, c 1.0.0 needs a\n"


def test_a_package_that_is_not_the_one_that_is_offered(world: World, tmp_path: Path) -> None:
    made = registry(tmp_path)
    publish(made, hello=offer(made, tar()), deep=offer(made, package("deep", other="*").tar))
    world.use(made)
    assert "the archive of hello 1.0.0 says that it is evil 1.0.0" in world.refused("pkg install hello")
    assert "deep 1.0.0 needs other packages than its registry says" in world.refused("pkg install deep")


def test_a_name_means_the_package_of_one_registry(world: World, tmp_path: Path) -> None:
    """A stranger offers a newer version of a private name: dependency confusion."""
    world.use(registry(tmp_path, package("secret"), name="private"), "--priority 90")
    evil = registry(tmp_path, package("secret", "99.0.0"), package("tool", secret="*"), name="public")
    world.use(evil)
    world.ok("pkg install tool")
    assert world.ok("secret") == "secret 1.0.0\n"
    assert world.ok("pkg upgrade") == "nothing to do\n"
    assert "secret 99.0.0, of which there is only 1.0.0" in world.refused("pkg install secret@99.0.0").replace(
        "asked for secret 99.0.0,", "asked for secret 99.0.0,"
    )
    # The private registry is gone: the name is not handed to the other one.
    world.ok("pkg registry remove private")
    assert "was installed from private, which is not used any more; public offers" in world.refused("pkg upgrade")
    world.ok("pkg install --from public secret@99 && secret | grep 99")


def test_two_registries_of_one_priority_are_a_question(world: World, tmp_path: Path) -> None:
    world.use(registry(tmp_path, package("hello"), name="one"))
    world.use(registry(tmp_path, package("hello", "2.0.0"), name="two"))
    assert "hello is offered by one and two, and none goes first: say which with --from" in world.refused(
        "pkg install hello"
    )
    world.ok("pkg install --from one hello; hello | grep 1.0.0; pkg upgrade; hello | grep 1.0.0")


def test_garbage_for_a_catalog(world: World, tmp_path: Path) -> None:
    made = registry(tmp_path, package("hello"))
    url = world.put(made)
    world.ok(f"pkg registry add {url} --name main")
    key = base64.b64encode(bytes(32)).decode()
    deep = "[" * 100_000
    for data in ("", "{}", "[]", deep, '{"signed": "", "key": "x", "signature": "!"}',
                 json.dumps({"signed": "{}", "key": f"ed25519:{key}", "signature": key + key})):  # fmt: skip
        world.write("/srv/main/catalog.json", data.encode())
        assert "pkg: " in world.refused("pkg update")
