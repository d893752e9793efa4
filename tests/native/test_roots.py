"""Roots on the host's disk: what unpacking makes of an image, and the cache that keeps it."""

from __future__ import annotations

import os
import signal
import stat
import tarfile
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from belljar import Image, NotOnThisTier, Sandbox, Store
from belljar.abi.errors import ImageError
from belljar.api.image import root_source
from belljar.native.root_cache_host import RootCache
from belljar.native.roots import NOBODY, Root
from belljar.native.roots_host import prepare_root
from tests.image.archives import directory, entry, hard_link, layer, oci, saved, symlink, write_directory, write_tar

BASE = 0x3000_0000
PRIVILEGED = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def in_child(function: Callable[[], object], uid: int | None = None) -> int:
    """Call it in a forked process, as another user if one is given; the exit code, 1 if it raised."""
    child = os.fork()
    if not child:
        code = 1
        try:
            if uid is not None:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            function()
            code = 0
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def wait(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def cache(tmp_path: Path) -> RootCache:
    return RootCache(str(tmp_path / "roots"))


def odd_image(tmp_path: Path) -> Image:
    """An archive with everything that an unpacking program may get wrong."""
    made = layer(
        directory("bin"),
        entry("bin/su", b"#!", mode=0o4755, mtime=1_000_000),
        entry("bin/mail", b"#!", mode=0o2755, gid=8),
        hard_link("bin/login", "bin/su"),
        symlink("etc", "/etc"),
        symlink("out", "../../../../outside"),
        entry("locked/secret", b"x" * 5000, mode=0, uid=1000, gid=1000),
        directory("locked", mode=0o555),
        directory("tmp", mode=0o1777),
        entry("queue", kind=tarfile.FIFOTYPE, mode=0o620),
        entry("sparse", bytes(8 << 20) + b"end", uid=4_000_000),
        entry("dev/null", kind=tarfile.CHRTYPE, devmajor=1, devminor=3),
        entry("naïve\n*", b"odd"),
    )
    path = write_tar(tmp_path / "odd.tar", oci([made], Env=["A=1"], WorkingDir="/tmp", User="daemon"))
    return Image.oci(path).build(Store.memory())


def check_odd(root: Root) -> Path:
    place = Path(root.lowers[0])
    assert sorted(os.listdir(place)) == sorted(
        ["bin", "etc", "out", "locked", "tmp", "queue", "sparse", "dev", "naïve\n*"]
    )
    assert stat.filemode(os.lstat(place / "bin/su").st_mode) == "-rwxr-xr-x"
    assert stat.filemode(os.lstat(place / "bin/mail").st_mode) == "-rwxr-xr-x"
    assert os.lstat(place / "bin/su").st_mtime == 1_000_000
    assert os.path.samefile(place / "bin/su", place / "bin/login")
    assert os.readlink(place / "etc") == "/etc"
    assert os.readlink(place / "out") == "../../../../outside"
    assert stat.filemode(os.lstat(place / "locked").st_mode) == "dr-xr-xr-x"
    assert stat.filemode(os.lstat(place / "locked/secret").st_mode) == "----------"
    assert stat.filemode(os.lstat(place / "tmp").st_mode) == "drwxrwxrwt"
    assert stat.filemode(os.lstat(place / "queue").st_mode) == "prw--w----"
    assert os.listdir(place / "dev") == []
    sparse = os.lstat(place / "sparse")
    assert (sparse.st_size, sparse.st_blocks <= 16) == ((8 << 20) + 3, True)
    assert (place / "naïve\n*").read_bytes() == b"odd"
    return place


def test_devices_are_left_out_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    odd_image(tmp_path)
    assert "can't have device nodes: dev/null" in caplog.text


@PRIVILEGED
def test_owners_are_shifted_for_root(tmp_path: Path, cache: RootCache) -> None:
    root = prepare_root(root_source(odd_image(tmp_path)), BASE, cache)
    place = check_odd(root)
    owners = {name: (os.lstat(place / name).st_uid, os.lstat(place / name).st_gid) for name in os.listdir(place)}
    assert owners["etc"] == owners["queue"] == owners["bin"] == (BASE, BASE)
    assert os.lstat(place / "locked/secret").st_uid == BASE + 1000
    assert owners["sparse"][0] == BASE + NOBODY
    assert os.lstat(place / "bin/mail").st_gid == BASE + 8
    assert (root.env, root.cwd, root.user, root.binds) == ({"A": "1"}, "/tmp", "daemon", [])
    assert root.digest == Image.oci(tmp_path / "odd.tar").build(Store.memory()).digest
    root.release()


def test_an_ordinary_user_owns_everything_and_can_remove_it(tmp_path: Path) -> None:
    source = root_source(odd_image(tmp_path))

    def attempt(own: str) -> None:
        cache = RootCache(own, 1000)
        root = prepare_root(source, None, cache)
        place = check_odd(root)
        assert {os.lstat(place / name).st_uid for name in os.listdir(place)} == {os.geteuid()}
        again = prepare_root(source, None, RootCache(own))
        assert again.lowers == root.lowers
        for use in (root, again):
            cache.trim()
            assert os.path.isdir(place), "it is in use"
            use.release()
        cache.trim()
        assert os.listdir(own) == ["work"]
        assert os.listdir(f"{own}/work") == []

    with tempfile.TemporaryDirectory() as shared:  # pytest's own is closed to other users
        os.chmod(shared, 0o777)
        user = 12345 if os.geteuid() == 0 else None
        assert wait(in_child(lambda: attempt(f"{shared}/own"), user)) == 0


def test_names_are_never_followed(tmp_path: Path, cache: RootCache) -> None:
    """Nothing is written through a link of the image, whatever a store says."""
    outside = tmp_path / "outside"
    outside.mkdir()
    made = layer(symlink("a", str(outside)), entry("b", b"1"))
    later = layer(entry("a", b"file"), symlink("b", str(outside / "x")))
    source = root_source(Image.oci(write_tar(tmp_path / "i.tar", oci([made, later]))).build(Store.memory()))
    root = prepare_root(source, None, cache)
    assert (Path(root.lowers[0]) / "a").read_bytes() == b"file"
    assert list(outside.iterdir()) == []
    root.release()


def simple(tmp_path: Path, name: str = "simple", size: int = 1000) -> Image:
    path = write_tar(tmp_path / f"{name}.tar", saved([layer(directory("d"), entry("d/f", name.encode() * size))]))
    return Image.oci(path).build(Store.memory())


DAMAGE: dict[str, Callable[[Path], object]] = {
    "removed": lambda root: (root / "d/f").unlink(),
    "cut": lambda root: os.truncate(root / "d/f", 10),
    "overwritten": lambda root: (root / "d/f").write_bytes(b"x" * 6000),
    "mode": lambda root: (root / "d/f").chmod(0o777),
    "added": lambda root: (root / "new").symlink_to("/etc"),
    "replaced": lambda root: (root / "d").rename(root / "e"),
    "all": lambda root: os.rename(root, root.parent / "elsewhere.x"),
    "mark": lambda root: (root.parent / f"{root.name}.json").write_text("{"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damage_is_noticed(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    source = root_source(simple(tmp_path))
    first = prepare_root(source, None, RootCache(str(tmp_path / "roots")))
    first.release()
    damage(Path(first.lowers[0]))
    again = prepare_root(source, None, RootCache(str(tmp_path / "roots")))
    assert again.lowers == first.lowers
    assert (Path(again.lowers[0]) / "d/f").read_bytes() == b"simple" * 1000
    assert sorted(os.listdir(again.lowers[0])) == ["d"]
    again.release()


def test_a_damaged_root_in_use_stays_for_its_user(tmp_path: Path) -> None:
    source = root_source(simple(tmp_path))
    used = prepare_root(source, None, RootCache(str(tmp_path / "roots")))
    (Path(used.lowers[0]) / "d/f").write_bytes(b"damaged")
    for _ in range(2):
        again = prepare_root(source, None, RootCache(str(tmp_path / "roots")))
        assert again.lowers != used.lowers
        assert (Path(again.lowers[0]) / "d/f").read_bytes() == b"simple" * 1000
        again.release()
    assert (Path(used.lowers[0]) / "d/f").read_bytes() == b"damaged"
    used.release()


def test_a_killed_process_leaves_nothing_that_counts(tmp_path: Path) -> None:
    """At each moment of making a root: the next process makes it, and nothing remains."""
    source = root_source(simple(tmp_path, size=10))
    moments = ["mkdir", "symlink", "open", "utime", "rename", "fsync", "unlink"]
    for calls in range(1, 200):
        place = tmp_path / f"roots{calls}"

        def attempt(place: Path = place, left: int = calls) -> None:
            def counted(real: Callable[..., object]) -> Callable[..., object]:
                def call(*args: object, **more: object) -> object:
                    nonlocal left
                    left -= 1
                    if not left:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return real(*args, **more)

                return call

            for name in moments:
                setattr(os, name, counted(getattr(os, name)))
            prepare_root(source, None, RootCache(str(place)))

        code = wait(in_child(attempt))
        root = prepare_root(source, None, RootCache(str(place)))
        assert (Path(root.lowers[0]) / "d/f").read_bytes() == b"simple" * 10
        root.release()
        RootCache(str(place), 0).trim()
        assert os.listdir(place) == ["work"]
        assert os.listdir(place / "work") == []
        if not code:
            break
    else:
        pytest.fail("it was never finished")
    assert calls > 10


def test_processes_that_want_the_same_root_make_it_once(tmp_path: Path) -> None:
    source = root_source(simple(tmp_path))
    made = tmp_path / "made"

    def attempt() -> None:
        cache = RootCache(str(tmp_path / "roots"))
        real = cache._make

        def counted(key: str, make: Callable[[int], list[str]]) -> None:
            with open(made, "a") as file:
                file.write(key + "\n")
            real(key, make)

        cache._make = counted  # type: ignore[method-assign]
        for _ in range(20):
            root = prepare_root(source, None, cache)
            assert (Path(root.lowers[0]) / "d/f").stat().st_size == 6000
            root.release()

    children = [in_child(attempt) for _ in range(6)]
    assert [wait(child) for child in children] == [0] * 6
    assert len(made.read_text().splitlines()) == 1


def test_processes_that_make_and_evict_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Room for about two of five roots: each is whole while it is held."""
    sources = [root_source(simple(tmp_path, f"name{n}", 4000)) for n in range(5)]

    def attempt(number: int) -> None:
        cache = RootCache(str(tmp_path / "roots"), 60_000)
        for step in range(15):
            chosen = (step * (number + 1)) % 5
            root = prepare_root(sources[chosen], None, cache)
            assert (Path(root.lowers[0]) / "d/f").read_bytes() == f"name{chosen}".encode() * 4000
            root.release()

    children = [in_child(lambda n=n: attempt(n)) for n in range(4)]  # type: ignore[misc]
    assert [wait(child) for child in children] == [0] * 4
    cache = RootCache(str(tmp_path / "roots"), 60_000)
    cache.trim()
    assert len([name for name in os.listdir(tmp_path / "roots") if name.endswith(".json")]) <= 2
    assert os.listdir(tmp_path / "roots/work") == []


def test_the_least_recently_used_goes(tmp_path: Path) -> None:
    cache = RootCache(str(tmp_path / "roots"), 130_000)
    sources = [root_source(simple(tmp_path, f"root{n}", 8000)) for n in range(4)]
    places = []
    for number in (0, 1, 2):
        root = prepare_root(sources[number], None, cache)
        places.append(root.lowers[0])
        root.release()
    held = prepare_root(sources[0], None, cache)
    prepare_root(sources[3], None, cache).release()
    assert [os.path.isdir(place) for place in places] == [True, False, True]
    held.release()


def test_a_cache_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "roots").mkdir(mode=0o777)
    (tmp_path / "roots").chmod(0o777)
    with pytest.raises(ImageError, match="others can write to it"):
        RootCache(str(tmp_path / "roots"))


# Directories of the host.


def rootfs(tmp_path: Path) -> Path:
    place = write_directory(tmp_path / "rootfs", {"bin/sh": b"#!", "etc/passwd": b"root:x:0:0::/:/bin/sh\n"})
    os.chmod(place / "bin/sh", 0o4755)
    os.symlink("bin/sh", place / "sh")
    os.mkfifo(place / "fifo")
    return place


def test_a_directory_is_used_as_it_is(tmp_path: Path, cache: RootCache) -> None:
    place = rootfs(tmp_path)
    root = prepare_root(root_source(Image.directory(place)), None, cache)
    assert root.lowers == [str(place)]
    assert (root.cwd, root.user) == ("/", "root")
    more = Image.directory(place).files({"/etc/motd": "hello"}).env(A="1").cwd("/etc")
    over = prepare_root(root_source(more), None, cache)
    assert over.lowers[1:] == [str(place)]
    assert (Path(over.lowers[0]) / "etc/motd").read_text() == "hello"
    assert (over.env, over.cwd) == ({"A": "1"}, "/etc")
    assert over.digest != root.digest
    over.release()


@PRIVILEGED
def test_root_gets_a_shifted_copy_of_a_directory(tmp_path: Path, cache: RootCache) -> None:
    place = rootfs(tmp_path)
    os.mknod(place / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    source = root_source(Image.directory(place))
    root = prepare_root(source, BASE, cache)
    copy = Path(root.lowers[0])
    assert copy != place
    assert root.skipped == ["/null"]
    assert (os.lstat(copy / "bin/sh").st_uid, os.lstat(copy / "bin/sh").st_mode & 0o7777) == (BASE, 0o755)
    assert os.readlink(copy / "sh") == "bin/sh"
    assert stat.S_ISFIFO(os.lstat(copy / "fifo").st_mode)
    assert os.lstat(place / "bin/sh").st_uid == 0
    same = prepare_root(source, BASE, cache)
    assert same.lowers == root.lowers
    (place / "etc/passwd").write_bytes(b"changed")
    other = prepare_root(source, BASE, cache)
    assert (Path(other.lowers[0]) / "etc/passwd").read_bytes() == b"changed"
    assert (copy / "etc/passwd").read_bytes() != b"changed"
    for each in (root, same, other):
        each.release()


def test_a_directory_can_be_built_into_a_store(tmp_path: Path, cache: RootCache) -> None:
    place = rootfs(tmp_path)
    os.link(place / "bin/sh", place / "bin/dash")
    built = Image.directory(place).build(Store.memory())
    assert built.digest == Image.directory(place).build(Store.memory()).digest
    root = prepare_root(root_source(built), None, cache)
    copy = Path(root.lowers[0])
    assert os.path.samefile(copy / "bin/sh", copy / "bin/dash")
    assert (copy / "etc/passwd").read_bytes() == b"root:x:0:0::/:/bin/sh\n"
    root.release()


@pytest.mark.parametrize("path", ["/", "/nowhere", "/etc/passwd"])
def test_what_is_no_root_directory_is_refused(path: str) -> None:
    with pytest.raises(ImageError):
        root_source(Image.directory(path))


# This machine's own programs.


def test_the_host_shows_programs_and_no_secrets(cache: RootCache) -> None:
    root = prepare_root(root_source(None), None, cache)
    place = Path(root.lowers[0])
    assert [bind.target for bind in root.binds if bind.target == "/usr"] == ["/usr"]
    assert not {bind.target for bind in root.binds} & {"/", "/etc", "/home", "/root", "/var", "/run", "/opt", "/srv"}
    assert all((place / bind.target.lstrip("/")).is_dir() for bind in root.binds)
    assert (place / "etc/passwd").read_text().count("\n") == 3
    names = {path.name for path in place.rglob("*")}
    assert not names & {"shadow", "gshadow", "machine-id", "sudoers", "ssh", "hostname", "private", "gitconfig", "apt"}
    for empty in ("home/agent", "root", "var/lib", "run", "opt", "srv", "workspace", "dev", "proc"):
        assert list((place / empty).iterdir()) == []
    for path in (place / "etc").rglob("*"):
        origin = Path("/etc") / path.relative_to(place / "etc")
        if not path.is_symlink() and path.is_file() and path.name not in ("passwd", "group", "nsswitch.conf", "hosts"):
            assert os.lstat(origin).st_mode & 0o004, f"{origin}: not everybody may read it"
    assert (root.cwd, root.user) == ("/workspace", "agent")
    assert root.digest.startswith("host:")
    root.release()


def test_the_host_with_settings_of_a_recipe(tmp_path: Path, cache: RootCache) -> None:
    tool = tmp_path / "tool"
    tool.mkdir()
    image = Image.host(also=[tool]).env(A="1").cwd("/src").files({"/src/main.c": "int main;"}).user("root")
    root = prepare_root(root_source(image), None, cache)
    assert (root.env["A"], root.cwd, root.user) == ("1", "/src", "root")
    assert (Path(root.lowers[0]) / "src/main.c").read_text() == "int main;"
    assert root.binds[-1].target == str(tool)
    assert root.digest != root_source(Image.host()).digest
    root.release()


@pytest.mark.parametrize("also", ["/", "/etc", "/root/..", "/nowhere"])
def test_the_host_as_a_whole_is_refused(also: str) -> None:
    with pytest.raises(ImageError):
        root_source(Image.host(also=[also]))


def test_what_the_host_image_can_not_do_is_said(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="can't be built"):
        Image.host().build(Store.memory())
    with pytest.raises(NotOnThisTier, match="tier='native'"):
        Sandbox(image=Image.host())
    with pytest.raises(ImageError, match="only files and settings"):
        root_source(Image.host().run("true"))
    for base in (Image().files({"/a": "b"}), "base"):
        with pytest.raises(ImageError, match="begin with Image"):
            root_source(base)
