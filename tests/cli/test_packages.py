"""`belljar package`, `belljar registry` and `belljar pkg`, beside what tests/docs/test_packages.py types."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from belljar import Sandbox, Store
from tests.cli.conftest import Belljar

EXTENSION = """
def tools(image):
    return (
        image.files({"/usr/local/bin/greet": "#!/bin/sh\\necho hi from $0\\n", "/opt/data/x": "1"})
        .files({"/usr/local/lib/python3.15/site-packages/greeting.py": "TEXT = 'hi'\\n"})
        .service("tick", "sleep 100", env={"A": "b"}, restart="always")
    )


def wrong(image):
    return image.env(A="1")
"""


def test_mistakes_are_told_in_a_line(belljar: Belljar, tmp_path: Path) -> None:
    def said(*words: str) -> str:
        done = belljar(*words)
        assert done.returncode in (1, 2)
        assert done.stderr.count("\n") == 1
        return done.stderr

    assert "no: No such file or directory" in said("package", "check", "no")
    assert "is no registry: `belljar registry init" in said("registry", "add", ".", "x")
    assert "'Hello World' can't be a package's name" in said("package", "new", "Hello World")
    assert "--recipe" in said("pkg", "install", "x")
    belljar("package", "new", "hello")
    (tmp_path / "hello" / "package.toml").write_text('name = "hello"\nversion = "one"\n')
    assert "hello: package.toml: version: 'one' is no version" in said("package", "build", "hello")


def test_scripts_get_json(belljar: Belljar, tmp_path: Path) -> None:
    belljar("package", "new", "hello")
    built = json.loads(belljar("package", "build", "hello", "--json").stdout)
    assert (built["archive"], built["commands"]) == ("hello-1.0.0.tar.gz", {"hello": "bin/hello.py"})
    made = json.loads(belljar("registry", "init", "shelf", "--key", "k.pem", "--json").stdout)
    assert (made["registry"], made["signing_key"]) == ("shelf", "k.pem")
    added = belljar("registry", "add", "shelf", "hello", "--key", "k.pem", "--json").stdout
    assert json.loads(added) == {"name": "hello", "version": "1.0.0", "digest": built["digest"], "new": True}
    said = json.loads(belljar("registry", "verify", "shelf", "--json").stdout)
    assert said == {"registry": "shelf", "serial": 2, "packages": 1, "problems": []}


def test_the_packages_of_a_recipe(belljar: Belljar, tmp_path: Path) -> None:
    recipe = tmp_path / "image.toml"
    recipe.write_text('name = "app"\n\n[[steps]]\nrun = "true"\n')
    words = ("pkg", "--recipe", "image.toml")
    assert belljar(*words, "--registry", "https://p.example", "install", "hello@^1", "words").returncode == 0
    assert tomllib.loads(recipe.read_text())["steps"] == [
        {"run": "true"},
        {"package": {"install": "hello@^1", "registry": "https://p.example"}},
        {"package": {"install": "words", "registry": "https://p.example"}},
    ]
    assert belljar(*words, "install", "hello@^2").returncode == 0
    assert belljar(*words, "remove", "words").returncode == 0
    assert tomllib.loads(recipe.read_text())["steps"] == [{"run": "true"}, {"package": "hello@^2"}]
    assert belljar(*words, "list").stdout == 'hello  package = "hello@^2"\n'
    done = belljar(*words, "remove", "words")
    assert (done.returncode, "has no step for words" in done.stderr) == (1, True)


@pytest.mark.slow
def test_a_named_sandbox_is_gone_on_with(belljar: Belljar, tmp_path: Path) -> None:
    from belljar.packages.archive import compress
    from tests.packages.kit import package

    store = Store.sqlite(tmp_path / "store.db")
    with Sandbox(name="lane", store=store, files={"/workspace/h.tar.gz": compress(package("hello").tar)}) as sandbox:
        sandbox.pause()
    words = ("pkg", "--sandbox", "lane", "--store", str(tmp_path / "store.db"))
    done = belljar(*words, "install", "./h.tar.gz")
    assert (done.stdout, done.stderr) == ("installed hello 1.0.0\n", "")
    assert belljar(*words, "list").stdout == "hello 1.0.0\n"
    assert belljar(*words, "install", "nothing").returncode == 1
    with Sandbox.resume("lane", store) as sandbox:
        assert sandbox.exec("hello").stdout == "hello 1.0.0\n"


@pytest.mark.slow
def test_an_extension_is_a_package_and_a_package_is_an_extension(belljar: Belljar, tmp_path: Path) -> None:
    (tmp_path / "ext.py").write_text(EXTENSION)
    store = Store.sqlite(tmp_path / "store.db")
    store.write({})  # a store is made when it is first used
    done = belljar("package", "from-extension", "ext.py:tools", "tools")
    assert done.returncode == 0, done.stderr
    assert "a package has no settings" in belljar("package", "from-extension", "ext.py:wrong", "wrong").stderr
    assert "no function of that name" in belljar("package", "from-extension", "ext.py:no", "no").stderr
    (tmp_path / "recipe.py").write_text("from belljar import Image\nimage = Image().use('./tools').run('greet')\n")
    done = belljar("image", "build", "recipe.py", "--name", "app", "--store", str(tmp_path / "store.db"))
    assert done.returncode == 0, done.stderr
    with Sandbox(image="app", store=store) as sandbox:
        said = sandbox.exec(
            "greet; cat /opt/data/x; python3 -c 'import greeting; print(greeting.TEXT)'; pkg list; ls /tmp"
        )
        assert said.stdout == "hi from /usr/local/lib/pkg/tools/bin/greet\n1hi\ntools 1.0.0\n"
        assert sandbox.services.wait("tick").state == "running"
