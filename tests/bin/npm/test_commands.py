"""npm's commands around a project: its scripts, its package.json, its settings. None of them needs a registry."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from belljar import Sandbox

PACKAGE = {
    "name": "app",
    "version": "1.2.3",
    "config": {"port": 8080, "tags": ["a", "b"]},
    "scripts": {
        "test": "exit 3",
        "pretest": "echo before",
        "posttest": "echo never",
        "args": "printf '[%s]'",
        "env": "echo $npm_lifecycle_event $npm_package_name@$npm_package_version $npm_package_config_port "
        "$npm_package_config_tags_1",
        "where": "pwd; echo $INIT_CWD",
        "bin": "hello",
        "prewrapped": "echo one",
        "wrapped": "echo two",
        "postwrapped": "echo three",
    },
}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    files: dict[str, str | bytes] = {"/workspace/package.json": json.dumps(PACKAGE, indent=2) + "\n"}
    with Sandbox(files=files) as made:
        made.files.write("/workspace/node_modules/.bin/hello", "#!/bin/sh\necho hello from .bin\n")
        made.exec("chmod +x node_modules/.bin/hello; mkdir sub")
        yield made


@pytest.mark.parametrize(
    ("command", "stdout", "status"),
    [
        ("npm test", "\n> app@1.2.3 pretest\n> echo before\n\nbefore\n\n> app@1.2.3 test\n> exit 3\n\n", 3),
        ("npm run wrapped -s", "one\ntwo\nthree\n", 0),
        ("npm run wrapped --ignore-scripts --silent", "two\n", 0),
        ("npm run args -s -- a 'b c' --d '$HOME' \"it's\"", "[a][b c][--d][$HOME][it's]", 0),
        ("npm run -s args -- ''", "[]", 0),
        ("npm run env -s", "env app@1.2.3 8080 b\n", 0),
        ("cd sub && npm run where -s", "/workspace\n/workspace/sub\n", 0),
        ("cd / && npm --prefix /workspace run where -s", "/workspace\n/\n", 0),
        ("npm run bin -s; npx hello; npm exec -c 'hello | wc -l'", "hello from .bin\nhello from .bin\n1\n", 0),
        ("npm run nothing --if-present", "", 0),
        ("npm pkg get version", '"1.2.3"\n', 0),
        ("npm pkg get name config.tags[1]", '{\n  "name": "app",\n  "config.tags[1]": "b"\n}\n', 0),
        ("npm version minor && npm pkg get version", 'v1.3.0\n"1.3.0"\n', 0),
        ("npm version prerelease --preid=rc && npm version prerelease", "v1.2.4-rc.0\nv1.2.4-rc.1\n", 0),
        ("npm version premajor && npm version major", "v2.0.0-0\nv2.0.0\n", 0),
        ("npm root; npm prefix -g", "/workspace/node_modules\n/usr/local\n", 0),
        ("npm prefix; npm bin", "/workspace\n/workspace/node_modules/.bin\n", 0),
        ("npm config get registry", "https://registry.npmjs.org/\n", 0),
        ("npm cache clean --force", "", 0),
        ("npm ls", "app@1.2.3 /workspace\n└── (empty)\n\n", 0),
    ],
)  # fmt: skip
def test_commands(command: str, stdout: str, status: int, sandbox: Sandbox) -> None:
    result = sandbox.exec(command)
    assert (result.stdout, result.exit_code) == (stdout, status), result.stderr


def test_a_script_that_is_not_there(sandbox: Sandbox) -> None:
    result = sandbox.exec("npm run wraped")
    assert result.exit_code == 1
    assert result.stderr.startswith('npm error Missing script: "wraped"\nnpm error\nnpm error Did you mean this?\n')
    assert result.stderr.endswith("npm error To see a list of scripts, run:\nnpm error   npm run\n")
    listed = sandbox.exec("npm run").stdout
    assert listed.startswith("Lifecycle scripts included in app@1.2.3:\n  test\n    exit 3\n")
    assert "available via `npm run`:\n  args\n" in listed


def test_signals_and_input_reach_scripts(sandbox: Sandbox) -> None:
    sandbox.exec("npm pkg set scripts.up='tr a-z A-Z' scripts.die='kill -9 $$'").check()
    assert sandbox.exec("npm run -s up", stdin="shout").stdout == "SHOUT"
    assert sandbox.exec("npm run -s die").exit_code == 137


def test_init(sandbox: Sandbox) -> None:
    made = sandbox.exec("mkdir 'New Project' && cd New* && npm init -y")
    assert made.stdout.startswith("Wrote to /workspace/New Project/package.json:\n\n{\n")
    package = json.loads(sandbox.files.read("/workspace/New Project/package.json"))
    assert list(package) == "name version description main scripts keywords author license type".split()
    assert (package["name"], package["license"]) == ("new-project", "ISC")


def test_package_json_is_edited_in_place(sandbox: Sandbox) -> None:
    sandbox.files.write("/workspace/package.json", '{\n    "name": "x",\n    "é": "\\ud83d\\ude00"\n}')
    sandbox.exec(
        "npm pkg set a.b=c 'list[]=1' 'n=5' --json=false && npm pkg set n=6 --json && npm pkg delete name"
    ).check()
    assert sandbox.files.read("/workspace/package.json") == (
        '{\n    "é": "😀",\n    "a": {\n        "b": "c"\n    },\n    "list": [\n        "1"\n    ],\n    "n": 6\n}'
    )


def test_settings(sandbox: Sandbox) -> None:
    sandbox.exec("npm config set registry http://npm.test:8000 && npm config set save-exact=true").check()
    assert sandbox.files.read("/home/agent/.npmrc") == "registry=http://npm.test:8000\nsave-exact=true\n"
    assert (
        sandbox.exec("npm config get registry save-exact").stdout == "registry=http://npm.test:8000\nsave-exact=true\n"
    )
    sandbox.files.write("/workspace/.npmrc", "; ours\nregistry = https://${HOST}/npm/\n")
    assert sandbox.exec("npm config get registry", env={"HOST": "own.test"}).stdout == "https://own.test/npm/\n"
    assert sandbox.exec("npm config get registry --registry=http://x/").stdout == "http://x/\n"
    sandbox.exec("npm config delete registry").check()
    assert sandbox.files.read("/home/agent/.npmrc") == "save-exact=true\n"


def test_pack(sandbox: Sandbox) -> None:
    for name in (
        "index.js",
        "lib/a.js",
        "lib/b.test.js",
        "README.md",
        "notes.txt",
        ".npmrc",
        "node_modules/x/index.js",
    ):
        sandbox.files.write(f"/workspace/{name}", "x")
    assert sandbox.exec("npm pack").stdout == "app-1.2.3.tgz\n"
    listed = sandbox.exec("tar tzf app-1.2.3.tgz | sort; rm app-1.2.3.tgz").stdout.split()
    names = ["README.md", "index.js", "lib/a.js", "lib/b.test.js", "notes.txt", "package.json"]
    assert listed == [f"package/{name}" for name in names]
    sandbox.exec("npm pkg set 'files[0]=lib' 'files[1]=!lib/*.test.js'").check()
    listed = sandbox.exec("npm pack -s --pack-destination sub; tar tzf sub/app-1.2.3.tgz | sort").stdout.split()[1:]
    assert listed == ["package/README.md", "package/index.js", "package/lib/a.js", "package/package.json"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("npm", "Usage: npm COMMAND"),
        ("npm frob", 'Unknown command: "frob"'),
        ("npm publish", "npm error npm publish is not part of npm in this sandbox."),
        ("npm audit", "npm error code ENOAUDIT"),
        ("npm install user/repo", "is a git repository"),
        ("npm install git+https://h.test/r.git", "is a git repository"),
        ("npm install ./nothing", "npm error code ENOENT"),
        ("npm install ./nothing.tgz", "npm error code ENOENT"),
        ("npm install workspace:x@y", "npm error code E"),
        ("cd / && npm test", "npm error enoent Could not read package.json"),
        ("echo '{' > package.json; npm install", "npm error code EJSONPARSE"),
        ("echo '[]' > package.json; npm run x", "npm error code EJSONPARSE"),
        ("npm config get //h/:_authToken", "is protected"),
        ("npm version 1.2.3", "Version not changed"),
        ("npm version frob", "npm error code EUSAGE"),
        ("npm rebuild", "native addons"),
    ],
)
def test_what_is_wrong_is_said(command: str, said: str, sandbox: Sandbox) -> None:
    result = sandbox.exec(command)
    assert result.exit_code == 1
    assert said in result.stdout + result.stderr
