"""`sandbox.containers`: from outside, with images of the owner's, and what a tool of the owner's is to a container."""

from __future__ import annotations

import asyncio

import pytest

from belljar import AsyncSandbox, ContainerError, Image, ImageError, NotOnThisTier, Sandbox, Store
from belljar.kernel.loader import program_file

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store() -> Store:
    return Store.memory()


@pytest.fixture(scope="module")
def image(store: Store) -> Image:
    recipe = Image().files({"/srv/data": "from the image\n"}).env(COLOUR="blue").user("agent").command("cat /srv/data")
    return recipe.build(store, name="app")


def test_running_and_looking_into_one() -> None:
    with Sandbox(files={"/workspace/f": "shared\n"}) as sandbox:
        box = sandbox.containers.run(
            "base",
            "echo up; cat /data/f; sleep 99",
            name="box",
            volumes={"/workspace": "/data:ro"},
            env={"A": "b"},
        )
        assert box.exec("echo $A; id -un; cat", stdin="given\n").stdout == "b\nroot\ngiven\n"
        assert box.exec(["pwd"], cwd="/srv").stdout == "/srv\n"
        assert box.exec("exit 3").exit_code == 3
        assert box.exec("sleep 9", timeout=0.3).timed_out
        process = box.spawn("read line; echo got $line")
        process.stdin.write(b"this\n")
        assert (process.stdout.read(), process.wait()) == (b"got this\n", 0)
        assert (box.logs(), box.logs(1)) == ("up\nshared\n", "shared\n")
        (info,) = sandbox.containers.list()
        assert (info.name, info.image, info.running, info.address) == ("box", "base", True, "172.17.0.2")
        assert sandbox.containers.get("box").info() == info
        with pytest.raises(ContainerError, match="still runs after"):
            box.wait(timeout=0.2)
        box.stop(timeout=60)
        assert (box.wait(), box.info().state.status) == (143, "exited")
        box.start()
        assert box.info().running
        with pytest.raises(ContainerError, match="is running"):
            box.remove()
        snapshot = sandbox.snapshot(store=Store.memory())
        assert snapshot.lost == ()
        with Sandbox.restore(snapshot) as restored:
            (there,) = restored.containers.list()
            assert (there.name, there.state.status, there.state.exit_code) == ("box", "exited", 137)
            restored.containers.get("box").remove()
            again = restored.containers.run("base", "echo anew", name="box")
            assert (again.wait(timeout=60), again.logs()) == (0, "anew\n")
        box.kill()
        box.wait()
        box.remove()
        assert sandbox.containers.list() == []
        with pytest.raises(ContainerError, match="box: no such container"):
            box.info()


def test_images_of_the_owners(image: Image, store: Store) -> None:
    with Sandbox(store=store) as sandbox:
        first = sandbox.containers.run(image)
        assert (first.wait(), first.logs()) == (0, "from the image\n")
        assert sandbox.containers.images() == ["app", "base"]
        second = sandbox.containers.run("app", "rm -f /srv/data; echo $COLOUR; id -un; pwd")
        second.wait()
        assert second.logs().endswith("blue\nagent\n/workspace\n")
        assert sandbox.exec("sudo container run --rm app cat /srv/data").stdout == "from the image\n"
        assert sandbox.containers.add(image, "other") == "other"
        assert sandbox.exec("sudo docker run --rm other").stdout == "from the image\n"
        with pytest.raises(ImageError):
            sandbox.containers.run("nothing-of-that-name", "true")
    with Sandbox(image=image) as sandbox, sandbox.fork() as branch:  # a sandbox of an image has containers, too
        for each in (sandbox, branch):
            each.containers.add(image, "mine")
            assert each.exec("sudo docker run --rm mine").stdout == "from the image\n"


def test_what_reaches_beyond_the_kernel_is_not_in_containers() -> None:
    def leak() -> str:
        return "the owner's"

    with Sandbox(tools={"leak": leak}) as sandbox:
        assert sandbox.exec("leak").stdout == "the owner's\n"
        sandbox.files.write("/workspace/forged", program_file("leak"), mode=0o755)
        box = sandbox.containers.run("base", "sleep 99", volumes={"/workspace": "/w"})
        assert sandbox.exec("/workspace/forged").stdout == "the owner's\n"
        assert box.exec("/w/forged").exit_code == 127
        assert box.exec("leak").exit_code == 127
        assert box.exec("ls /run /usr/local/bin").stdout.split() == ["/run:", "/usr/local/bin:"]


def test_interpreters_run_in_containers() -> None:
    with Sandbox() as sandbox:
        box = sandbox.containers.run("base", "sleep 99", name="box", hostname="inner")
        code = "import os, socket; print(os.getpid() > 1, socket.gethostname(), sorted(os.listdir('/tmp')))"
        sandbox.exec("touch /tmp/outer")
        box.exec("touch /tmp/inner")
        assert box.exec(["python3", "-c", code]).stdout == "True inner ['inner']\n"


def test_from_asyncio(image: Image, store: Store) -> None:
    async def main() -> None:
        async with AsyncSandbox(store=store) as sandbox:
            box = await sandbox.containers.run("base", "sleep 99", name="box", ports={8080: 80})
            assert (await box.exec("echo $$")).exit_code == 0
            assert (await box.spawn("exit 4")).pid > 0
            assert [each.name for each in await sandbox.containers.list()] == ["box"]
            assert (await (await sandbox.containers.get("box")).info()).running
            assert await sandbox.containers.add(image) == "app"
            assert await (await sandbox.containers.run("app")).wait() == 0
            assert await sandbox.containers.images() == ["app", "base"]
            await box.stop(1)
            await box.start()
            await box.kill()
            await box.wait(120)
            assert await box.logs() == ""
            await box.remove()

    asyncio.run(main())


def test_only_on_the_virtual_tier() -> None:
    with Sandbox(tier="native") as sandbox, pytest.raises(NotOnThisTier, match="use tier='virtual'"):
        sandbox.containers  # noqa: B018 - it is asking for it that is refused


def test_arguments_are_checked() -> None:
    with Sandbox() as sandbox:
        for given in ({"name": "-x"}, {"cwd": ""}, {"env": {"A": 1}}, {"ports": {"a": 1}}, {"memory": "much"}):
            with pytest.raises((TypeError, ValueError)):
                sandbox.containers.run("base", "true", **given)
        with pytest.raises(ContainerError, match="of 6m at least"):
            sandbox.containers.run("base", "true", memory=5)
