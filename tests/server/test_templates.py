"""Templates by the stock SDK: defined, built, tagged, used, removed; and what is answered to wrong definitions."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import e2b
import httpx
import pytest
from e2b import AsyncSandbox, AsyncTemplate, Sandbox, Template

from tests.server.serving import WHOLE, Server
from tests.server.test_control import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]


@pytest.fixture
def context(tmp_path: Path) -> Path:
    """Files of a project."""
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "folder" / "test.txt").write_text("a test")
    (tmp_path / "folder" / "deep" / "er").write_text("deeper")
    os.symlink("test.txt", tmp_path / "folder" / "link")
    (tmp_path / "app.py").write_text("print('app')\n")
    return tmp_path


def name() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


def run(template: str, command: str) -> str:
    sandbox = Sandbox.create(template)
    try:
        return sandbox.commands.run(command).stdout
    finally:
        sandbox.kill()


def test_a_template_with_everything(sdk: Server, context: Path) -> None:
    template = (
        Template(file_context_path=str(context))
        .from_base_image()
        .copy("folder/*", "some folder")
        .copy("folder", "/opt/whole")
        .copy("app.py", "/srv/app.py", user="root", mode=0o750)
        .copy(["app.py"], "dir/")
        .run_cmd("cat 'some folder/test.txt'; whoami")
        .run_cmd(["echo one > /etc/one", "echo two > /etc/two"], user="root")
        .make_dir("made/here", mode=0o700)
        .make_symlink("made", "linked")
        .rename("dir/app.py", "dir/renamed.py")
        .set_envs({"COLOUR": "dark blue"})
        .set_workdir("/work")
        .run_cmd('echo "$COLOUR" > colour')
        .set_start_cmd("touch /tmp/begun; sleep 1000", "test -e /tmp/begun")
    )
    called, lines = name(), []
    built = Template.build(template, called, on_build_logs=lambda line: lines.append(line.message))
    assert built.name == called
    assert "a test" in lines
    assert any("COPY folder/* some folder" in line for line in lines)
    script = (
        "pwd; cat ~/'some folder/link' ~/'some folder/deep/er' /opt/whole/link /etc/one /etc/two colour; echo $COLOUR;"
        "stat -c '%U %a' /srv/app.py ~/made/here ~/'some folder/test.txt'; ls -A ~/dir ~/linked; ls /tmp"
    )
    assert run(called, script).splitlines() == [
        "/work", "a testdeepera testone", "two", "dark blue", "dark blue", "root 750", "user 700", "user 644",
        "/home/user/dir:", "renamed.py", "", "/home/user/linked:", "here", "begun",
    ]  # fmt: skip


def test_tags_and_rebuilds(sdk: Server) -> None:
    called = name()
    first = Template.build(Template().from_base_image().run_cmd("echo 1 > v"), f"{called}:v1", tags=["default"])
    assert sorted(first.tags) == ["default", "v1"]
    Template.build(Template().from_base_image().run_cmd("echo 2 > v"), called, tags=["v2"])
    assert [run(f"{called}{tag}", "cat v") for tag in ("", ":v1", ":v2", ":default")] == ["1\n", "1\n", "2\n", "1\n"]
    assigned = Template.assign_tags(f"{called}:v2", ["stable", "default"])
    assert run(called, "cat v") == run(f"{called}:stable", "cat v") == "2\n"
    tags = {tag.tag: tag.build_id for tag in Template.get_tags(called)}
    assert set(tags) == {"default", "stable", "v1", "v2"}
    assert tags["stable"] == tags["v2"] == assigned.build_id
    Template.remove_tags(called, "stable")
    with pytest.raises(e2b.SandboxException, match="stable"):
        Sandbox.create(f"{called}:stable")
    with pytest.raises(e2b.TemplateException, match="stable"):
        Template.remove_tags(called, "stable")
    with pytest.raises(e2b.TemplateException):
        Template.assign_tags(f"{called}:none", "other")


def test_one_template_from_another(sdk: Server) -> None:
    base, derived = name(), name()
    Template.build(Template().from_base_image().run_cmd("echo base > f").set_envs({"A": "1"}), base)
    Template.build(Template().from_template(base).run_cmd("echo more >> f; echo $A >> f"), derived)
    assert run(derived, "cat f; echo $A") == "base\nmore\n1\n1\n"
    assert (Template.exists(base), Template.exists(derived), Template.exists(name())) == (True, True, False)


def test_steps_are_cached_unless_forced(sdk: Server) -> None:
    called = name()
    recipe = Template().from_base_image().run_cmd(f"echo built; date +%N > {called}")

    def lines(**options: Any) -> list[str]:
        said: list[str] = []
        Template.build(recipe, called, on_build_logs=lambda line: said.append(line.message), **options)
        return said

    assert "built" in lines()
    assert "built" not in lines()
    assert "built" in lines(skip_cache=True)


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        (lambda: Template().from_base_image().run_cmd("echo said; exit 3"), "exit code 3"),
        (lambda: Template().from_image("ubuntu:22.04"), "not in this server's store"),
        (lambda: Template().from_template("no-such-template"), "not found"),
        (lambda: Template().from_image("x", username="u", password="p"), "registries"),
        (lambda: Template().from_base_image().set_user("mallory"), "no user 'mallory'"),
        (lambda: Template().from_base_image().run_cmd("id", user="eve"), "invalid username: 'eve'"),
        *([(lambda: Template().from_base_image().set_start_cmd("sleep 1", "exit 1"), "not ready")] if WHOLE else []),
    ],
)
def test_what_goes_wrong_is_said(sdk: Server, recipe: Any, words: str) -> None:
    with pytest.raises(e2b.BuildException, match=words):
        Template.build(recipe(), name())


def test_wrong_calls(sdk: Server) -> None:
    for wish, status in (
        ({"name": "Bad Name"}, 400),
        ({"name": ""}, 400),
        ({"name": "x" * 200}, 400),
        ({"name": "ok", "tags": ["no tag"]}, 400),
        ({"name": "base"}, 409),
        ({}, 400),
    ):
        assert sdk.request("POST", "/v3/templates", json=wish).status_code == status, wish
    made = sdk.request("POST", "/v3/templates", json={"name": name()}).json()
    build = f"/templates/{made['templateID']}/builds/{made['buildID']}"
    assert sdk.request("GET", f"{build}/status").json()["status"] == "waiting"
    assert sdk.request("GET", f"{build}/status?logsOffset=-1").status_code == 400
    assert sdk.request("POST", f"/v2{build}", json={"steps": [{"type": "EXPLODE"}]}).status_code == 202
    until(lambda: sdk.request("GET", f"{build}/status").json()["status"] == "error")
    assert sdk.request("GET", f"{build}/status").json()["reason"]["step"] == "1"
    assert sdk.request("POST", f"/v2{build}", json={}).status_code == 400  # it was begun already
    assert sdk.request("POST", "/v2/sandboxes", json={"templateID": made["templateID"]}).status_code == 404
    assert sdk.request("GET", f"/templates/{made['templateID']}/files/..%2f..%2fx").status_code in (400, 404)
    assert sdk.request("DELETE", f"/templates/{made['templateID']}").status_code == 204
    assert sdk.request("GET", f"{build}/status").status_code == 404


def test_links_for_uploads_are_signed(sdk: Server) -> None:
    made = sdk.request("POST", "/v3/templates", json={"name": name()}).json()
    number = uuid.uuid4().hex * 2
    link = sdk.request("GET", f"/templates/{made['templateID']}/files/{number}").json()
    assert link["present"] is False
    url = link["url"]
    for wrong in (
        url[:-1] + "x",
        url.replace(number, uuid.uuid4().hex * 2),
        url.replace("until=1", "until=2"),
        url.partition("?")[0],
    ):
        assert httpx.put(wrong, content=b"x", timeout=30).status_code in (401, 429)
    assert httpx.put(url, content=b"x", timeout=30).status_code == 200
    assert sdk.request("GET", f"/templates/{made['templateID']}/files/{number}").json()["present"] is True


def test_templates_are_a_tenants_own(sdk: Server) -> None:
    called, stranger = name(), sdk.new_key("template-thief")
    Template.build(Template().from_base_image().run_cmd("echo secret > f"), called)
    number = sdk.request("GET", f"/templates/aliases/{called}").json()["templateID"]
    for each in (called, number):
        wish = {"templateID": each}
        assert sdk.request("POST", "/v2/sandboxes", key=stranger, json=wish).status_code == 404
        for method, path in (
            ("GET", f"/templates/{each}"),
            ("GET", f"/templates/{each}/tags"),
            ("DELETE", f"/templates/{each}"),
            ("GET", f"/templates/aliases/{each}"),
        ):
            assert sdk.request(method, path, key=stranger).status_code == 404
    assert sdk.request("GET", "/templates", key=stranger).json() == []
    assert sdk.request("POST", "/v3/templates", key=stranger, json={"name": called}).status_code == 202  # its own


def test_the_list_of_templates(sdk: Server) -> None:
    called = name()
    Template.build(Template().from_base_image(), called)
    run(called, "true")
    (mine,) = [each for each in sdk.request("GET", "/v2/templates?limit=100").json() if each["names"] == [called]]
    assert (mine["buildStatus"], mine["spawnCount"], mine["public"]) == ("ready", 1, False)
    shown = sdk.request("GET", f"/templates/{called}").json()
    assert [build["status"] for build in shown["builds"]] == ["ready"]
    assert sdk.request("PATCH", f"/v2/templates/{called}", json={"public": False}).json() == {"names": [called]}
    assert sdk.request("PATCH", f"/v2/templates/{called}", json={"public": True}).status_code == 400
    assert sdk.request("DELETE", f"/templates/{called}").status_code == 204
    assert sdk.request("POST", "/v2/sandboxes", json={"templateID": called}).status_code == 404


def test_the_start_command_runs_again_after_a_pause(sdk: Server) -> None:
    called = name()
    command = "date +%N > /tmp/x; mv /tmp/x /tmp/n; sleep 1000"
    recipe = Template().from_base_image().set_start_cmd(command, "test -s /tmp/n")
    Template.build(recipe, called)
    sandbox = Sandbox.create(called)
    before = sandbox.files.read("/tmp/n")
    sandbox.pause()
    sandbox.connect()
    deadline = time.monotonic() + 60  # it is ready at once: the file is there from before
    while sandbox.files.read("/tmp/n") in (before, "") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sandbox.files.read("/tmp/n") != before
    assert [each.tag for each in sandbox.commands.list()] == ["start"]
    sandbox.kill()


def test_asynchronously(sdk: Server) -> None:
    async def main() -> None:
        called = name()
        recipe = AsyncTemplate().from_base_image().run_cmd("echo async > f")
        build = await AsyncTemplate.build_in_background(recipe, called)
        async with asyncio.timeout(60):
            while (status := await AsyncTemplate.get_build_status(build)).status.value in ("waiting", "building"):
                await asyncio.sleep(0.05)
        assert status.status.value == "ready"
        sandbox = await AsyncSandbox.create(called)
        assert await sandbox.files.read("f") == "async\n"
        await sandbox.kill()

    asyncio.run(main())


@pytest.fixture(autouse=True)
def _no_failure_of_ours(sdk: Server) -> Iterator[None]:
    yield
    assert [line for line in sdk.logged if '"trace"' in line] == []
