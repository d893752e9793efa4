"""`sandbox.services`: images with services, from outside and inside, across forks, snapshots, pauses and the end."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from belljar import AsyncSandbox, Image, Mount, NotOnThisTier, Sandbox, ServiceError, Store

pytestmark = pytest.mark.slow

PAGE = "printf 'HTTP/1.0 200 OK\\r\\nContent-Length: 3\\r\\n\\r\\nhi\\n'"


def eventually(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def store() -> Store:
    return Store.memory()


@pytest.fixture(scope="module")
def image(store: Store) -> Image:
    recipe = (
        Image()
        .files({"/srv/page.sh": f"#!/bin/bash\n{PAGE}\n"})
        .service("web", "while nc -l 8000 < <(bash /srv/page.sh) >/dev/null; do :; done", ready="port:8000")
        .service("job", "sleep 0.1; date >/tmp/job", needs=["web"], user="root", ready="done")
    )
    assert recipe.steps[1:] == ["service web", "service job"]
    return recipe.build(store)


def test_a_sandbox_is_usable_before_its_services_are(image: Image) -> None:
    with Sandbox(image=image) as sandbox:
        assert sandbox.exec("echo usable").stdout == "usable\n"
        assert {each.name for each in sandbox.services.list()} == {"job", "web"}
        status = sandbox.services.wait("job")
        assert (status.state, str(status)) == ("done", "done (exit code 0)")
        web = sandbox.services.wait("web")
        assert (web.state, web.ready, str(web)) == ("running", True, f"running (pid {web.pid})")
        assert sandbox.exec("service status web").stdout.startswith("web: running")
        assert sandbox.exec("curl -s localhost:8000").stdout == "hi\n"
        assert sandbox.exec("stat -c %U /tmp/job /etc/init/web.toml").stdout == "root\nroot\n"


def test_starting_stopping_and_logs(image: Image) -> None:
    with Sandbox(image=image) as sandbox:
        services = sandbox.services
        sandbox.files.write("/etc/init/talk.toml", "command = 'echo one; echo two >&2; exec sleep 99'")
        assert services.start("talk").running
        eventually(lambda: services.logs("talk") == "one\ntwo\n")
        assert services.logs("talk", 1) == "two\n"
        before = services.wait("talk").pid
        assert services.restart("talk").pid != before
        eventually(lambda: services.logs("talk").count("two") == 2)
        sandbox.exec(f"sudo kill -9 {services.wait('talk').pid}")
        eventually(lambda: services.logs("talk").count("two") == 3)
        assert next(each for each in services.list() if each.name == "talk").restarts == 1
        assert services.logs("talk").count("one") == 3
        assert services.stop("talk").state == "stopped"
        with pytest.raises(ServiceError, match="there is no service 'nope': there are job, talk, web"):
            services.restart("nope")
        with pytest.raises(ServiceError, match="there is no service"):
            services.logs("nope")
        sandbox.files.write("/etc/init/bad.toml", "command = 'echo why; sleep 900'\nready = 'port:1'")
        services.restart("bad")
        eventually(lambda: services.logs("bad") == "why\n")
        with pytest.raises(ServiceError, match=r"(?s)'bad' is not ready after 1 s: .*its log ends:\nwhy") as caught:
            services.wait("bad", timeout=1)
        assert "not ready yet" in str(caught.value)
        sandbox.files.write("/etc/init/worse.toml", "command = 3")
        with pytest.raises(ServiceError, match=r"worse.toml: command = 3: it must be a list of texts"):
            services.start("worse")


def test_a_fork_goes_on_with_the_services(image: Image) -> None:
    with Sandbox(image=image) as sandbox:
        sandbox.services.wait("web")
        with sandbox.fork() as branch:
            assert branch.services.wait("web").running
            assert branch.exec("curl -s localhost:8000").stdout == "hi\n"
            branch.services.stop("web")
            assert sandbox.exec("curl -s localhost:8000").stdout == "hi\n"


def test_a_restored_sandbox_starts_them_anew(image: Image, store: Store) -> None:
    with Sandbox(image=image, store=store) as sandbox:
        sandbox.services.wait("job")
        point = sandbox.snapshot()
        sandbox.exec("rm -f /tmp/job")
    with Sandbox.restore(point) as again:
        assert again.services.wait("job").state == "done"
        assert again.exec("grep -c 'web: started' /var/log/init.log").stdout == "2\n"
        ref = again.pause()
    with Sandbox.resume(ref, store=store) as resumed:
        log = resumed.files.read("/var/log/init.log")
        assert "web: stopped (killed by TERM)" in log, "a pause stops services before it keeps anything"
        assert resumed.services.wait("web").running


def test_services_end_in_order_when_a_sandbox_is_closed(tmp_path: Path) -> None:
    def unit(name: str, needs: str) -> str:
        does = f"trap 'echo {name} >>/host/order; exit' TERM; touch /tmp/{name}; sleep 99 & wait"
        return f"command = '''{does}'''\nneeds = [{needs}]"

    files = {"/etc/init/a.toml": unit("a", ""), "/etc/init/b.toml": unit("b", "'a'")}
    host = Mount.host(str(tmp_path), read_only=False)
    trapped = "until [ -e /tmp/a ] && [ -e /tmp/b ]; do sleep 0.01; done"
    with Sandbox(files=files, mounts={"/host": host}) as sandbox:
        sandbox.services.wait("b")
        assert sandbox.exec(trapped, timeout=60).ok
    assert (tmp_path / "order").read_text() == "b\na\n"
    with Sandbox(mounts={"/host": host}) as sandbox:  # one that was started from inside
        for path, text in files.items():
            sandbox.files.write(path, text)
        assert sandbox.exec(f"service start b; {trapped}", timeout=60).ok
    assert (tmp_path / "order").read_text() == "b\na\nb\na\n"
    began = time.monotonic()
    with Sandbox(files={"/etc/init/x.toml": "command = '''trap '' TERM; while :; do sleep 1; done'''"}) as sandbox:
        sandbox.exec("true")
    assert time.monotonic() - began < 60


def test_services_of_a_worker_that_is_late_are_stopped_too(tmp_path: Path) -> None:
    unit = "command = '''trap 'echo ended >/host/end; exit' TERM; touch /tmp/up; sleep 99 & wait'''"
    with Sandbox(
        files={"/etc/init/a.toml": unit}, mounts={"/host": Mount.host(str(tmp_path), read_only=False)}
    ) as sandbox:
        assert sandbox.exec("until [ -e /tmp/up ]; do sleep 0.01; done", timeout=60).ok
        pid = sandbox._link.pid
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(2, os.kill, (pid, signal.SIGCONT)).start()
    assert (tmp_path / "end").read_text() == "ended\n"


def test_from_asyncio(image: Image) -> None:
    async def main() -> None:
        async with AsyncSandbox(image=image) as sandbox:
            assert (await sandbox.services.wait("web")).running
            assert (await sandbox.exec("curl -s localhost:8000")).stdout == "hi\n"
            await sandbox.services.restart("web")
            assert {each.name for each in await sandbox.services.list()} == {"job", "web"}
            assert (await sandbox.services.stop("web")).state == "stopped"
            assert (await sandbox.services.start("web")).running
            with pytest.raises(ServiceError):
                await sandbox.services.logs("nope")

    asyncio.run(main())


def test_a_recipe_is_checked() -> None:
    for given, error in (
        ({"name": "../x", "command": "a"}, "no name of a service"),
        ({"name": "x", "command": "a", "ready": "port"}, "port:8000"),
        ({"name": "x", "command": "a", "restart": "maybe"}, "always"),
        ({"name": "x", "command": "a", "cwd": "rel"}, "absolute"),
        ({"name": "x", "command": "", }, "command"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=error):
            Image().service(**given)  # type: ignore[arg-type]


def test_only_on_the_virtual_tier() -> None:
    with Sandbox(tier="native") as sandbox, pytest.raises(NotOnThisTier, match="use tier='virtual'"):
        sandbox.services  # noqa: B018 - it is asking for it that is refused
