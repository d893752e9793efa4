"""What the console's page does, without a browser."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import urlencode

import httpx
from websockets.sync.client import ClientConnection, connect

from tests.server.serving import Server

API = "/console/api"
OURS = {"X-Belljar-Console": "1"}


class Page:
    """A browser that has signed in."""

    def __init__(self, server: Server, key: str | None = None) -> None:
        self.server = server
        # No connection stays open, and so nothing has to be closed.
        limits = httpx.Limits(max_keepalive_connections=0)
        self.client = httpx.Client(base_url=server.url, timeout=60, headers=OURS, limits=limits)
        answer = self.client.post(f"{API}/session", json={"key": server.key if key is None else key})
        assert answer.status_code == 201, answer.text

    @property
    def cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return self.client.request(method, API + path, json=body, **options)

    def get(self, where: str, **query: Any) -> Any:
        answer = self.client.get(API + where, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def create(self, **wish: Any) -> str:
        answer = self.ask("POST", "/sandboxes", {"templateID": "base", "timeout": 7200, **wish})
        assert answer.status_code == 201, answer.text
        number: str = answer.json()["sandboxID"]
        return number

    def write(self, number: str, path: str, data: bytes) -> httpx.Response:
        headers = {"Content-Type": "application/octet-stream"}
        where = f"{API}/sandboxes/{number}/file"
        return self.client.post(where, params={"path": path}, content=data, headers=headers)

    def process(self, number: str, command: str) -> dict[str, Any]:
        """The only one of this command line, once it has it: a shell says more before its child has begun."""
        end = time.monotonic() + 60
        while True:
            found = [each for each in self.get(f"/sandboxes/{number}/processes") if each["command"] == command]
            if found:
                (process,) = found
                return dict(process)
            assert time.monotonic() < end
            time.sleep(0.05)

    def terminal(self, number: str, **query: Any) -> Terminal:
        return Terminal(self, number, query)


class Terminal:
    """The page's end of a shell."""

    def __init__(self, page: Page, number: str, query: dict[str, Any]) -> None:
        url = f"{page.server.url.replace('http', 'ws', 1)}{API}/sandboxes/{number}/terminal"
        self.socket: ClientConnection = connect(
            f"{url}?{urlencode(query)}",
            origin=page.server.url,  # type: ignore[arg-type]
            additional_headers={"Cookie": page.cookie},
            max_size=None,
            proxy=None,
            open_timeout=60,
        )
        self.hello = json.loads(self.socket.recv(60))
        self.offset: int = self.hello["from"]
        self.shown = ""

    def type(self, text: str) -> None:
        self.socket.send(text.encode())

    def say(self, **message: Any) -> None:
        self.socket.send(json.dumps(message))

    def until(self, text: str, seconds: float = 60.0) -> str:
        """All that was shown, once the text is there."""
        end = time.monotonic() + seconds
        while text not in self.shown:
            assert time.monotonic() < end, f"no {text!r} in {self.shown[-1000:]!r}"
            data = self.socket.recv(max(0.1, end - time.monotonic()))
            assert isinstance(data, bytes)
            self.offset += len(data)
            self.shown += data.decode("utf-8", "replace")
            self.say(shown=self.offset)
        return self.shown

    def close(self) -> None:
        self.socket.close()
