"""Every example runs, and says something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(ROOT.glob("*.py"))
PARTS = ("any_endpoint", "repository", "scripted_langchain")
AGENTS = [path for path in sorted((ROOT / "agents").glob("*.py")) if path.stem not in PARTS]
REPAIRED = "-    return sum(numbers) / (len(numbers) + 1)\n+    return sum(numbers) / len(numbers)\n"


@pytest.mark.battery(sample=3)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.battery(sample=2)
@pytest.mark.slow
@pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.stem)
def test_an_agent_of_each_framework_repairs_what_it_can_not_touch(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert said.index("FAILED") < said.index("OK") < said.index(REPAIRED)
    assert said.endswith("on this machine nothing has changed\n")


def test_every_framework_has_an_example() -> None:
    adapters = {
        "deepagents",
        "inspect_ai",
        "langchain",
        "mcp",
        "openai_agents",
        "pydantic_ai",
        "smolagents",
        "commands",
    }
    used = "".join(path.read_text() for path in AGENTS)
    assert {name for name in adapters if f"belljar.integrations.{name}" not in used} == {"mcp"}
    assert '"-m", "belljar.cli", "mcp"' in used


ANSWERS = (
    {
        "content": None,
        "tool_calls": [{"id": "1", "function": {"name": "bash", "arguments": '{"command": "echo $((6 * 7))"}'}}],
    },
    {"content": "It is 42."},
)


class Endpoint(BaseHTTPRequestHandler):
    """Stands in for a model's server: one tool call, then an answer that needs its result."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        told = [message["content"] for message in asked["messages"] if message["role"] == "tool"]
        assert told in ([], ["42\n"])
        body = json.dumps({"choices": [{"message": {"role": "assistant", **ANSWERS[len(told)]}}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


def test_any_endpoint() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        environment = {**os.environ, "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}"}
        done = subprocess.run(
            [sys.executable, str(ROOT / "agents" / "any_endpoint.py"), "6 * 7?"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        server.shutdown()
    assert (done.stdout, done.stderr) == ("$ echo $((6 * 7))\n42\nIt is 42.\n", "")
