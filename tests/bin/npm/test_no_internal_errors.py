"""Whatever is in a package.json, a lockfile, an .npmrc or a registry's page: npm says what is wrong and goes on."""

from __future__ import annotations

import json
import random
import traceback
from typing import Any

import pytest

from belljar import Network, Sandbox
from belljar.abi.limits import Limits
from belljar.kernel.process import Process
from tests.adapter import new_session, put, run_command
from tests.net.servers import Registry
from tests.net.servers.http1 import Response

LIMITS = Limits(file_bytes=64 << 20)
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1e300, "", "x", "../x", "/", "\0", "\ud800", "é" * 300, "^1.0.0", "npm:x@1", "file:.",
    "file:../..", "git+ssh://x", "http://[::1", "workspace:*", "$x", "²", "1.٣.0", [], ["x"], [[]], {}, {"x": None},
    {"x": "1"}, {".": 5}, {"x": {"y": []}}, {"x": "file:./node_modules/a"}, {"../../y": "1"}, {"": ""},
)  # fmt: skip
KEYS = (
    "name version main bin scripts dependencies devDependencies optionalDependencies peerDependencies "
    "peerDependenciesMeta bundleDependencies workspaces overrides engines os cpu files license funding config private "
    "type exports directories deprecated dist resolved integrity link inBundle packages lockfileVersion requires"
).split()
COMMANDS = (
    "npm ls --all; npm ls --json; npm run; npm run x; npm test",
    "npm pack --dry-run; npm version patch; npm pkg get; npm pkg set a.b=1; npm fund; npm explain a",
    "npm install --offline --ignore-scripts; npm prune; npm uninstall x",
    "npm ci --offline; npm outdated --offline; npm init -y",
    "npm install ./d --offline; npm install -g . --offline; npx --offline x; npm config list",
)


def document(dice: random.Random, depth: int = 0) -> Any:
    """Something like a package.json."""
    found: dict[str, Any] = {"name": "a", "version": "1.0.0"} if dice.random() < 0.7 else {}
    for key in dice.sample(KEYS, dice.randint(0, 8)):
        found[key] = dice.choice(ODD) if depth > 1 or dice.random() < 0.8 else document(dice, depth + 1)
    return found


def lockfile(dice: random.Random) -> Any:
    places = (
        "",
        "node_modules/a",
        "node_modules/a/node_modules/b",
        "d",
        "node_modules/@x/y",
        "node_modules/../z",
        "../w",
    )
    return {"lockfileVersion": dice.choice((1, 3)), "packages": {place: document(dice, 1) for place in places}}


@pytest.mark.parametrize("seed", range(6))
def test_files_of_a_project(seed: int) -> None:
    dice = random.Random(seed)
    bugs: list[str] = []

    def report(process: Process, error: BaseException) -> str:
        bugs.append(f"{process.argv!r:.200}: " + "".join(traceback.format_exception(error)[-3:]))
        return "bug"

    for _ in range(5):
        session = new_session(None, LIMITS)
        session.kernel.report_bug = report
        files: dict[str, Any] = {
            "package.json": document(dice),
            "d/package.json": document(dice),
            "node_modules/a/package.json": document(dice),
            "node_modules/@x/y/package.json": document(dice),
            "node_modules/a/node_modules/b/package.json": document(dice),
            "package-lock.json": lockfile(dice),
            "node_modules/.package-lock.json": lockfile(dice),
        }
        for name, value in files.items():
            put(session, f"/tmp/w/{name}", json.dumps(value).encode())
        put(
            session,
            "/tmp/w/.npmrc",
            f"registry={dice.choice(('http://[', '//', 'x', 'http://x/'))}\n\0=\n[x\n=y".encode(),
        )
        for command in COMMANDS:
            result = run_command(session, ["bash", "-c", command], stdin=b"", cwd="/tmp/w")
            assert b"Traceback" not in result.stderr
    assert bugs == []


@pytest.mark.parametrize("seed", range(2))
def test_pages_of_a_registry(seed: int) -> None:
    dice = random.Random(seed)
    with Registry() as registry:
        network = Network.allow(f"127.0.0.1:{registry.port}")
        with Sandbox(network=network, env={"npm_config_registry": registry.url}, limits=LIMITS) as sandbox:
            for turn in range(15):
                name = f"p{turn}"
                registry.publish(name, "1.0.0")
                manifest = {**document(dice), "name": name, "version": "1.0.0"}
                dist = {
                    **registry.packages[name]["1.0.0"]["dist"],
                    dice.choice(("tarball", "integrity", "shasum")): dice.choice(ODD),
                }
                manifest["dist"] = dist if dice.random() < 0.8 else dice.choice(ODD)
                page = {
                    "name": name,
                    "dist-tags": {"latest": "1.0.0", "x": dice.choice(ODD)},
                    "versions": {"1.0.0": manifest},
                }
                body = json.dumps(page).encode()
                registry.routes[f"/{name}"] = Response(200, body, {"Content-Type": "application/json"})
                result = sandbox.exec(
                    f"npm view {name}; npm install {name}; npm ls; npm outdated; npx --no {name}; rm -rf *"
                )
                assert "internal error" not in result.stderr, (page, result.stderr)
                assert result.limit is None
