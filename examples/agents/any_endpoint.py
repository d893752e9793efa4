"""An agent on any OpenAI-compatible endpoint, in a sandbox, with nothing but the standard library.

OPENAI_BASE_URL=https://api.example.com/v1 OPENAI_API_KEY=... MODEL=... python any_endpoint.py 'What is 2**100?'
"""

import json
import os
import sys
import urllib.request
from typing import Any

from belljar import Sandbox

BASE = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
MODEL = os.environ.get("MODEL", "gpt-5")
BASH = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a bash command in a sealed sandbox.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}


def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    body = json.dumps({"model": MODEL, "messages": messages, "tools": [BASH]}).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}"}
    request = urllib.request.Request(f"{BASE}/chat/completions", body, headers)  # noqa: S310 - your own address
    with urllib.request.urlopen(request) as response:  # noqa: S310
        answer: dict[str, Any] = json.load(response)["choices"][0]["message"]
    return answer


messages: list[dict[str, Any]] = [{"role": "user", "content": " ".join(sys.argv[1:]) or "Which utilities do you have?"}]
with Sandbox() as sandbox:
    for _ in range(20):
        message = ask(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            print(message["content"])
            break
        for call in message["tool_calls"]:
            command = json.loads(call["function"]["arguments"])["command"]
            result = sandbox.exec(command, timeout=60, merge_stderr=True)
            print(f"$ {command}\n{result.stdout}", end="")
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result.stdout[-20_000:]})
