"""Debian systems from packages: versions, dependencies, what is believed, and the files that come of it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path

import pytest

from belljar import Image, Store
from belljar.abi.errors import ImageError
from belljar.api.image import Built, root_source
from belljar.image.debian.control import Package, PackageIndex, parse_relations
from belljar.image.debian.resolve import resolve
from belljar.image.debian.version import compare_versions, satisfies
from belljar.native.root_cache_host import RootCache
from belljar.native.roots_host import prepare_root
from tests.native.debian_mirror import Mirror, make_key, small_system

VERSIONS = """
    0~~ 0~ 0 0.0~rc1 0.0.1 0.1 0.9a 0.9.1 0.10 1~rc1-1 1-0 1-1~bpo1 1-1 1-1+b1 1-1.1 1a-1 1+dfsg-1 1.0-1 2.36-9+deb12u1
    2.36-9+deb12u10 10-1 10.1-1 1:0~1 1:0.1-1 2:0
""".split()


def test_versions_are_in_dpkgs_order() -> None:
    assert [compare_versions(one, other) for one, other in pairwise(VERSIONS)] == [-1] * (len(VERSIONS) - 1)
    for one, other in product(VERSIONS, VERSIONS):
        assert compare_versions(one, other) == -compare_versions(other, one)
    assert compare_versions("1.0", "0:1.0-0") == 0
    assert satisfies("1.2-1", ">=", "1.2")
    assert not satisfies("1.2~rc1", ">=", "1.2")


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="no dpkg here")
def test_versions_are_in_the_order_of_the_real_dpkg() -> None:
    script = "".join(f"dpkg --compare-versions '{a}' lt '{b}' || echo '{a} {b}'\n" for a, b in pairwise(VERSIONS))
    assert subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout == b""


def index_of(text: str) -> PackageIndex:
    """Packages from lines: name version, then fields after semicolons."""
    index = PackageIndex()
    for line in text.strip().splitlines():
        (name, version), *fields = line.split(";")[0].split(), *line.split(";")[1:]
        lines = [f"Package: {name}", f"Version: {version}", "Architecture: amd64", f"Filename: pool/{name}"]
        lines += ["Size: 1", "SHA256: " + "0" * 64, *(each.strip() for each in fields)]
        index.add("\n".join(lines) + "\n", "http://mirror")
    return index


def names(packages: list[Package]) -> list[str]:
    return [f"{package.name}={package.version}" for package in packages]


RESOLVED = {
    "a chain": ("a 1; Depends: b\nb 1; Pre-Depends: c\nc 1\nd 1", ["a"], "a=1 b=1 c=1"),
    "a circle": ("a 1; Depends: b\nb 1; Depends: a", ["b"], "a=1 b=1"),
    "what every system has": ("a 1\nb 1; Essential: yes\nc 1; Priority: required\nd 1", ["a"], "a=1 b=1 c=1"),
    "the newest": ("a 1\na 2~rc1\na 1.10\na 1.9", ["a"], "a=2~rc1"),
    "a version that is asked for": ("a 1\na 2", ["a=1"], "a=1"),
    "an older one that fits": ("a 1; Depends: b (<< 2)\nb 2\nb 1.5", ["a"], "a=1 b=1.5"),
    "the first alternative": ("a 1; Depends: b | c\nb 1\nc 1", ["a"], "a=1 b=1"),
    "another, if the first is not there": ("a 1; Depends: x | c\nc 1", ["a"], "a=1 c=1"),
    "another, if the first is too old": ("a 1; Depends: b (>= 2) | c\nb 1\nc 1", ["a"], "a=1 c=1"),
    "one that is chosen already": ("a 1; Depends: b | c\nb 1\nc 1", ["a", "c"], "a=1 c=1"),
    "a provided name": ("a 1; Depends: mta\nz 1; Provides: mta\ny 1; Provides: mta", ["a"], "a=1 y=1"),
    "the most usual provider": (
        "a 1; Depends: m\ny 1; Provides: m\nz 1; Provides: m; Priority: important",
        ["a"],
        "a=1 z=1",
    ),
    "a provided version": ("a 1; Depends: m (>= 2)\ny 1; Provides: m\nz 1; Provides: m (= 3)", ["a"], "a=1 z=1"),
    "not what excludes another": ("a 1; Depends: b | c\nb 1; Conflicts: d\nc 1\nd 1", ["a", "d"], "a=1 c=1 d=1"),
    "not what is broken": ("a 1; Depends: b | c; Breaks: b (<< 2)\nb 1\nc 1", ["a"], "a=1 c=1"),
    "what is recommended by name": ("a 1; Recommends: b, x\nb 1; Recommends: c\nc 1", ["a"], "a=1 b=1"),
    "a qualified name": ("a 1; Depends: b:any (>= 1)\nb 1", ["a"], "a=1 b=1"),
}


@pytest.mark.parametrize(("index", "wanted", "expected"), RESOLVED.values(), ids=RESOLVED)
def test_resolve(index: str, wanted: list[str], expected: str) -> None:
    assert " ".join(names(resolve(index_of(index), wanted))) == expected


UNRESOLVED = {
    "no such package": ("liba 1", ["a"], "no package 'a' in the archive: did you mean liba"),
    "no such version": ("a 1\na 2", ["a=3"], "it has 2, 1"),
    "a missing dependency": ("a 1; Depends: b (>= 2) | c\nb 1", ["a"], r"a needs b \(>= 2\) \| c"),
    "packages that exclude each other": ("a 1; Conflicts: b\nb 1", ["a", "b"], "b and a exclude each other"),
}


@pytest.mark.parametrize(("index", "wanted", "message"), UNRESOLVED.values(), ids=UNRESOLVED)
def test_what_can_not_be_resolved_is_explained(index: str, wanted: list[str], message: str) -> None:
    with pytest.raises(ImageError, match=message):
        resolve(index_of(index), wanted)


@pytest.mark.parametrize("field", ["Version: ../../x", "Version: 1 $x", "Size: -1", "SHA256: ../x", "Filename: ../x"])
def test_fields_that_make_no_sense_are_refused(field: str) -> None:
    with pytest.raises(ImageError, match="the package"):
        resolve(index_of(f"a 1; {field}"), ["a"])


def test_relations() -> None:
    (first, second) = parse_relations("a (>= 1:2~x) | b:any, c ( << 3 )")
    assert [(each.name, each.operator, each.version) for each in first] == [("a", ">=", "1:2~x"), ("b", "", "")]
    assert (second[0].operator, second[0].version) == ("<<", "3")
    with pytest.raises(ImageError):
        parse_relations("a, (>= 1)")


# Whole systems, from a mirror of ours.


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    monkeypatch.setenv("BELLJAR_CACHE", str(tmp_path / "cache"))
    return small_system(tmp_path / "mirror")


@pytest.fixture
def address(mirror: Mirror) -> Iterator[str]:
    with mirror.serve() as url:
        yield url


def system(address: str, *packages: str, store: Store | None = None, **more: object) -> Image:
    image = Image.debian("bookworm", packages, mirror=address, configure=False, **{"trusted": True, **more})  # type: ignore[arg-type]
    return image.build(store or Store.memory())


def files_of(image: Image, tmp_path: Path) -> Path:
    return Path(prepare_root(root_source(image), None, RootCache(str(tmp_path / "roots"))).lowers[0])


def test_a_system_has_the_files_of_its_packages(tmp_path: Path, mirror: Mirror, address: str) -> None:
    mirror.add(
        "tool",
        files={"usr/bin/tool": (b"tool", 0o4755), "etc/tool.conf": b"x=1\n", "bin/other": b"", "usr/share/empty/": b""},
        scripts={
            "postinst": "#!/bin/sh\n",
            "conffiles": "/etc/tool.conf\n",
            "triggers": "interest-noawait /usr/lib\ninterest run\n",
        },
        depends="libc (>= 2.36)",
    )
    mirror.publish()
    image = system(address, "tool")
    root = files_of(image, tmp_path)
    assert {name: os.readlink(root / name) for name in ("bin", "lib", "lib64")} == {
        "bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64",
    }  # fmt: skip
    assert (root / "usr/lib/x/libc.so.6").read_bytes() == b"new"
    assert (root / "usr/bin/other").exists()
    assert (root / "usr/bin/tool").read_bytes() == b"tool"
    assert (root / "usr/share/empty").is_dir()
    assert os.readlink(root / "usr/bin/awk") == "mawk"
    assert (root / "etc/passwd").read_bytes() == b"root:*:0:0:root:/root:/bin/sh\n"
    dpkg = root / "var/lib/dpkg"
    status = (dpkg / "status").read_text()
    assert status.count("Status: install ok unpacked\n") == 5
    known = hashlib.md5(b"x=1\n", usedforsecurity=False).hexdigest()
    assert f"Conffiles:\n /etc/tool.conf {known}\n" in status
    assert (dpkg / "info/tool.list").read_text().splitlines()[:3] == ["/.", "/usr", "/usr/bin"]
    assert (dpkg / "info/libc:amd64.list").exists()
    assert os.access(dpkg / "info/tool.postinst", os.X_OK)
    assert (dpkg / "triggers/File").read_text() == "/usr/lib tool/noawait\n"
    assert (dpkg / "triggers/run").read_text() == "tool\n"
    assert address in (root / "etc/apt/sources.list.d/debian.sources").read_text()
    assert isinstance(image.built, Built)
    assert image.built.record.user == "root"


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="no dpkg here")
def test_dpkg_goes_on_with_it(tmp_path: Path, mirror: Mirror, address: str) -> None:
    """The real dpkg reads the state, finds every file's package, and can configure it."""
    mirror.add(
        "tool", files={"usr/bin/tool": b"tool", "etc/tool.conf": b"x=1\n"}, scripts={"conffiles": "/etc/tool.conf\n"}
    )
    mirror.publish()
    root = files_of(system(address, "tool"), tmp_path)

    def dpkg(*words: str) -> str:
        command = ["dpkg", f"--root={root}", "--force-not-root", "--log=/dev/null", *words]
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"  # dpkg wants root's programs, whoever runs it
        env = {**os.environ, "PATH": path}
        found = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr
        return found.stdout

    assert dpkg("-S", "/usr/bin/tool").split(":")[0] == "tool"
    assert "iU  tool" in dpkg("-l", "tool")
    dpkg("--configure", "-a")
    assert "ii  tool" in dpkg("-l", "tool")
    assert dpkg("--verify") == ""
    dpkg("--purge", "tool")
    assert not (root / "usr/bin/tool").exists()
    assert not (root / "etc/tool.conf").exists()


def test_the_same_packages_give_the_same_digest(mirror: Mirror, address: str) -> None:
    mirror.add("a", files={"usr/bin/a": b"a"})
    mirror.add("b", files={"usr/bin/b": b"b"}, depends="a")
    mirror.publish()
    assert system(address, "a", "b").digest == system(address, "b", "a").digest
    assert system(address, "a", "b").digest != system(address, "a").digest


def test_a_system_is_built_once_in_a_store(mirror: Mirror, address: str) -> None:
    store = Store.memory()
    mirror.publish()
    first = system(address, store=store)
    shutil.rmtree(mirror.root)
    assert system(address, store=store).digest == first.digest


def test_steps_go_on_from_it(tmp_path: Path, mirror: Mirror, address: str) -> None:
    mirror.publish()
    recipe = Image.debian("bookworm", mirror=address, trusted=True, configure=False)
    image = recipe.files({"/srv/app": "x"}).env(A="1").cwd("/srv").build(Store.memory())
    root = prepare_root(root_source(image), None, RootCache(str(tmp_path / "roots")))
    assert (Path(root.lowers[0]) / "srv/app").read_text() == "x"
    assert (root.env["A"], root.cwd) == ("1", "/srv")


# What is believed.


def test_signatures_are_checked(tmp_path: Path, mirror: Mirror, address: str) -> None:
    ring, other = make_key(tmp_path / "key"), make_key(tmp_path / "other")
    mirror.publish(sign=tmp_path / "key")
    assert system(address, trusted=False, keyring=ring).digest == system(address, trusted=False, keyring=ring).digest
    with pytest.raises(ImageError, match="signature is not good"):
        system(address, trusted=False, keyring=other)
    with pytest.raises(ImageError, match="signature is not good"):
        system(address, trusted=False)
    release = mirror.root / "dists/bookworm/InRelease"
    release.write_text(release.read_text().replace("Suite: stable", "Suite: better"))
    with pytest.raises(ImageError, match="signature is not good"):
        system(address, trusted=False, keyring=ring)
    with pytest.raises(ImageError, match="no keyring"):
        system(address, trusted=False, keyring=tmp_path / "nothing")
    assert not list(tmp_path.glob("*/S.gpg-agent"))  # nothing of gpg runs on


def test_without_gpgv_only_https_is_believed(mirror: Mirror, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror.publish()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ImageError, match="can't be checked: gpgv"):
        system(address, trusted=False)


def test_digests_are_checked(tmp_path: Path, mirror: Mirror, address: str) -> None:
    mirror.publish()
    package = next((mirror.root / "pool").glob("shell*"))
    good = package.read_bytes()
    for data in (good[:-1] + b"x", good + b"x", good[:-5]):
        package.write_bytes(data)
        with pytest.raises(ImageError, match=r"than the archive says|is not what the archive says"):
            system(address)
    package.write_bytes(good)
    digest = system(address).digest
    for kept in (tmp_path / "cache/debian").iterdir():
        kept.write_bytes(b"damaged")
    assert system(address).digest == digest
    packages = mirror.root / "dists/bookworm/main/binary-amd64/Packages.xz"
    packages.write_bytes(packages.read_bytes()[:-1])
    for kept in (tmp_path / "cache/debian").iterdir():
        kept.unlink()
    with pytest.raises(ImageError, match="is not what the archive says"):
        system(address)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"Valid-Until": "Sat, 14 Nov 2020 20:03:58 UTC"}, "out of date"),
        ({"Valid-Until": "soon"}, "has the date"),
        ({"Codename": "trixie"}, "not of 'bookworm'"),
    ],
)
def test_a_wrong_release_is_refused(mirror: Mirror, address: str, fields: dict[str, str], message: str) -> None:
    mirror.publish(fields=fields)
    with pytest.raises(ImageError, match=message):
        system(address)


HOSTILE = {
    "a path above the root": {"../../x": b""},
    "a file where a directory is": {"usr/share": b""},
}


@pytest.mark.parametrize("files", HOSTILE.values(), ids=HOSTILE)
def test_hostile_packages_are_refused(mirror: Mirror, address: str, files: dict[str, bytes]) -> None:
    mirror.add("zz", files=files)
    mirror.publish()
    with pytest.raises(ImageError, match="the package zz"):
        system(address, "zz")


def test_a_mirror_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belljar.image.debian.fetch_host.time.sleep", lambda _: None)
    for address in ("http://127.0.0.1:1", "ftp://127.0.0.1", "file:///etc"):
        with pytest.raises(ImageError, match=address[:8]):
            system(address)


@pytest.mark.parametrize(("suite", "packages"), [("../x", []), ("bookworm", ["a b"]), ("bookworm", ["-x"]), ("", [])])
def test_names_that_make_no_sense(suite: str, packages: list[str]) -> None:
    with pytest.raises(ValueError, match=r"like|name"):
        Image.debian(suite, packages)
