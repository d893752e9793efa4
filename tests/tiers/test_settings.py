"""Arguments of a sandbox, and what it tells of itself."""

from __future__ import annotations

import time
from typing import Any

import pytest

import belljar
from belljar import FileError, Image, IsolationUnavailable, Limits, Mount, Sandbox, SnapshotError, Store
from tests.tiers.conftest import Make, Tier


def test_files(make: Make) -> None:
    sb = make(files={"/workspace/a": "1", "b": b"2", "/opt/new/run": (b"#!/bin/sh\necho ran\n", 0o755)})
    assert sb.exec("cat a b; /opt/new/run").stdout == "12ran\n"


def test_files_belong_to_the_user(make: Make) -> None:
    sb = make(files={"/workspace/d/a": "1\n"})
    assert sb.exec("echo 2 >> d/a && rm -r d && echo ok").stdout == "ok\n"


def test_env(make: Make) -> None:
    sb = make(env={"A": "1", "PATH": "/usr/bin:/bin", "EMPTY": ""})
    assert sb.exec("echo $A $PATH [${EMPTY-unset}]").stdout == "1 /usr/bin:/bin []\n"


def test_cwd(make: Make) -> None:
    sb = make(cwd="/srv/new/place")
    assert sb.exec("pwd; touch here && echo made").stdout == "/srv/new/place\nmade\n"
    sb.files.write("relative", "x")
    assert sb.files.exists("/srv/new/place/relative")


def test_the_user(sb: Sandbox) -> None:
    said = sb.exec("id -un; id -u; echo $USER $HOME; cd; pwd; touch f && stat -c %U f").stdout
    assert said == "agent\n1000\nagent /home/agent\n/home/agent\nagent\n"


def test_another_user(make: Make) -> None:
    sb = make(user="build-er")
    assert sb.exec("id -un; echo $USER $HOME; touch f ~/f && stat -c %U f").stdout == (
        "build-er\nbuild-er /home/build-er\nbuild-er\n"
    )


def test_root(make: Make, tier: Tier) -> None:
    sb = make(user="root")
    assert sb.exec("id -u; echo $HOME; echo x > /etc/new && cat /etc/new; chmod 600 /etc/new").stdout == "0\n/root\nx\n"
    owner = "1234:1234" if tier.behaviour("users are separate", True) else "0:0"
    assert sb.exec("touch f; chown 1234:1234 f; stat -c %u:%g f").stdout == f"{owner}\n"


def test_the_host_name(make: Make) -> None:
    assert make().exec("hostname; uname -n").stdout == "belljar\nbelljar\n"
    assert make(hostname="box-7").exec("hostname; uname -n").stdout == "box-7\nbox-7\n"


def test_the_user_can_not_change_the_system(sb: Sandbox, tier: Tier) -> None:
    for command in ("touch /usr/bin/x", "rm /bin/sh", "hostname other", "chown root /tmp"):
        assert sb.exec(command).exit_code != 0, command
    assert (sb.exec("echo > /etc/hosts").exit_code != 0) is tier.behaviour("users are separate", True)
    assert sb.exec("hostname").stdout == "belljar\n"


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "an unknown argument": ({"lmits": 1}, TypeError, "did you mean limits"),
    "an argument of exec": ({"timeout": 5}, TypeError, r"give it to exec\(timeout"),
    "a relative cwd": ({"cwd": "here"}, ValueError, "absolute"),
    "a user": ({"user": "Not A User"}, ValueError, "no user name"),
    "a hostname": ({"hostname": "-x"}, ValueError, "no host name"),
    "env": ({"env": {"A": 1}}, TypeError, "str to str"),
    "files": ({"files": ["a"]}, TypeError, "files= takes a dict"),
    "a file's contents": ({"files": {"a": 1}}, TypeError, "str, bytes"),
    "limits": ({"limits": 5}, TypeError, r"Limits\(\.\.\.\)"),
    "network": ({"network": True}, TypeError, r"Network\.deny"),
    "tools": ({"tools": [print]}, TypeError, "tools= takes a dict"),
    "a layer": ({"require": "seccomp"}, TypeError, "require= takes a set"),
    "on_event": ({"on_event": 1}, TypeError, "takes a function"),
    "store": ({"store": "file.db"}, TypeError, "Store.sqlite"),
}


@pytest.mark.parametrize(("options", "error", "text"), WRONG.values(), ids=WRONG)
def test_what_makes_no_sense(make: Make, options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make(**options)


def test_what_is_no_mount(make: Make) -> None:
    with pytest.raises(TypeError, match="no file server"):
        Mount.server(object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Mount\.host"):
        make(mounts={"/m": "dir"})


def test_what_is_no_checkpoint(make: Make) -> None:
    with pytest.raises(TypeError, match="'exec' or a number"):
        make(checkpoint="always")


def test_there_is_no_such_tier(make: Make) -> None:
    with pytest.raises(ValueError, match="there is no tier 'cloud': choose from virtual, native, microvm"):
        make(tier="cloud")


def test_a_layer_that_there_is_not(make: Make) -> None:
    with pytest.raises(IsolationUnavailable, match="no layer called force-field"):
        make(require={"force-field"})


def test_layers_that_hold_may_be_required(make: Make) -> None:
    held = set(make().info.isolation)
    assert {"seccomp", "no_new_privs", "rlimits"} <= held
    assert set(make(require=held).info.isolation) >= held


def test_info(make: Make, tier: Tier) -> None:
    before = time.time()
    info = make(name="lane-7").info
    assert (info.id, info.tier) == ("lane-7", tier.behaviour("name of the tier", tier.name))
    assert before - 60 < info.created <= time.time()
    assert not set(info.isolation) & set(info.missing)
    assert isinstance(info.image, str)


def test_a_name_is_made_up(make: Make) -> None:
    first, second = make(), make()
    assert first.name == first.info.id != second.name
    assert first.name in repr(first)


def test_stats(sb: Sandbox, tier: Tier) -> None:
    before = sb.stats()
    process = sb.spawn("read x")
    sb.files.write("f", b"x" * 1_000_000)
    after = sb.stats()
    assert after["processes"] == before["processes"] + 1
    assert after["bytes"] >= before["bytes"] + 1_000_000
    assert after["files"] == before["files"] + 1
    assert after["uptime"] > before["uptime"] > 0
    assert after["memory"] > 0
    assert after["cpu"] >= 0
    process.stdin.close()
    process.wait()
    assert sb.stats()["processes"] == before["processes"]


def test_sandboxes_are_apart(make: Make) -> None:
    first, second = make(), make()
    first.exec("echo secret > /tmp/f; sleep 60 & echo").check()
    assert second.exec("cat /tmp/f").exit_code == 1
    assert second.exec("kill -0 -1 2>/dev/null; ls /tmp").stdout == ""


def test_nothing_of_the_host_is_there(sb: Sandbox) -> None:
    """No file of the owner's, no process, no kernel log."""
    here = __file__
    assert sb.exec(["cat", here]).exit_code == 1
    assert sb.exec("ls /root /home").stdout.split() == ["/home:", "agent"] or "root" not in sb.exec("id").stdout
    said = sb.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout
    assert "pytest" not in said


def test_use(tier: Tier) -> None:
    assert belljar.use(lambda sandbox: sandbox.exec("echo hi").stdout, **tier.options) == "hi\n"
    with pytest.raises(FileError):
        belljar.use(lambda sandbox: sandbox.files.read("no"), **tier.options)


def test_limits_of_the_sandbox_hold_for_each_command(make: Make) -> None:
    sb = make(limits=Limits(wall_seconds=0.5))
    assert sb.exec("sleep 60").limit == "wall_seconds"
    with pytest.raises(ValueError, match="more than the sandbox's own"):
        sb.exec("true", limits=Limits(wall_seconds=5))


@pytest.mark.feature("images of the owner")
def test_an_image_is_where_it_begins(make: Make, tier: Tier) -> None:
    """Its files and variables; programs of the built-in image are belljar's own, and run on the virtual tier only."""
    store = Store.memory()
    image = Image().files({"/data/words": "bell\njar\n"}).env(STAGE="test").build(store, name="words")
    sb = make(image=image, store=store)
    assert sb.files.read("/data/words") == "bell\njar\n"
    result = sb.exec("cat /data/words; echo $STAGE")
    assert (result.exit_code, result.stdout) == tier.behaviour("programs of the base image", (0, "bell\njar\ntest\n"))


@pytest.mark.parametrize("name", ["no-such-label", "0" * 64])
def test_a_snapshot_that_is_not_there(make: Make, name: str) -> None:
    with pytest.raises(SnapshotError, match="no"):
        make.restore(name, Store.memory())
