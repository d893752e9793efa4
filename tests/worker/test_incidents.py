"""An exception of our own ends one process: its owner is told everything, the guest an id, and the sandbox goes on."""

from __future__ import annotations

import asyncio
import logging
import re

import pytest

from belljar import AsyncSandbox, Event, Sandbox, SandboxError

pytestmark = [pytest.mark.usefixtures("probes"), pytest.mark.slow]


@pytest.mark.parametrize("how", ["", "fiber"])
def test_a_process(how: str) -> None:
    events: list[Event] = []
    with Sandbox(on_event=events.append) as sandbox:
        result = sandbox.exec(f"crash {how}; echo status $?; crash {how} | cat; echo goes on")
        assert result.stdout == "status 134\ngoes on\n"
        shown = re.findall(r"^crash: internal error (i-[0-9a-f]{8})$", result.stderr, re.MULTILINE)
        incidents = [event.data for event in events if event.kind == "incident"]
        assert [incident["id"] for incident in incidents] == shown
        assert len(set(shown)) == 2
        assert incidents[0]["command"] == "crash"
        assert 'KeyError: "a detail that is nobody\'s business"' in incidents[0]["trace"]
        assert "detail" not in result.stdout + result.stderr
        assert sandbox.exec("echo ok").stdout == "ok\n"


def test_a_call_of_the_owners() -> None:
    with Sandbox() as sandbox:
        sandbox.exec("crash call")
        with pytest.raises(SandboxError, match="internal error i-"):
            sandbox.files.list("/")
        assert sandbox.files.exists("/tmp")
        assert sandbox.exec("echo ok").stdout == "ok\n"


def test_without_a_listener_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "belljar"), Sandbox() as sandbox:
        assert sandbox.exec("crash").exit_code == 134
    assert "a bug in belljar ended crash" in caplog.text


def test_async() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            results = await asyncio.gather(*(sandbox.exec("crash || echo on") for _ in range(5)))
            assert {result.stdout for result in results} == {"on\n"}

    asyncio.run(main())
