"""The same registry, the same commands: our npm and the real one (which comes with Node) write the same lockfile."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from belljar import Network, Sandbox
from belljar.engines.owner.js_build_host import node
from tests.net.servers import Registry

RANGES = ("*", "^1.0.0", "^2.0.0", "1.x || 2.x", ">=1.1.0", "~1.0.0", "2", "latest")


def fill(registry: Registry, seed: int) -> list[str]:
    """Packages that depend on each other at random; the names to install."""
    dice = random.Random(seed)
    names = [f"p{n}" for n in range(9)] + ["@s/q"]
    for index, name in enumerate(names):
        for version in ("1.0.0", "1.1.0", "2.0.0", "2.1.0-rc.1"):
            later = dice.sample(names, dice.randint(0, 3)) if dice.random() < 0.8 else []
            needs = {other: dice.choice(RANGES) for other in later if other != name}
            about: dict[str, Any] = {}
            if dice.random() < 0.2:
                about["optionalDependencies"] = {dice.choice(names[:5]): "^1.0.0", "not-there": "1"}
            if dice.random() < 0.15 and index < 6:
                about["peerDependencies"] = {names[index + 2]: "*"}
            registry.publish(
                name, version, dependencies=needs, manifest=about, tag="next" if "rc" in version else "latest"
            )
    return dice.sample(names, 3)


def real_npm(folder: Path, words: list[str]) -> tuple[int, str]:
    npm = node().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    environment = {
        "PATH": f"{node().parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "npm_config_audit": "false",
        "npm_config_fund": "false",
        "npm_config_update_notifier": "false",
        "npm_config_cache": str(folder / "cache"),
    }
    command = [str(node()), str(npm), *words]
    done = subprocess.run(command, cwd=folder / "proj", env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


def compare(registry: Registry, tmp_path: Path, package: dict[str, Any], commands: list[list[str]]) -> None:
    (tmp_path / "proj").mkdir()
    text = json.dumps({"name": "proj", "version": "1.0.0", **package}, indent=2) + "\n"
    (tmp_path / "proj" / "package.json").write_text(text)
    network = Network.allow(f"127.0.0.1:{registry.port}")
    with Sandbox(network=network, files={"/workspace/package.json": text}) as sandbox:
        for words in commands:
            given = [*words, f"--registry={registry.url}"]
            status, said = real_npm(tmp_path, given)
            ours = sandbox.exec(["npm", *given], timeout=120)
            assert (ours.exit_code, ours.limit) == (status, None), f"npm said:\n{said}\nwe said:\n{ours.stderr}"
            for name in ("package.json", "package-lock.json"):
                real = tmp_path / "proj" / name
                if real.exists():
                    assert sandbox.files.read(f"/workspace/{name}") == real.read_text(), words


@pytest.mark.battery(sample=1)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_packages_that_depend_on_each_other_at_random(seed: int, tmp_path: Path) -> None:
    with Registry() as registry:
        names = fill(registry, seed)
        commands = [["install", *names[:2]], ["install", "-D", names[2]], ["uninstall", names[0]]]
        compare(registry, tmp_path, {}, commands)


def test_a_project_that_grows(tmp_path: Path) -> None:
    with Registry() as registry:
        for version in ("1.0.0", "1.5.0", "2.0.0", "3.0.0"):
            registry.publish("react", version, manifest={"license": "MIT", "funding": "https://fund.example"})
        registry.publish("hooks", "1.0.0", manifest={"peerDependencies": {"react": "^1.0.0 || ^2.0.0"}})
        registry.publish(
            "ui", "1.0.0", dependencies={"hooks": "^1.0.0"}, manifest={"peerDependencies": {"react": ">=1.2"}}
        )
        registry.publish("lint", "4.0.0", {"c.js": ""}, manifest={"bin": "c.js", "engines": {"node": ">=10"}})
        meta = {"peerDependencies": {"lint": "*", "none": "*"}, "peerDependenciesMeta": {"none": {"optional": True}}}
        registry.publish("lint-rules", "1.0.0", manifest=meta)
        package = {"dependencies": {"ui": "*"}, "devDependencies": {"lint-rules": "^1.0.0"}, "scripts": {"a": "b"}}
        commands = [
            ["install"],
            ["install", "react@1"],
            ["install", "hooks", "react@2"],
            ["ci"],
            ["update"],
            ["rm", "ui"],
        ]
        compare(registry, tmp_path, package, commands)
