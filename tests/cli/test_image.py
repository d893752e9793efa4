"""`belljar image`: recipes in TOML and Python, and everything else that is done with images."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from belljar.abi.errors import ImageError
from belljar.api.image import Image
from belljar.cli.__main__ import main
from belljar.cli.image_recipe import parse_recipe
from belljar.store.store import Store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="steps run on Linux only")

RECIPE = """
name = "demo"

[[steps]]
copy = { from = "./app", to = "/srv/app" }

[[steps]]
files = { "/srv/f" = "text" }

[[steps]]
env = { GREETING = "hello" }

[[steps]]
run = ["sh", "-c", "echo working; echo $GREETING > /srv/app/made"]

[[steps]]
cwd = "/srv/app"

[[steps]]
command = "cat name made"
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BELLJAR_STORE", str(tmp_path / "store.db"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes" / "app").mkdir(parents=True)
    (tmp_path / "recipes" / "app" / "name").write_text("app\n")
    (tmp_path / "recipes" / "r.toml").write_text(RECIPE)
    return tmp_path


def said(capfd: pytest.CaptureFixture[str], *command: str, status: int = 0) -> str:
    assert main(["image", *command]) == status
    return capfd.readouterr().out


def test_the_life_of_an_image(place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["image", "build", "recipes/r.toml"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("sha256:")
    assert "[4/6] run sh -c" in err
    monkeypatch.chdir(place)
    digest = said(capfd, "build", "--quiet", "--name", "other", "recipes/r.toml").strip()
    monkeypatch.chdir(place)
    assert digest == out.split()[0]
    assert [each["name"] for each in json.loads(said(capfd, "ls", "--json"))] == ["demo", "other"]
    assert "demo" in said(capfd, "ls")
    assert "GREETING=hello" in said(capfd, "show", "demo")
    assert said(capfd, "run", "demo") == "app\nhello\n"
    assert said(capfd, "run", "demo", "ls", "-a", "/srv/app") == ".\n..\nmade\nname\n"
    assert said(capfd, "run", "base", "--", "exit 4", status=4) == ""
    assert main(["run", "--image", "demo", "--env", "X=1", "cat made; pwd; echo $X"]) == 0
    assert capfd.readouterr().out == "hello\n/srv/app\n1\n"
    with pytest.raises(SystemExit):
        main(["run", "--image", "demo", "--restore", "x", "true"])
    capfd.readouterr()
    said(capfd, "save", "demo", "demo.tar")
    said(capfd, "save", digest, "layout")
    assert said(capfd, "load", "demo.tar", "--name", "again").split()[:2] == [digest, "again"]
    assert json.loads(said(capfd, "load", "--json", "layout"))["digest"] == digest
    assert json.loads(said(capfd, "rm", "--json", "other", "again")) == ["other", "again"]
    assert said(capfd, "run", "layout", "cat made") == "hello\n"
    said(capfd, "rm", digest)
    assert "no images yet" in said(capfd, "ls")
    said(capfd, "show", "demo", status=125)
    said(capfd, "run", "demo", status=125)


def test_a_failed_step(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (place / "bad.py").write_text("from belljar import Image\nimage = Image().run('echo oops >&2; exit 2')\n")
    assert main(["image", "build", "bad.py"]) == 125
    err = capfd.readouterr().err
    assert "[1/1] run echo oops >&2; exit 2  failed" in err
    assert "step 1 of 1 failed: run echo oops >&2; exit 2: exit code 2\noops\n" in err


def test_a_saved_image_keeps_its_name(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = Store.sqlite(place / "store.db")
    digests = {name: Image().files({"/srv/f": name}).build(store, name).digest for name in ("one", "team/two:1.0")}
    said(capfd, "save", "one", "a.tar")
    said(capfd, "save", "team/two:1.0", "b.tgz")
    said(capfd, "save", digests["one"], "plain.tar.gz")
    said(capfd, "rm", *digests)
    for path, name in (("a.tar", "one"), ("b.tgz", "team/two:1.0"), ("a.tar", "one"), ("plain.tar.gz", "plain")):
        found = json.loads(said(capfd, "load", "--json", path))
        assert (found["name"], found["digest"]) == (name, digests.get(name, digests["one"]))
    Image().files({"/srv/f": "another"}).build(store, "one")
    assert main(["image", "load", "a.tar"]) == 125
    assert "another image 'one'" in capfd.readouterr().err
    assert Image.find("one", store).digest != digests["one"]
    said(capfd, "load", "a.tar", "--name", "one")
    assert Image.find("one", store).digest == digests["one"]


def test_all_or_none_are_removed(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = Store.sqlite(place / "store.db")
    Image().env(A="1").build(store, "app")
    Image().env(A="1").build(store)
    assert len(said(capfd, "ls").splitlines()) == 1  # not again for having been built without a name
    said(capfd, "rm", "app", "nope", status=125)
    assert said(capfd, "ls").split()[1] == "app"
    said(capfd, "rm", "app", "app")
    (left,) = json.loads(said(capfd, "ls", "--json"))
    assert left["name"] == ""
    said(capfd, "rm", left["digest"].removeprefix("sha256:")[:8])
    assert "no images yet" in said(capfd, "ls")


def test_the_base_image(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(said(capfd, "show", "base", "--json"))
    assert (shown["name"], shown["cwd"], shown["digest"]) == ("base", "/workspace", Image().build().digest)
    said(capfd, "save", "base", "base.tar")
    said(capfd, "load", "base.tar", "--name", "mine")
    assert json.loads(said(capfd, "show", "mine", "--json"))["size"] == shown["size"]
    assert main(["image", "rm", "base"]) == 125
    assert "is built in" in capfd.readouterr().err


def test_mistakes_with_paths(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Image().build(name="app")
    (place / "junk.tar").write_text("junk")
    (place / "full" / "x").mkdir(parents=True)
    for words, why in (
        (("load", "junk.tar"), "junk.tar: "),
        (("save", "app", "full"), "full is there already: name a new path"),
        (("save", "app", "junk.tar/x"), "junk.tar/x: "),
        (("save", "app", "app.tar.xz"), "an archive ends with .tar, .tar.gz or .tgz"),
        (("save", "app", "app.zip"), "an archive ends with"),
    ):
        assert main(["image", *words]) == 125
        assert why in capfd.readouterr().err
    assert not (place / "app.tar.xz").exists()


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("r.py", "\nimage = 1 / 0", "r.py:2: ZeroDivisionError: division by zero\n"),
        ("r.py", "import os\n\nimage = (", "r.py:3: SyntaxError: "),
        ("r.py", "raise SystemExit", "r.py:1: SystemExit\n"),
        ("r.py", "from belljar import Image\nImage.find('nothing')", "r.py:2: ImageError: there is no image 'nothing'"),
        ("r.py", "image = 3", "set `image` to an Image"),
        ("r.toml", "steps = 3", "each step begins with"),
        ("r.toml", "[[steps", "no TOML"),
        ("r.toml", "[[steps]]\nrun = 'a'\nenv = {A = 'b'}", "one key"),
        ("r.toml", "[[steps]]\nmake = 'a'", "no step 'make'"),
        ("r.toml", "[[steps]]\ncopy = 'a'", "copy takes"),
        ("r.toml", "[[steps]]\nrun = 7", "step 1: a command is"),
        ("r.toml", "[[steps]]\npip = 7", "list of packages"),
        ("r.toml", "unknown = 1", "'unknown' means nothing"),
        ("r.toml", "from = 'nothing'", "no image 'nothing'"),
        ("r.toml", "from = 7", "from is the name"),
        ("r.toml", "from = {oci = 'nothing.tar'}", "nothing.tar: No such file"),
        ("r.toml", "from = {directory = 'nothing'}", "nothing is no directory"),
        ("r.toml", "from = {debian = 'bookworm', packages = ['a b']}", "from: a Debian package is named like"),
        ("r.toml", "from = {debian = 'bookworm', package = 'a'}", "from is the name"),
    ],
)
def test_recipes_that_make_no_sense(
    place: Path, capfd: pytest.CaptureFixture[str], name: str, text: str, why: str
) -> None:
    (place / name).write_text(text)
    assert main(["image", "build", name]) == 125
    assert why in capfd.readouterr().err


def test_a_recipe_begins_with_another_image(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said(capfd, "build", "recipes/r.toml")
    said(capfd, "save", "demo", str(place / "demo.tar"))
    for start in ("'demo'", f"{{oci = '{place / 'demo.tar'}', tag = 'latest'}}"):
        image, name = parse_recipe(f"from = {start}\n[[steps]]\nrun = 'cat made'", Store.sqlite(place / "store.db"))
        assert name is None
        with pytest.raises(ImageError):
            _ = image.digest
        assert image.build(Store.memory()).size > 0


def test_a_recipe_begins_with_a_directory_or_with_packages(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (place / "rootfs/etc").mkdir(parents=True)
    (place / "rootfs/etc/name").write_text("mine")
    (place / "d.toml").write_text("name = 'tree'\nfrom = {directory = 'rootfs'}")
    digest = said(capfd, "build", "--quiet", "d.toml").strip()
    assert Image.find("tree").digest == digest
    assert Image.find("tree").size == 4
    image, _ = parse_recipe("from = {debian = 'bookworm', packages = ['gcc'], trusted = true}", Store.memory())
    assert image.steps == ["debian bookworm gcc"]
