"""What only remote sandboxes have: ids, attaching and detaching, several clients, the environment, errors."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from belljar import (
    AsyncRemoteSandbox,
    Image,
    ImageError,
    InfrastructureError,
    Mount,
    Network,
    RemoteSandbox,
    Sandbox,
    SandboxClosed,
    SandboxCreationError,
    SandboxError,
    Store,
)
from tests.server.serving import Server


@pytest.fixture(autouse=True)
def environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLJAR_URL", server.url)
    monkeypatch.setenv("BELLJAR_KEY", server.key)


def state(server: Server, number: str) -> str:
    answer = server.request("GET", f"/sandboxes/{number}")
    return "gone" if answer.status_code == 404 else str(answer.json()["state"])


def wait_until_gone(server: Server, number: str) -> None:
    """A client that closes waits five seconds for it, and no longer."""
    until = time.monotonic() + 60
    while state(server, number) != "gone":
        assert time.monotonic() < until
        time.sleep(0.05)


def test_the_environment_names_the_server() -> None:
    with RemoteSandbox() as sb:
        assert sb.exec("echo hi").stdout == "hi\n"
        assert isinstance(sb, Sandbox)


@pytest.mark.parametrize("name", ["URL", "KEY"])
def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv(f"BELLJAR_{name}")
    for kind in (RemoteSandbox, AsyncRemoteSandbox):
        with pytest.raises(ValueError, match=f"server's {name.lower()} is missing: .*BELLJAR_URL and BELLJAR_KEY"):
            kind()


@pytest.mark.parametrize("url", ["sandboxes.example", "ftp://x", "http://", "http://x/?q", "http://x/\n"])
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match="server's"):
        RemoteSandbox(url, "bj_x")


def test_a_wrong_key() -> None:
    with pytest.raises(SandboxCreationError, match="refused the key"):
        RemoteSandbox(key="bj_" + "0" * 42)


def test_infrastructure_is_not_the_task() -> None:
    assert not issubclass(InfrastructureError, SandboxError)


def test_close_ends_it_on_the_server(server: Server) -> None:
    with RemoteSandbox() as sb:
        assert state(server, sb.id) == "running"
    wait_until_gone(server, sb.id)
    with pytest.raises(SandboxClosed):
        sb.exec("true")
    sb.close()


def test_it_is_seen_by_the_other_door(server: Server) -> None:
    with RemoteSandbox(name="lane") as sb:
        shown = server.request("GET", f"/sandboxes/{sb.id}").json()
        assert (shown["templateID"], shown["metadata"]) == ("base", {"name": "lane"})
        server.request("DELETE", f"/sandboxes/{sb.id}")
        with pytest.raises(SandboxClosed):
            sb.exec("sleep 100")


def test_detach_leaves_it_running(server: Server) -> None:
    sb = RemoteSandbox(env={"WHO": "first"}, cwd="/srv")
    sb.files.write("/srv/note", "kept")
    sb.exec("(while :; do date +%N > /tmp/ticks; sleep 0.1; done) > /dev/null 2>&1 &")
    talker = sb.spawn("seq 3000000; echo done > /tmp/finished; sleep 1000")
    sb.detach()
    with pytest.raises(SandboxClosed, match=r"attach\(url, key, '" + sb.id):
        sb.exec("true")
    with pytest.raises(SandboxClosed):
        talker.wait(30)
    assert state(server, sb.id) == "running"
    with RemoteSandbox.attach(None, None, sb.id) as again:
        assert again.id == sb.id
        assert again.exec("pwd; echo $WHO; cat note").stdout == "/srv\nfirst\nkept"
        before = again.files.read("/tmp/ticks")
        until = time.monotonic() + 60
        while again.files.read("/tmp/ticks") == before or not again.files.exists("/tmp/finished"):
            assert time.monotonic() < until
            time.sleep(0.05)
    wait_until_gone(server, sb.id)


@pytest.mark.battery
@pytest.mark.slow
def test_how_long_it_is_kept(server: Server) -> None:
    """As long as there is a client, and then for so many seconds."""
    sb = RemoteSandbox(keep_seconds=2)
    time.sleep(5)
    assert sb.exec("echo still").stdout == "still\n"
    sb.detach()
    until = time.monotonic() + 60
    while state(server, sb.id) == "running" and time.monotonic() < until:
        time.sleep(0.2)
    assert state(server, sb.id) == "paused"
    with RemoteSandbox.attach(id=sb.id) as again:
        assert again.exec("true").ok


def test_what_a_client_gave_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of the host")
    sb = RemoteSandbox(tools={"who": lambda: "first"}, mounts={"/host": Mount.host(str(tmp_path))})
    assert sb.exec("who; cat /host/file").stdout == "first\nof the host"
    sb.detach()
    with RemoteSandbox.attach(id=sb.id) as bare:
        assert not bare.exec("who").ok
        assert not bare.exec("cat /host/file").ok
        bare.detach()
    with RemoteSandbox.attach(
        id=sb.id, tools={"who": lambda: "second"}, mounts={"/h": Mount.host(str(tmp_path))}
    ) as again:
        assert again.exec("who; cat /h/file").stdout == "second\nof the host"


def test_two_clients_at_a_time(tmp_path: Path) -> None:
    with RemoteSandbox(tools={"one": lambda: "1"}) as first:
        second = RemoteSandbox.attach(id=first.id, tools={"two": lambda: "2"})
        process = first.spawn("read x; echo got $x")
        assert second.exec("one; two; echo both > shared").stdout == "1\n2\n"
        assert first.files.read("shared") == "both\n"
        process.stdin.write(b"it\n")
        assert b"".join(process.stdout) == b"got it\n"
        assert second.python.run("1 + 1").value == first.python.run("1 + 1").value == 2
        second.detach()
        assert first.exec("one").stdout == "1\n"
        assert not first.exec("two").ok


def test_a_branch_outlives_its_origin(server: Server) -> None:
    sb = RemoteSandbox(tools={"n": lambda: "7"})
    sb.js.run("var x = 5")
    sb.python.run("y = 6")
    branch = sb.fork()
    sb.close()
    assert branch.id != sb.id
    assert (branch.js.run("x").value, branch.python.run("y").value, branch.exec("n").stdout) == (5, 6, "7\n")
    branch.close()
    wait_until_gone(server, branch.id)


def test_a_paused_sandbox_is_attached_to(server: Server) -> None:
    """One that the server paused: by its API, or because its time was over."""
    sb = RemoteSandbox(files={"/workspace/a": "kept"})
    assert server.request("POST", f"/sandboxes/{sb.id}/pause").status_code == 204
    with pytest.raises(SandboxClosed, match="paused"):
        sb.exec("true")
    with RemoteSandbox.attach(id=sb.id) as again:
        assert again.files.read("a") == "kept"


def test_pause_and_resume_are_in_a_store_of_the_client() -> None:
    store = Store.memory()
    sb = RemoteSandbox(store=store)
    sb.exec("echo 1 > a; mkdir d; echo 2 > d/b")
    sb.python.run("x = 3")
    ref = sb.pause()
    with RemoteSandbox.resume(ref, store) as again:
        assert again.exec("cat a d/b").stdout == "1\n2\n"
        assert again.python.run("x").value == 3
    with Sandbox.resume(ref, store) as here:  # what was done there is looked at here
        assert here.exec("cat a d/b").stdout == "1\n2\n"


def test_images() -> None:
    store = Store.memory()
    image = Image().files({"/srv/app.txt": "built here"}).env(APP="1").build(store, name="app")
    for chosen in (image, "app", image.digest):
        with RemoteSandbox(image=chosen, store=store) as sb:
            assert sb.exec("cat /srv/app.txt; echo $APP").stdout == "built here1\n"


def test_images_that_are_not_there() -> None:
    with pytest.raises(SandboxError, match="nowhere"):
        RemoteSandbox(image="nowhere")
    with pytest.raises(ImageError):
        RemoteSandbox(image="nowhere", store=Store.memory())


@pytest.mark.parametrize("options", [{"tier": "native"}, {"native": ["gcc"]}], ids=["tier", "native"])
def test_what_is_the_servers(options: dict[str, object]) -> None:
    with pytest.raises(SandboxCreationError):
        RemoteSandbox(**options)  # type: ignore[arg-type]


def test_the_network_is_the_clients(tmp_path: Path) -> None:
    """Its policy runs here, and so do the connections: the server grants its own sandboxes nothing."""
    asked: list[str] = []

    def policy(conn: object) -> None:
        asked.append(type(conn).__name__)

    with RemoteSandbox(network=Network.policy(policy)) as sb:
        assert not sb.exec("curl -s http://example.com/").ok
    assert asked


def test_the_async_front_attaches_and_detaches(server: Server) -> None:
    async def main() -> None:
        sb = await AsyncRemoteSandbox(tools={"n": lambda: "1"}).start()
        assert (await sb.info).id == sb.id
        await sb.detach()
        with pytest.raises(SandboxClosed, match="attach"):
            await sb.exec("true")

        async def ask() -> str:
            return "2"

        async with await AsyncRemoteSandbox.attach(id=sb.id, tools={"n": ask}) as again:
            assert (await again.exec("n")).stdout == "2\n"
            assert (await again.stats())["memory"] > 0
        wait_until_gone(server, sb.id)
        with pytest.raises(SandboxClosed):
            await AsyncRemoteSandbox.attach(id=sb.id)
        with pytest.raises(TypeError, match="needs the id"):
            await AsyncRemoteSandbox.attach()

    asyncio.run(main())


def test_a_quota_is_said(server: Server) -> None:
    key = server.new_key("small")
    with pytest.raises(SandboxCreationError, match="Timeout cannot be greater"):
        RemoteSandbox(key=key, keep_seconds=1e8)
    with Sandbox(store=Store.memory()) as here:
        snapshot = here.snapshot()
    with pytest.raises(SandboxCreationError, match="Timeout cannot be greater"):
        RemoteSandbox.restore(snapshot, key=key, keep_seconds=1e8)


def test_many_at_once() -> None:
    async def one(n: int) -> str:
        async with AsyncRemoteSandbox() as sb:
            return (await sb.exec(f"echo {n}")).stdout

    async def main() -> list[str]:
        return await asyncio.gather(*(one(n) for n in range(12)))

    assert asyncio.run(main()) == [f"{n}\n" for n in range(12)]


def test_threads_share_the_sessions_loop() -> None:
    """All sessions of a process have one thread."""
    import threading

    boxes = [RemoteSandbox() for _ in range(3)]
    for sb in boxes:
        sb.exec("true")
    assert sum(thread.name == "belljar-remote" for thread in threading.enumerate()) == 1
    for sb in boxes:
        sb.close()
