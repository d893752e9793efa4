"""Recipes: the same one gives the same image, whenever, wherever and by which Python it is built."""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import belljar
from belljar import AsyncSandbox, Network, Sandbox
from belljar.abi.errors import ImageError
from belljar.api.image import Image, Progress, list_images, load_image, remove_images
from belljar.image.tree import FileTree
from belljar.store.collect import check, collect
from belljar.store.store import Objects, Store
from tests.image.archives import directory, entry, layer, oci, symlink, write_directory, write_tar
from tests.net.servers import PackageIndex, Registry

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="steps run on Linux only")

EVERYTHING = textwrap.dedent(
    """
    date +%s.%N > /tmp/date; echo $RANDOM $SRANDOM $$ > /tmp/random; head -c 1000 /dev/urandom > /tmp/urandom
    mktemp -d; ls -la --time-style=full-iso / /etc /usr/bin > /tmp/listing; nproc > /tmp/nproc; free -b >> /tmp/nproc
    ln /tmp/date /tmp/again; mkfifo /tmp/fifo; ln -s nowhere /tmp/link; chmod 4711 /tmp/random
    touch -d 2001-02-03 /tmp/old
    seq 100 | shuf > /tmp/shuffled & sleep 0.01; wait; git init -q /tmp/repo && cd /tmp/repo && git add . &&
    git commit -q --allow-empty -m x && git rev-parse HEAD; tar czf /tmp/all.tgz /tmp/date; rm -r /tmp/repo
    """
)
PYTHON = (
    "import os, random, sys, tempfile, time, uuid; print(random.random(), os.urandom(5), time.time(), uuid.uuid4(), "
    "{'a', 'bb', 'ccc', 'dddd'}, hash('x'), tempfile.mkdtemp(), os.getpid())"
)


@pytest.fixture
def store() -> Iterator[Store]:
    made = Store.memory()
    yield made
    assert list(check(made)) == []


def listing(image: Image) -> dict[str, object]:
    """Every path with its attributes and the digests of its contents."""
    built = image.built
    tree = FileTree.load(Objects(built.store), built.record.trees[0])
    return {
        path.decode("utf-8", "backslashreplace"): (
            node.kind, node.mode, node.uid, node.gid, node.mtime_ns, node.target, tuple(node.parts)
        )
        for path, node in tree.walk()
    }  # fmt: skip


def test_two_builds_are_the_same(store: Store) -> None:
    recipe = (
        Image().run(EVERYTHING).run(["python3", "-c", f"open('/tmp/py', 'w'); {PYTHON}"]).run("ls -laR /tmp > /tmp/l")
    )
    first, second = recipe.build(store), recipe.build(Store.memory())
    assert listing(first) == listing(second)
    assert first.digest == second.digest


def test_two_steps_are_not_the_same(store: Store) -> None:
    image = Image().run("echo $RANDOM > /tmp/a").run("echo $RANDOM > /tmp/b").build(store)
    with Sandbox(image=image) as sandbox:
        assert sandbox.exec("cmp /tmp/a /tmp/b").exit_code == 1


PROGRAM = """
import os, sys
from belljar.api.image import Image
from belljar.store.store import Store
everything, python, directory = sys.argv[1:]
image = (Image().copy(directory, "/srv/copied").files({"/srv/b": "1", "/srv/a": "2"}).env(B="2", A="1").run(everything)
         .run(["python3", "-c", python]).run("python3 -m compileall -q /srv").user("root").run("id > /root/id"))
print(image.build(Store.memory()).digest)
"""


@pytest.mark.battery
def test_other_pythons_hash_seeds_times_and_directories(tmp_path: Path) -> None:
    """Every Python that the project is tested with, each with a seed of its own, on a copy of the files elsewhere."""
    root = Path(belljar.__file__).parents[2]
    others = [path for path in root.glob(".venvs/*/bin/python") if _imports_this(path)]
    digests = set()
    for number, python in enumerate([Path(sys.executable), Path(sys.executable), *others]):
        directory = tmp_path / str(number) / "deep" / "er"
        (directory / "sub").mkdir(parents=True)
        names = ["zz", "aa", "sub/x.py", "sub/run"]
        for name in names if number % 2 else reversed(names):
            (directory / name).write_text(f"# {name}\n")
        (directory / "sub" / "run").chmod(0o700 if number % 2 else 0o775)
        (directory / "link").symlink_to("zz")
        os.utime(directory / "zz", (number * 1000, number * 1000))
        environment = {**os.environ, "PYTHONHASHSEED": str(number), "TZ": "Asia/Tokyo" if number % 2 else "UTC"}
        command = [str(python), "-c", PROGRAM, EVERYTHING, PYTHON, str(directory)]
        digests.add(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
    assert len(digests) == 1


def _imports_this(python: Path) -> bool:
    found = subprocess.run(
        [str(python), "-c", "import belljar; print(belljar.__file__)"], capture_output=True, text=True
    )
    return found.stdout.strip() == belljar.__file__


def test_steps_are_cached_by_what_they_depend_on(store: Store, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one")

    def build(recipe: Image) -> list[str]:
        states: list[Progress] = []
        recipe.build(store, on_progress=states.append)
        return [progress.state for progress in states if progress.state != "output"]

    recipe = Image().copy(tmp_path, "/srv").run("cat /srv/f > /tmp/f").run("echo 2 > /tmp/g")
    assert build(recipe) == ["started", "done"] * 3
    assert build(recipe) == ["started", "done", "started", "cached", "started", "cached"]
    assert build(recipe.run("echo 3")) == ["started", "done", *["started", "cached"] * 2, "started", "done"]
    (tmp_path / "f").write_text("two")
    assert build(recipe) == ["started", "done"] * 3
    assert build(Image().env(A="1").run("echo $A")) == ["started", "done"] * 2
    assert build(Image().env(A="2").run("echo $A")) == ["started", "done"] * 2
    assert build(Image().env(A="1").run("echo $A")) == ["started", "done", "started", "cached"]


def test_a_recipe_is_not_changed_by_its_methods(store: Store) -> None:
    base = Image().env(A="1")
    one, two = base.run("echo one > /tmp/x"), base.run("echo two > /tmp/x")
    assert (base.steps, one.steps, two.steps) == (
        ["env A=1"], ["env A=1", "run echo one > /tmp/x"], ["env A=1", "run echo two > /tmp/x"]
    )  # fmt: skip
    with pytest.raises(ImageError, match="only a recipe"):
        _ = one.digest
    with pytest.raises(ImageError, match="only a recipe"):
        Sandbox(image=one)
    built = one.build(store)
    more = built.run("cat /tmp/x > /tmp/y").build(store)
    with Sandbox(image=more) as sandbox:
        assert sandbox.files.read("/tmp/y") == "one\n"


def test_a_sandbox_begins_with_the_image(store: Store) -> None:
    def extension(image: Image) -> Image:
        return image.files({"/opt/tool": ("#!/bin/sh\necho tool $X\n", 0o755)}).env(PATH="/opt:/usr/bin")

    image = Image().use(extension).env(X="image").cwd("/srv/w").command("tool").build(store, name="app")
    for chosen in (image, "app", image.digest, image.digest.removeprefix("sha256:")[:12]):
        with Sandbox(image=chosen, store=store) as sandbox:
            assert sandbox.exec("tool; pwd; id -un").stdout == "tool image\n/srv/w\nagent\n"
            sandbox.exec("echo changed > /opt/tool; touch here")
    with Sandbox(image="app", store=store, env={"X": "mine"}, cwd="/", files={"/tmp/f": "f"}) as sandbox:
        assert sandbox.exec("tool; pwd; cat /tmp/f; ls /srv/w").stdout == "tool mine\n/\nf"
        assert sandbox.info.image == "app"
        snapshot = sandbox.snapshot("later")
    with Sandbox.restore(snapshot) as sandbox:
        assert sandbox.exec("tool; cat /tmp/f").stdout == "tool mine\nf"


def test_an_async_sandbox_too(store: Store) -> None:
    image = Image().files({"/srv/x": "hello"}).env(X="1").build(store, name="app")

    async def use(chosen: Image | str) -> str:
        async with AsyncSandbox(image=chosen, store=store) as sandbox:
            return (await sandbox.exec("cat /srv/x; echo $X")).stdout

    assert [asyncio.run(use(chosen)) for chosen in (image, "app")] == ["hello1\n"] * 2


@pytest.mark.parametrize("unknown", ["nothing", "sha256:" + "0" * 64, "0" * 64, "deadbeef"])
def test_unknown_images(store: Store, unknown: str) -> None:
    with pytest.raises(ImageError, match="belljar image ls"):
        Sandbox(image=unknown, store=store)
    with pytest.raises(TypeError, match="image="):
        Sandbox(image=7, store=store)  # type: ignore[arg-type]


def test_the_base_image_is_what_every_sandbox_has(store: Store) -> None:
    command = "find / -xdev -printf '%p %m %u %g %s %l\\n' | sort"
    with Sandbox() as plain, Sandbox(image="base") as base, Sandbox(image=Image().build(store)) as built:
        assert plain.exec(command).stdout == base.exec(command).stdout == built.exec(command).stdout
        assert base.info.image == "base"
    with pytest.raises(ImageError, match="base"):
        Image().build(store, name="base")


def test_a_failed_step_is_named_with_its_output(store: Store) -> None:
    seen: list[Progress] = []
    recipe = Image().run("echo fine").run("echo out; echo err >&2; exit 3").run("echo never")
    with pytest.raises(ImageError, match=r"(?s)step 2 of 3 failed: run echo out.*exit code 3\nout\nerr"):
        recipe.build(store, name="app", on_progress=seen.append)
    assert [(each.number, each.state) for each in seen if each.state != "output"] == [
        (1, "started"), (1, "done"), (2, "started"), (2, "failed")
    ]  # fmt: skip
    assert store.list("image/") == {}
    with pytest.raises(ImageError, match=r"failed: copy /no/such/file /x: No such file or directory$"):
        Image().copy("/no/such/file", "/x").build(store)
    with pytest.raises(ImageError, match="is a directory"):
        Image().files({"/etc": "x"}).build(store)
    with pytest.raises(ImageError, match="on the way is no directory"):
        Image().files({"/etc/passwd/x": "x"}).build(store)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Image().files({"relative": "x"}),
        lambda: Image().files({"/a/../b": "x"}),
        lambda: Image().copy(".", "relative"),
        lambda: Image().cwd("here"),
        lambda: Image().env({"": "x"}),
        lambda: Image().run([]),
        lambda: Image().run("a\0b"),
        lambda: Image().pip(),
        lambda: Image().pip("--index-url=x"),
        lambda: Image().files({"/a": "x", "/a//b/c": "y"}),
        lambda: Image().use(7),  # type: ignore[arg-type]
        lambda: Image.find(7, Store.memory()),  # type: ignore[arg-type]
        lambda: Image().build("img.db"),  # type: ignore[arg-type]
        lambda: Image().use(lambda image: None),  # type: ignore[arg-type, return-value]
    ],
)
def test_what_no_recipe_can_say(make: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("name", ["", "base", "sha256:0", "a\nb"])
def test_what_names_no_image(store: Store, name: str) -> None:
    with pytest.raises(ImageError, match="name"):
        Image().build(store, name=name)


@pytest.mark.parametrize("recipe", [Image().pip("demo-tool"), Image().npm("demo-lib")])
def test_packages_without_a_network(store: Store, recipe: Image) -> None:
    with pytest.raises(ImageError, match=r"build\(network=Network.allow\('HOST'\)\), or .* --allow-host HOST"):
        recipe.build(store)


def test_packages_come_from_the_network_of_the_build(store: Store) -> None:
    with PackageIndex() as index, Registry() as registry:
        index.release("demo-tool", "1.0", {"demo_tool.py": "print('pip')\n"})
        registry.publish("demo-lib", "2.0.0", {"index.js": "console.log('npm')\n"})
        base = Image().env(PIP_INDEX_URL=index.index, npm_config_registry=registry.url)
        recipe = base.pip("demo-tool").npm("demo-lib")
        network = Network.allow(f"127.0.0.1:{index.port}", f"127.0.0.1:{registry.port}")
        image, again = recipe.build(store, network=network), recipe.build(Store.memory(), network=network)
    assert image.digest == again.digest
    with Sandbox(image=image) as sandbox:
        assert sandbox.exec("python3 -m demo_tool; node -e 'require(\"demo-lib\")'").stdout == "pip\nnpm\n"


def test_copied_files(store: Store, tmp_path: Path) -> None:
    (tmp_path / "sub" / "empty").mkdir(parents=True)
    (tmp_path / "sub" / "run").write_bytes(b"#!/bin/sh\necho ran\n")
    (tmp_path / "sub" / "run").chmod(0o700)
    (tmp_path / "file").write_bytes(b"f" * 5_000_000)
    (tmp_path / "link").symlink_to("sub/run")
    image = (
        Image().copy(tmp_path, "/bin/../srv".replace("bin/../", "")).copy(tmp_path / "file", "/lib/in/").build(store)
    )
    with Sandbox(image=image) as sandbox:
        found = sandbox.exec("cd /srv; find . -printf '%P %y %m %u\\n' | sort; ./link; wc -c < /usr/lib/in/file").stdout
    assert found == (
        " d 755 root\nfile f 644 agent\nlink l 777 agent\nsub d 755 agent\nsub/empty d 755 agent\nsub/run f 755 agent\n"
        "ran\n5000000\n"
    )
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ImageError, match="fifo"):
        Image().copy(tmp_path, "/srv").build(store)


def test_users(store: Store) -> None:
    recipe = (
        Image().user("root").run("id -un > /root/who").files({"/srv/f": "x"}).user("bob").run("id -un; touch ~/mine")
    )
    with Sandbox(image=recipe.build(store)) as sandbox:
        assert sandbox.exec("id -un; ls -l ~ | tail -1 | cut -d' ' -f3; stat -c %U /srv/f").stdout == "bob\nbob\nroot\n"
    with Sandbox(image=recipe.user("root").build(store)) as sandbox:
        assert sandbox.exec("cat ~/who; id -un").stdout == "root\nroot\n"


def test_an_image_of_another_tool_and_back(store: Store, tmp_path: Path) -> None:
    image = Image().run(EVERYTHING).env(A="1").command(["echo", "hi"]).build(store, name="app")
    image.to_oci(tmp_path / "app.tar")
    image.to_oci(tmp_path / "layout")
    image.to_oci(tmp_path / "a.tar.gz")
    image.to_oci(tmp_path / "b.tgz")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tgz").read_bytes()
    assert gzip.decompress((tmp_path / "b.tgz").read_bytes()) == (tmp_path / "app.tar").read_bytes()
    other = Store.memory()
    assert Image.oci(tmp_path / "app.tar").build(other).digest == image.digest
    assert load_image(tmp_path / "layout", other, name="again").digest == image.digest
    again = Image.find("again", other)
    again.to_oci(tmp_path / "again.tar", name="app")
    assert (tmp_path / "again.tar").read_bytes() == (tmp_path / "app.tar").read_bytes()
    with Sandbox(image=again) as sandbox:
        assert sandbox.exec("cat /tmp/date; echo $A").stdout == "1767225600.000000000\n1\n"
    more = again.run("cp /tmp/date /tmp/date2").build(store)
    assert list(check(store)) == []
    with Sandbox(image=more) as sandbox:
        assert sandbox.exec("cat /tmp/date2").stdout == "1767225600.000000000\n"


@pytest.mark.parametrize(
    ("tag", "more", "name"),
    [
        ("latest", {}, "thing-1.2"),
        ("v1", {}, "v1"),
        ("team/app:v1", {}, "team/app:v1"),
        ("team/app:latest", {}, "team/app"),
        ("v1", {"manifest.json": b'[{"Config": "x", "Layers": [], "RepoTags": ["app:v2", "app:v1"]}]'}, "app:v1"),
        ("latest", {"manifest.json": b'[{"Config": "x", "Layers": [], "RepoTags": null}]'}, "thing-1.2"),
        ("v1", {"manifest.json": b"of another kind"}, "v1"),
    ],
)
def test_the_name_of_a_loaded_image(store: Store, tmp_path: Path, tag: str, more: dict[str, bytes], name: str) -> None:
    files = oci([layer(entry("f", b"f"))], tag=tag) | more
    for path in (
        write_tar(tmp_path / "thing-1.2.tar.gz", files, "gzip"), write_directory(tmp_path / "thing-1.2", files)
    ):  # fmt: skip
        assert load_image(path, store).built.name == name


def test_removed_images_take_their_steps_with_them(store: Store) -> None:
    shared = Image().run("echo shared > /tmp/s")
    shared.run("echo a > /tmp/a").build(store, name="a")
    shared.run("echo b > /tmp/b").build(store, name="b")
    assert [image.built.name for image in list_images(store)] == ["a", "b"]
    before = len(store.list("step/"))
    assert remove_images(["a"], store) == ["a"]
    assert len(store.list("step/")) == before - 1
    collect(store, 0, 0)
    collect(store, 1, 0)
    with Sandbox(image="b", store=store) as sandbox:
        assert sandbox.exec("cat /tmp/s /tmp/b").stdout == "shared\nb\n"
    assert remove_images([Image.find("b", store).digest], store) == ["b"]
    with pytest.raises(ImageError, match="no image"):
        remove_images(["b"], store)
    assert store.list() == {}


ELF = b"\x7fELF\2\1\1" + bytes(100)


def test_an_image_of_a_real_system(store: Store, tmp_path: Path) -> None:
    """Its own programs are for a real processor: ours of the same names run in their place."""
    made = layer(
        entry("bin/busybox", ELF, mode=0o755), symlink("bin/ls", "/bin/busybox"), symlink("bin/sh", "busybox"),
        entry("usr/bin/python3.12", ELF, mode=0o755), entry("usr/bin/as", ELF, mode=0o755),
        directory("tmp", mode=0o1777),
        entry("etc/passwd", b"root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n"),
        directory("home/node", uid=1000, gid=1000),
    )  # fmt: skip
    for user, name in (("", "root"), ("0:0", "root"), ("node", "node"), ("1000:1000", "node"), ("Odd Name", "node")):
        files = oci([made], Env=["PATH=/usr/bin:/bin", "X=1"], User=user, WorkingDir="/srv")
        path = write_tar(tmp_path / "i.tar", files)
        image = Image.oci(path).run("ls / > /tmp/ls; echo $X").files({"/home/node/f": "x"}).build(store)
        with Sandbox(image=image) as sandbox:
            assert sandbox.exec("ls /bin; sh -c pwd").stdout == "busybox\nls\nsh\n/srv\n"
            assert sandbox.files.stat("/home/node/f").uid == (0 if name == "root" else 1000)
            assert "tmp" in sandbox.files.read("/tmp/ls")
            assert "/usr/bin/as: cannot execute binary file" in sandbox.exec("as").stderr
            assert sandbox.exec("grep x y").exit_code == 127
        assert image.built.record.user == (user or "root")
