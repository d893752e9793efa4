"""Programs of others as packages: `belljar package fetch` makes them, and they say what they say on a real machine."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import Image, Limits, Sandbox, Store
from belljar.cli.__main__ import main
from belljar.packages.errors import PackageError
from belljar.packages.owner.recipes_host import Recipe, fetch_files, names, own_files, read_recipe
from tests.spec.cases import Case, read_cases

WHOLE = bool(os.environ.get("BELLJAR_WHOLE"))
LIMITS = Limits(cpu_seconds=3000, wall_seconds=3000)
SAMPLE = ("a bundle", "tsx runs a program")
"""What is run of the one package that needs no compiler, unless everything is."""


def cases(name: str) -> list[Case]:
    found = read_cases(Path(__file__).with_name(f"{name}.spec"))[1]
    if WHOLE:
        return found
    return [case for case in found if case.title in SAMPLE] if name == "esbuild" else []


@pytest.fixture(scope="module")
def sandboxes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Sandbox]]:
    made: dict[str, Sandbox] = {}
    yield made
    for sandbox in made.values():
        sandbox.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "case"),
    [(name, case) for name in names() for case in cases(name)],
    ids=lambda value: value if isinstance(value, str) else value.title,
)
def test_says_what_a_real_machine_says(
    sandboxes: dict[str, Sandbox], name: str, case: Case, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if name not in sandboxes:
        directory = tmp_path_factory.mktemp("package") / name
        assert main(["package", "fetch", name, str(directory)]) == 0
        store = Store.memory()
        sandboxes[name] = Sandbox(image=Image().package(directory).build(store), store=store, limits=LIMITS)
    sandbox = sandboxes[name]
    sandbox.exec("rm -rf /tmp/w; mkdir /tmp/w")
    for path, value in case.files.items():
        assert isinstance(value, bytes)
        sandbox.files.write(f"/tmp/w/{path}", value)
    done = sandbox.exec(["bash", "-c", case.script], cwd="/tmp/w", stdin=case.stdin, timeout=600)
    assert (done.stdout, done.exit_code) == (case.stdout.decode(), case.status), done.stderr
    if case.stderr is not None:
        assert done.stderr == case.stderr.decode()


def archive(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def test_only_the_known_archive_is_taken() -> None:
    data = archive({"package/a.js": b"1", "package/sub/b.js": b"2", "package/c.mjs": b"3"})
    wanted = {"package/*.js": "lib", "package/c.mjs": "bin/d.mjs"}
    recipe = Recipe("x", "https://host/x.tgz", hashlib.sha256(data).hexdigest(), wanted)
    assert fetch_files(recipe, lambda _: data) == {"lib/a.js": b"1", "bin/d.mjs": b"3"}
    with pytest.raises(PackageError, match="not the archive that belljar knows"):
        fetch_files(recipe, lambda _: data + b"\0")
    other = Recipe("x", "https://host/x.tgz", recipe.sha256, wanted | {"package/none": "."})
    with pytest.raises(PackageError, match="it has no package/none"):
        fetch_files(other, lambda _: data)


def test_each_recipe_has_a_manifest_and_is_found_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert names() == ["esbuild", "lua", "php"]
    for name in names():
        assert "package.toml" in own_files(read_recipe(name))
    assert main(["package", "fetch", "cobol"]) == 1
    assert capsys.readouterr().err == "belljar: there is no recipe for cobol: there are esbuild, lua, php\n"
