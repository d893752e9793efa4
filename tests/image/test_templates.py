"""Sandboxes of an image that was used before: branches of a template, each as if it were the first."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from belljar import Image, Limits, Mount, Sandbox, Store
from belljar.api import templates_host
from belljar.api.templates_host import SPARES, TEMPLATES_MAX, templates

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are forked on Linux only")


@pytest.fixture(autouse=True)
def no_templates() -> Iterator[None]:
    templates.close()
    yield
    templates.close()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def spares() -> list[int]:
    """Workers that wait to be taken."""
    return [spare._link.pid for template in templates._templates.values() for spare in list(template._spares)]


@pytest.fixture
def image() -> Image:
    return Image().files({"/data/f": "image"}).env(X="1").build(Store.memory(), name="app")


def use_twice(image: Image) -> None:
    for _ in range(2):
        with Sandbox(image=image) as sandbox:
            assert sandbox.exec("cat /data/f").stdout == "image"


def test_the_third_is_ready_and_like_the_first(image: Image) -> None:
    use_twice(image)
    wait_for(lambda: len(spares()) == SPARES)
    waiting = spares()
    random: set[str] = set()
    for number in range(2 * SPARES + 1):
        files, mounts, tools = {"/tmp/mine": str(number)}, {"/m": Mount.memory()}, {"tell": lambda: "told"}
        with Sandbox(image=image, files=files, mounts=mounts, tools=tools) as sandbox:
            assert number > 0 or sandbox._link.pid in waiting
            said = sandbox.exec("cat /data/f /tmp/mine; echo $X; pwd; ls /m; tell; id -un").stdout
            assert said == f"image{number}1\n/workspace\ntold\nagent\n"
            random.add(sandbox.exec("echo $RANDOM; head -c 9 /dev/urandom | od -c; rm -r /data; touch /m/x").stdout)
            assert sandbox.python.run("6 * 7").value == 42
            snapshot = sandbox.snapshot(store=Store.memory())
            assert not snapshot.files.exists("/data/f")
            assert snapshot.parent is None
    assert len(random) == 2 * SPARES + 1


def test_other_settings_have_no_part_in_it(image: Image) -> None:
    use_twice(image)
    wait_for(lambda: len(spares()) == SPARES)
    waiting = spares()
    for options in ({"env": {"X": "2"}}, {"user": "root"}, {"limits": Limits(memory_bytes=1 << 29)}, {"cwd": "/tmp"}):
        with Sandbox(image=image, **options) as sandbox:
            assert sandbox._link.pid not in waiting
    assert spares() == waiting


def test_a_spare_that_was_killed_is_passed_over(image: Image) -> None:
    use_twice(image)
    wait_for(lambda: len(spares()) == SPARES)
    waiting = [spare._link for template in templates._templates.values() for spare in template._spares]
    for pid in spares():
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: all(link.closed for link in waiting))
    with Sandbox(image=image) as sandbox:
        assert sandbox.exec("cat /data/f").stdout == "image"


def test_templates_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates_host, "TEMPLATES_MAX", 1)
    store = Store.memory()
    for number in range(2):
        use_twice(Image().files({"/data/f": "image", "/n": str(number)}).build(store))
        wait_for(lambda: len(spares()) == SPARES)
    assert len(templates._templates) == 1 <= TEMPLATES_MAX
    templates.close()
    assert spares() == []
