"""Packages configured in a native sandbox by their own dpkg: from a mirror of ours, with this machine's programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from belljar import Image, Sandbox, Store
from belljar.abi.errors import ImageError
from belljar.image.changes import keep_changes
from belljar.image.tree import FileTree, Node
from belljar.kernel.machine import REPLAY_NS
from belljar.store.tree import Kind
from tests.native.debian_mirror import Files, Mirror, small_system
from tests.native.test_unprivileged import needs_root, place, run_as_nobody  # noqa: F401 - a fixture

PROGRAMS = """
    bash cat chmod chown dash diff dpkg dpkg-deb dpkg-query dpkg-split dpkg-trigger find head id ldconfig ln ls mkdir rm
    sed sh sleep sort start-stop-daemon stat tar touch
""".split()
needs_dpkg = pytest.mark.skipif(shutil.which("dpkg") is None, reason="this machine is no Debian: its programs are used")


def programs() -> Files:
    """Programs of this machine, and the libraries they need."""
    paths = [os.path.realpath(path) for name in PROGRAMS if (path := shutil.which(name, path="/usr/sbin:/usr/bin"))]
    listed = subprocess.run(["ldd", *paths], capture_output=True, text=True, check=False).stdout
    libraries = set(re.findall(r"(/\S+\.so\S*) \(0x", listed))
    files: dict[str, bytes | str | tuple[bytes, int]] = {
        path.lstrip("/").removeprefix("usr/"): (Path(path).read_bytes(), 0o755) for path in sorted({*paths, *libraries})
    }
    made: Files = {path if path.startswith("lib64/") else f"usr/{path}": data for path, data in files.items()}
    return {**made, "usr/bin/sh": "dash"}


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Mirror, str]]:
    made = small_system(tmp_path_factory.mktemp("mirror"), shell=programs() if shutil.which("dpkg") else None)
    made.add(
        "prepared",
        files={"usr/share/prepared": b"x", "etc/prepared.conf": b"a=1\n"},
        scripts={
            "preinst": "#!/bin/sh\nset -e\ntest ! -e /usr/share/prepared\necho $1 > /var/lib/before\n",
            "postinst": "#!/bin/sh\nset -e\ntest -e /var/lib/before\necho $1 > /var/lib/after\n",
            "conffiles": "/etc/prepared.conf\n",
        },
    )
    made.add(
        "plain",
        files={"usr/share/plain/old": b"old", "usr/share/plain/kept": b"kept"},
        scripts={
            "postinst": "#!/bin/sh\nset -e\nrm /usr/share/plain/old\necho new > /usr/share/plain/new\n"
            "chown 33:33 /usr/share/plain/new\nchmod 640 /usr/share/plain/kept\nln -s plain /usr/share/link\n"
        },
        depends="prepared",
    )
    made.add("failing", scripts={"postinst": "#!/bin/sh\necho no luck\nexit 3\n"})
    made.publish()
    with made.serve() as address:
        yield made, address


def build(address: str, *packages: str) -> Image:
    return Image.debian("bookworm", packages, mirror=address, trusted=True).build(Store.memory())


@needs_dpkg
def test_packages_are_configured(mirror: tuple[Mirror, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLJAR_CACHE", str(tmp_path / "cache"))
    image = build(mirror[1], "plain")
    with Sandbox(tier="native", image=image) as sandbox:
        listed = sandbox.exec("dpkg-query -W -f '${Package} ${Status}\n'").stdout.splitlines()
        assert {line.partition(" ")[2] for line in listed} == {"install ok installed"}
        assert len(listed) == 6
        assert (
            sandbox.exec("cat /var/lib/before /var/lib/after; dpkg --verify prepared").stdout == "install\nconfigure\n"
        )
        shown = sandbox.exec("cd /usr/share; stat -c '%n %a %u %Y' plain/* link").stdout.splitlines()
        owner = 33 if os.geteuid() == 0 else 0
        then = REPLAY_NS // 10**9
        assert shown == ["plain/kept 640 0 0", f"plain/new 644 {owner} {then}", f"link 777 0 {then}"]
        assert sandbox.exec("ls /usr/sbin/policy-rc.d /run/belljar /var/log/dpkg.log").exit_code == 2
        assert sandbox.exec("dpkg --purge plain prepared && ls /usr/share").ok
    assert build(mirror[1], "plain").digest == image.digest


@needs_dpkg
def test_a_script_that_fails_is_shown(
    mirror: tuple[Mirror, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BELLJAR_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ImageError, match="no luck"):
        build(mirror[1], "failing")


@needs_dpkg
def test_commands_of_a_recipe_run_natively(
    mirror: tuple[Mirror, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BELLJAR_CACHE", str(tmp_path / "cache"))
    store = Store.memory()
    recipe = (
        Image.debian("bookworm", ["prepared"], mirror=mirror[1], trusted=True)
        .env(A="1")
        .files({"/srv/text": "one\n"})
        .cwd("/workspace")
        .run("sed s/one/$A/ /srv/text > made; rm /srv/text; chmod 700 /root; test $(id -u) = 0")
        .run(["sh", "-c", "cat made > /srv/copy"])
        .user("agent")
    )
    image = recipe.build(store)
    with Sandbox(tier="native", image=image) as sandbox:
        assert sandbox.exec("cat made /srv/copy; ls /srv; id -un").stdout == "1\n1\ncopy\nagent\n"
    states: list[str] = []
    assert recipe.build(store, on_progress=lambda progress: states.append(progress.state)).digest == image.digest
    assert states.count("cached") == 3
    with pytest.raises(ImageError, match=r"put \.user"):
        image.run("true").build(store, tier="native")
    with pytest.raises(ImageError, match="exit code 3"):
        Image.debian("bookworm", mirror=mirror[1], trusted=True).run("exit 3").build(store)
    with pytest.raises(ValueError, match="choose"):
        recipe.build(store, tier="microvm")  # type: ignore[arg-type]


@needs_dpkg
@needs_root
def test_an_ordinary_user_configures_packages(mirror: tuple[Mirror, str], place: Path) -> None:  # noqa: F811
    """Everything is this user's: scripts that give files away succeed, and nothing is given away."""
    first = f"""
from belljar import Image, Store
def build():
    return Image.debian("bookworm", ["plain"], mirror={mirror[1]!r}, trusted=True).build(Store.memory())
build()  # load everything while it can be read
"""
    code = """
with Sandbox(tier="native", image=build()) as sandbox:
    sandbox.exec("chown 5:5 /usr/share/plain/kept").check()
    print(sandbox.exec("stat -c '%n %a %u' /usr/share/plain/*; dpkg --verify prepared; id -u").stdout)
"""
    shown = run_as_nobody(place, code, first=first).splitlines()
    assert shown[:3] == ["/usr/share/plain/kept 640 0", "/usr/share/plain/new 644 0", "0"]


# What a sandbox has of its own is no part of the image.


def tree_of(files: Mapping[str, tuple[bytes, int] | None]) -> FileTree:
    """By path: contents and time; None is an empty directory, of time 7."""
    tree = FileTree(Node(Kind.DIRECTORY, 0o755))
    for path, value in files.items():
        parts = [part.encode() for part in path.split("/")]
        if value is None:
            tree.way(parts, make=Node(Kind.DIRECTORY, 0o755, 0, 0, 7))
            continue
        node = Node(Kind.FILE, 0o644)
        list(node.fill([value[0]]))
        tree.put(parts, node, Node(Kind.DIRECTORY, 0o755, 0, 0, value[1]))
    return tree


def test_only_changes_are_kept() -> None:
    image = {"etc/a": (b"a", 1), "etc/b": (b"b", 1), "etc/c": (b"c", 1), "run/x": (b"x", 1), "home": None}
    own = {"etc/hosts": (b"own", 5), "etc/b": (b"own b", 5), "workspace": None, "root/own": None, "tmp": None}
    done = {"etc/a": (b"new", 9), "etc/d": (b"old time", 3), "run/y": (b"y", 9), "tmp/z": (b"z", 9)}
    more = {"workspace/made": (b"made", 9)}
    before = tree_of({**image, **own})
    after = tree_of({name: value for name, value in {**image, **own, **done, **more}.items() if name != "etc/c"})
    found = keep_changes(tree_of(image), before, after, 8)
    facts = {path.decode(): (node.mtime_ns, node.size) for path, node in found.walk() if node.kind is Kind.FILE}
    assert facts == {
        "etc/a": (REPLAY_NS, 3), "etc/b": (1, 1), "etc/d": (3, 8), "run/x": (1, 1), "workspace/made": (REPLAY_NS, 4),
    }  # fmt: skip
    directories = {path.decode(): node.mtime_ns for path, node in found.walk() if node.is_directory and path}
    assert set(directories) == {"etc", "run", "home", "workspace"}
    assert (directories["etc"], directories["run"], directories["home"]) == (REPLAY_NS, 1, 7)


def test_a_command_that_does_nothing_changes_nothing() -> None:
    image = {"etc/a": (b"a", 1), "usr/lib/x": (b"b", 2)}
    sandbox = {**image, "etc/a": (b"own", 5), "etc/hosts": (b"own", 5), "var/tmp": None}
    found = keep_changes(tree_of(image), tree_of(sandbox), tree_of(sandbox), 8)
    assert found.save()[0] == tree_of(image).save()[0]
