"""npm over a real registry: what is installed, where it goes, what the lockfile says, what is asked of whom."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from belljar import Network, Sandbox
from tests.net.servers import Registry


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with Registry() as server:
        for version in ("1.0.0", "1.1.0", "2.0.0"):
            server.publish("base", version)
        server.publish("base", "3.0.0-beta.1", tag="next")
        server.publish("mid", "1.0.0", dependencies={"base": "^1.0.0"})
        server.publish("top", "1.0.0", dependencies={"mid": "*", "base": "^2.0.0"})
        server.publish("@scope/thing", "0.1.0", dependencies={"base": "2"})
        tool = {"cli.js": "#!/usr/bin/env node\nconsole.log('tool', process.argv.slice(2))\n"}
        server.publish("tool", "1.0.0", tool, manifest={"bin": {"tool": "cli.js"}})
        server.publish("plugin", "1.0.0", manifest={"peerDependencies": {"base": "^1.0.0"}})
        server.publish("plugin", "2.0.0", manifest={"peerDependencies": {"base": "^2.0.0"}})
        server.publish("maybe", "1.0.0", manifest={"optionalDependencies": {"gone": "1", "base": "1"}})
        server.publish("loop-a", "1.0.0", dependencies={"loop-b": "1"})
        server.publish("loop-b", "1.0.0", dependencies={"loop-a": "1"})
        server.publish("old", "1.0.0", manifest={"deprecated": "use base"})
        native = {"os": ["linux"], "cpu": ["x64"]}
        server.publish("fast-linux-x64", "1.0.0", manifest=native)
        server.publish("fast-darwin", "1.0.0", manifest={"os": ["darwin"]})
        server.publish(
            "fast", "1.0.0", manifest={"optionalDependencies": {"fast-linux-x64": "1.0.0", "fast-darwin": "1.0.0"}}
        )
        hooks = {"postinstall": "echo $npm_package_name $npm_lifecycle_event > made.txt"}
        server.publish("scripted", "1.0.0", manifest={"scripts": hooks, "hasInstallScript": True})
        server.publish(
            "failing", "1.0.0", manifest={"scripts": {"install": "echo why; exit 3"}, "hasInstallScript": True}
        )
        addon = {"binding.gyp": "{}", "package.json": '{"name": "addon", "version": "1.0.0"}'}
        server.publish("addon", "1.0.0", addon)
        server.publish("soft", "1.0.0", manifest={"optionalDependencies": {"addon": "1"}})
        inner = {
            "package.json": json.dumps(
                {"name": "packed", "version": "1.0.0", "dependencies": {"inner": "1"}, "bundleDependencies": ["inner"]}
            ),
            "node_modules/inner/package.json": '{"name": "inner", "version": "1.0.0"}',
            "node_modules/inner/index.js": "module.exports = 'bundled'",
            "index.js": "module.exports = require('inner')",
        }
        about = {"dependencies": {"inner": "1"}, "bundleDependencies": ["inner"]}
        server.publish("packed", "1.0.0", inner, manifest=about)
        yield server


@pytest.fixture
def sandbox(registry: Registry) -> Iterator[Sandbox]:
    network = Network.allow(f"127.0.0.1:{registry.port}")
    with Sandbox(network=network, env={"npm_config_registry": registry.url}) as made:
        yield made


def lock(sandbox: Sandbox) -> dict[str, Any]:
    return dict(json.loads(sandbox.files.read("/workspace/package-lock.json"))["packages"])


def versions(sandbox: Sandbox) -> dict[str, str]:
    return {where.replace("node_modules/", ""): about["version"] for where, about in lock(sandbox).items() if where}


def package(sandbox: Sandbox) -> dict[str, Any]:
    return dict(json.loads(sandbox.files.read("/workspace/package.json")))


def test_a_tree_with_a_conflict_is_hoisted_and_nested(sandbox: Sandbox) -> None:
    result = sandbox.exec("npm install top")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("\nadded 4 packages in ")
    assert versions(sandbox) == {"base": "2.0.0", "mid": "1.0.0", "mid/base": "1.1.0", "top": "1.0.0"}
    assert package(sandbox) == {"dependencies": {"top": "^1.0.0"}}
    assert sandbox.files.read("/workspace/node_modules/mid/node_modules/base/index.js") == 'module.exports = "1.1.0";\n'
    assert sandbox.exec("npm install").stdout.startswith("\nup to date in ")
    drawn = sandbox.exec("npm ls --all").stdout.splitlines()[1:]
    assert drawn == ["└─┬ top@1.0.0", "  ├── base@2.0.0", "  └─┬ mid@1.0.0", "    └── base@1.1.0", ""]
    assert sandbox.exec("npm uninstall top").stdout.startswith("\nremoved 4 packages in ")
    assert package(sandbox) == {}
    assert sandbox.exec("ls -A node_modules").stdout in ("", ".package-lock.json\n")


@pytest.mark.parametrize(
    ("words", "noted", "version"),
    [
        ("base", "^2.0.0", "2.0.0"),
        ("base@1", "^1.1.0", "1.1.0"),
        ("base@~1.0", "~1.0", "1.0.0"),
        ("base@1.0.0", "^1.0.0", "1.0.0"),
        ("-E base@1.0.0", "1.0.0", "1.0.0"),
        ("base@next", "^3.0.0-beta.1", "3.0.0-beta.1"),
        ("'base@>=1 <2'", "^1.1.0", "1.1.0"),
        ("other@npm:base@1", "npm:base@^1.1.0", "1.1.0"),
    ],
)
def test_what_is_noted_of_what_was_asked_for(words: str, noted: str, version: str, sandbox: Sandbox) -> None:
    sandbox.exec(f"npm install {words}").check()
    ((name, wanted),) = package(sandbox)["dependencies"].items()
    assert (wanted, versions(sandbox)) == (noted, {name: version})


def test_kinds_of_dependencies(sandbox: Sandbox) -> None:
    sandbox.files.write("/workspace/package.json", '{\n\t"name": "app",\n\t"version": "1.0.0"\n}\n')
    sandbox.exec("npm i -D tool && npm i base && npm i --no-save mid && npm i -O @scope/thing").check()
    assert sandbox.files.read("/workspace/package.json") == (
        '{\n\t"name": "app",\n\t"version": "1.0.0",\n\t"devDependencies": {\n\t\t"tool": "^1.0.0"\n\t},\n'
        '\t"dependencies": {\n\t\t"base": "^2.0.0"\n\t},\n'
        '\t"optionalDependencies": {\n\t\t"@scope/thing": "^0.1.0"\n\t}\n}\n'
    )
    found = lock(sandbox)
    assert found["node_modules/tool"]["dev"] is True
    assert found["node_modules/@scope/thing"]["optional"] is True
    assert "node_modules/mid" not in found
    assert sandbox.exec("ls node_modules; node_modules/.bin/tool a").stdout.endswith("tool [ 'a' ]\n")
    sandbox.exec("npm ci --omit=dev").check()
    assert sandbox.exec("ls -a node_modules").stdout.split() == [".", "..", ".package-lock.json", "@scope", "base"]
    sandbox.exec("npm ci").check()
    assert "tool" in sandbox.exec("ls node_modules").stdout
    sandbox.exec("npm install -P tool").check()
    assert package(sandbox)["dependencies"] == {"base": "^2.0.0", "tool": "^1.0.0"}
    assert "devDependencies" not in package(sandbox)


def test_a_lockfile_is_kept_to(sandbox: Sandbox) -> None:
    sandbox.exec("npm install base@1.0.0").check()
    before = sandbox.files.read("/workspace/package-lock.json")
    sandbox.exec("rm -r node_modules; npm install").check()
    assert versions(sandbox) == {"base": "1.0.0"}
    assert sandbox.files.read("/workspace/package-lock.json") == before
    sandbox.exec("npm update").check()
    assert versions(sandbox) == {"base": "1.1.0"}
    assert package(sandbox) == {"dependencies": {"base": "^1.0.0"}}
    sandbox.files.write("/workspace/package.json", '{"dependencies": {"base": "^2.0.0", "mid": "1"}}')
    refused = sandbox.exec("npm ci")
    assert refused.exit_code == 1
    assert "npm error Invalid: lock file's base@1.1.0 does not satisfy base@^2.0.0" in refused.stderr
    assert "npm error Missing: mid@1 from lock file" in refused.stderr
    assert sandbox.exec("rm package-lock.json; npm ci").stderr.startswith("npm error code EUSAGE\n")


def test_peers(sandbox: Sandbox) -> None:
    sandbox.exec("npm install plugin").check()
    assert versions(sandbox) == {"base": "2.0.0", "plugin": "2.0.0"}
    assert lock(sandbox)["node_modules/base"]["peer"] is True
    sandbox.exec("rm -rf *; npm install base@1").check()
    refused = sandbox.exec("npm install plugin@2")
    assert refused.exit_code == 1
    assert "npm error ERESOLVE unable to resolve dependency tree" in refused.stderr
    assert 'npm error peer base@"^2.0.0" from plugin@2.0.0' in refused.stderr
    assert sandbox.exec("npm install plugin@2 --legacy-peer-deps").check().exit_code == 0
    assert versions(sandbox) == {"base": "1.1.0", "plugin": "2.0.0"}
    sandbox.exec("rm -rf *; npm install base@1 && npm install plugin@1").check()
    assert versions(sandbox) == {"base": "1.1.0", "plugin": "1.0.0"}


def test_optional_and_foreign_packages(sandbox: Sandbox) -> None:
    assert sandbox.exec("npm install maybe").check().stderr == ""
    assert versions(sandbox) == {"base": "1.1.0", "maybe": "1.0.0"}
    result = sandbox.exec("rm -rf *; npm install fast").check()
    assert result.stderr == "npm warn native fast-linux-x64@1.0.0 is machine code, which can't run here: left out\n"
    assert set(versions(sandbox)) == {"fast", "fast-darwin", "fast-linux-x64"}
    assert sandbox.exec("ls node_modules").stdout == "fast\n"
    refused = sandbox.exec("npm install fast-linux-x64")
    assert refused.stderr.startswith("npm error code EBADPLATFORM\n")
    assert "native code" in refused.stderr


def test_a_front_for_machine_code(sandbox: Sandbox, registry: Registry) -> None:
    parts = {"fast-linux-x64": "1.0.0", "fast-darwin": "1.0.0"}
    for version in ("4.9.0", "5.0.0", "5.1.0"):
        registry.publish(
            "script", version, {"cli.js": "#!/usr/bin/env node\nconsole.log('ran')\n"}, manifest={"bin": "cli.js"}
        )
    registry.publish("script", "5.2.0", manifest={"hasInstallScript": True})
    registry.publish("script", "6.0.0-beta.1")
    registry.publish("script", "7.0.0", manifest={"optionalDependencies": parts})
    registry.publish("user", "1.0.0", dependencies={"script": "7"})
    refused = sandbox.exec("npm install script")
    assert refused.exit_code == 1
    assert refused.stderr.startswith(
        "npm warn native fast-linux-x64@1.0.0 is machine code, which can't run here: left out\n"
        "npm error code EBADPLATFORM\n"
        "npm error notsup script@7.0.0 is a front for machine code (fast-linux-x64), which can't run here.\n"
        "npm error notsup script@5.1.0 works here: npm install script@5.1.0\n"
    )
    assert sandbox.exec("ls").stdout == "", "nothing was installed"
    sandbox.exec("npm install script@5.1.0").check()
    assert sandbox.exec("npx script").stdout == "ran\n"
    needed = sandbox.exec("rm -rf * && npm install user").check()
    assert "script@5.1.0 works here" in needed.stderr
    assert sandbox.exec("rm -rf * && npm install --force script").exit_code == 0


def test_cycles_and_deprecation(sandbox: Sandbox) -> None:
    sandbox.exec("npm install loop-a").check()
    assert set(versions(sandbox)) == {"loop-a", "loop-b"}
    assert sandbox.exec("npm install old").stderr == "npm warn deprecated old@1.0.0: use base\n"


def test_what_a_package_bundles(sandbox: Sandbox) -> None:
    sandbox.exec("npm install packed").check()
    assert lock(sandbox)["node_modules/packed/node_modules/inner"]["inBundle"] is True
    assert sandbox.exec("npm install").stdout.startswith("\nup to date in ")
    sandbox.exec("npm ci").check()
    assert sandbox.exec("node -p 'require(`packed`)'").stdout == "bundled\n"


def test_directories_and_tarballs(sandbox: Sandbox) -> None:
    sandbox.files.write(
        "/workspace/lib/package.json", '{"name": "lib", "version": "1.2.3", "dependencies": {"base": "1"}}'
    )
    sandbox.files.write("/workspace/lib/index.js", "module.exports = 'lib with ' + require('base')")
    sandbox.exec("npm install ./lib").check()
    assert package(sandbox)["dependencies"] == {"lib": "file:lib"}
    assert sandbox.exec("readlink node_modules/lib; node -p 'require(`lib`)'").stdout == "../lib\nlib with 1.1.0\n"
    assert lock(sandbox)["node_modules/lib"] == {"resolved": "lib", "link": True}
    sandbox.exec(
        "cd lib && npm pack -s && mv lib-1.2.3.tgz .. && cd .. && npm rm lib && npm install ./lib-1.2.3.tgz"
    ).check()
    assert package(sandbox)["dependencies"] == {"lib": "file:lib-1.2.3.tgz"}
    assert lock(sandbox)["node_modules/lib"]["resolved"] == "file:lib-1.2.3.tgz"
    assert sandbox.exec("npm ci && test ! -L node_modules/lib && node -p 'require(`lib`)'").stdout.endswith(
        "lib with 1.1.0\n"
    )


def test_workspaces(sandbox: Sandbox) -> None:
    sandbox.files.write("/workspace/package.json", '{"name": "all", "workspaces": ["packages/*"]}')
    sandbox.files.write(
        "/workspace/packages/a/package.json", '{"name": "a", "version": "1.0.0", "dependencies": {"b": "1"}}'
    )
    sandbox.files.write("/workspace/packages/a/index.js", "console.log(require('b'))")
    scripts = {"hi": "echo hi from $npm_package_name"}
    about = {"name": "b", "version": "1.0.0", "dependencies": {"base": "1"}, "scripts": scripts}
    sandbox.files.write("/workspace/packages/b/package.json", json.dumps(about))
    sandbox.files.write("/workspace/packages/b/index.js", "module.exports = require('base')")
    sandbox.exec("npm install").check()
    assert sandbox.exec("ls node_modules; node packages/a").stdout == "a\nb\nbase\n1.1.0\n"
    assert sandbox.exec("npm run hi -w b -s").stdout == "hi from b\n"
    assert sandbox.exec("npm run hi -ws --if-present -s").stdout == "hi from b\n"


def test_overrides(sandbox: Sandbox) -> None:
    sandbox.files.write("/workspace/package.json", '{"dependencies": {"mid": "1"}, "overrides": {"base": "1.0.0"}}')
    sandbox.exec("npm install").check()
    assert versions(sandbox) == {"base": "1.0.0", "mid": "1.0.0"}


def test_global_packages(sandbox: Sandbox) -> None:
    sandbox.exec("npm install -g tool top").check()
    assert sandbox.exec("tool x; npm root -g; npm ls -g").stdout == (
        "tool [ 'x' ]\n/usr/local/lib/node_modules\n/usr/local/lib\n├── tool@1.0.0\n└── top@1.0.0\n\n"
    )
    assert sandbox.exec("ls /usr/local/lib/node_modules/top/node_modules").stdout == "base\nmid\n"
    sandbox.exec("npm rm -g tool").check()
    assert sandbox.exec("tool").exit_code == 127


def test_install_scripts(sandbox: Sandbox) -> None:
    sandbox.exec("npm install scripted").check()
    assert sandbox.files.read("/workspace/node_modules/scripted/made.txt") == "scripted postinstall\n"
    assert lock(sandbox)["node_modules/scripted"]["hasInstallScript"] is True
    sandbox.exec("rm -r node_modules; npm ci --ignore-scripts").check()
    assert not sandbox.files.exists("/workspace/node_modules/scripted/made.txt")
    failed = sandbox.exec("npm install failing")
    assert failed.exit_code == 3
    assert "npm error command sh -c echo why; exit 3\nnpm error why\n" in failed.stderr
    sandbox.exec("npm install failing --ignore-scripts").check()


def test_native_addons(sandbox: Sandbox) -> None:
    refused = sandbox.exec("npm install addon")
    assert refused.exit_code == 1
    assert "addon@1.0.0 has a native addon (binding.gyp)" in refused.stderr
    result = sandbox.exec("rm -rf *; npm install soft").check()
    assert result.stderr.startswith("npm warn skipping optional dependency addon@1.0.0: ")
    assert sandbox.exec("ls node_modules").stdout == "soft\n"


def test_machine_code_that_is_there_already(sandbox: Sandbox, registry: Registry) -> None:
    registry.publish("ready", "1.0.0", {"prebuilds/linux-x64/ready.node": "ELF", "index.js": "module.exports = 1"})
    about = {"optionalDependencies": {"fast-linux-x64": "1.0.0"}, "scripts": {"install": "exit 4"}}
    registry.publish("front", "1.0.0", manifest={**about, "hasInstallScript": True})
    result = sandbox.exec("npm install ready").check()
    assert result.stderr == (
        "npm warn native ready@1.0.0 has machine code for Node (prebuilds/linux-x64/ready.node), "
        "which can't be loaded here\n"
    )
    failed = sandbox.exec("npm install front")
    assert failed.exit_code == 4
    assert "npm error (fast-linux-x64, which it is a front for, is machine code" in failed.stderr


def test_initializers(sandbox: Sandbox, registry: Registry) -> None:
    maker = {"make.js": "#!/usr/bin/env node\nconsole.log('made', process.argv[2])\n"}
    registry.publish("create-app", "1.0.0", maker, manifest={"bin": "make.js"})
    registry.publish("@scope/create-app", "1.0.0", maker, manifest={"bin": "make.js"})
    assert sandbox.exec("npm init app one").stdout == "made one\n"
    assert sandbox.exec("npm create app@latest -- --two").stdout == "made --two\n"
    assert sandbox.exec("npm init @scope/app three").stdout == "made three\n"


def test_npx(sandbox: Sandbox) -> None:
    result = sandbox.exec("npx tool 'a b' --flag")
    assert result.stdout == "tool [ 'a b', '--flag' ]\n"
    assert result.stderr == "npm warn exec The following package was not found and will be installed: tool@1.0.0\n"
    assert sandbox.exec("npx -y tool@1 b").stdout == "tool [ 'b' ]\n"
    assert sandbox.exec("npx -p tool -c 'tool c | tr a-z A-Z'").stdout == "TOOL [ 'C' ]\n"
    assert sandbox.exec("npm exec --package=tool -- tool --x").stdout == "tool [ '--x' ]\n"
    assert sandbox.exec("ls").stdout == ""
    assert "npx canceled" in sandbox.exec("npx --no fast").stderr
    assert "could not determine executable" in sandbox.exec("npx base").stderr
    sandbox.exec("npm install tool").check()
    assert sandbox.exec("npx tool here").stderr == ""


def test_a_tag_may_mean_another_version_today(sandbox: Sandbox, registry: Registry) -> None:
    for version in ("1.0.0", "2.0.0"):
        registry.publish(
            "moving", version, {"m.js": f"#!/usr/bin/env node\nconsole.log('{version}')"}, manifest={"bin": "m.js"}
        )
        assert sandbox.exec("npx moving@latest").stdout == f"{version}\n"


def test_questions(sandbox: Sandbox, registry: Registry) -> None:
    assert sandbox.exec("npm view base version").stdout == "2.0.0\n"
    assert sandbox.exec("npm view base@1 version").stdout == "base@1.0.0 '1.0.0'\nbase@1.1.0 '1.1.0'\n"
    assert json.loads(sandbox.exec("npm view base versions --json").stdout) == [
        "1.0.0",
        "1.1.0",
        "2.0.0",
        "3.0.0-beta.1",
    ]
    assert sandbox.exec("npm view base dist-tags.next").stdout == "3.0.0-beta.1\n"
    assert "\nbase@2.0.0 | Proprietary | deps: none | versions: 4\n" in sandbox.exec("npm info base").stdout
    assert sandbox.exec("npm config get registry; npm prefix; npm root").stdout == (
        f"{registry.url}\n/workspace\n/workspace/node_modules\n"
    )
    sandbox.exec("npm install base@1.0.0 mid").check()
    outdated = sandbox.exec("npm outdated")
    assert outdated.exit_code == 1
    assert outdated.stdout.splitlines()[1].split() == [
        "base",
        "1.0.0",
        "1.1.0",
        "2.0.0",
        "node_modules/base",
        "workspace",
    ]
    assert sandbox.exec("npm explain base").stdout.startswith("base@1.0.0\nnode_modules/base\n")
    assert sandbox.exec("npm ls nothing").exit_code == 1
    sandbox.exec("rm -r node_modules/mid")
    missing = sandbox.exec("npm ls")
    assert (missing.exit_code, "├── base@1.0.0\n└── UNMET DEPENDENCY mid@^1.0.0" in missing.stdout) == (1, True)


def test_registries_by_scope_and_their_tokens(sandbox: Sandbox, registry: Registry) -> None:
    sandbox.files.write(
        "/workspace/.npmrc",
        f"registry=http://127.0.0.1:1/\n@scope:registry={registry.url}\n//127.0.0.1:{registry.port}/:_authToken=${{TOKEN}}\n",
    )
    registry.requests.clear()
    sandbox.exec("npm install @scope/thing --no-save", env={"TOKEN": "s3cret", "npm_config_registry": ""})
    asked = [request for request in registry.requests if "thing" in request.path]
    assert [request.header("authorization") for request in asked] == ["Bearer s3cret"]
    assert "s3cret" not in sandbox.exec("npm config list; npm config get registry", env={"TOKEN": "s3cret"}).stdout
