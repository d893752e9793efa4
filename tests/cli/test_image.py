"""`belljar image`: recipes in TOML and Python, and everything else that is done with images."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from belljar.abi.errors import ImageError
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
    assert said(capfd, "run", "latest", "cat made") == "hello\n"
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


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
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
