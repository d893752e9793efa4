"""Small programs against the public API, each as somebody who builds agents would write it."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import urllib.request
from pathlib import Path

import pytest

import belljar
from belljar import (
    AsyncSandbox,
    Event,
    ExecError,
    Limits,
    Mount,
    RunLimits,
    Sandbox,
    SandboxError,
    SavedVariables,
    ToolError,
)

BUGGY = "def mean(numbers):\n    return sum(numbers) / (len(numbers) + 1)\n"
TEST = "from stats import mean\n\ndef test_mean():\n    assert mean([1, 2, 3]) == 2\n"


def test_clone_edit_test_diff() -> None:
    with Sandbox(files={"/workspace/origin/stats.py": BUGGY, "/workspace/origin/test_stats.py": TEST}) as sandbox:
        sandbox.exec("git init -q && git add . && git commit -qm first", cwd="origin", check=True)
        sandbox.exec("git clone -q origin repo", check=True)
        failed = sandbox.exec("pytest -q", cwd="repo")
        assert (failed.ok, "1 failed" in failed.stdout) == (False, True)
        sandbox.files.edit("/workspace/repo/stats.py", "(len(numbers) + 1)", "len(numbers)")
        assert sandbox.exec("pytest -q", cwd="repo").ok
        diff = sandbox.exec("git diff --stat && git diff", cwd="repo", check=True).stdout
        assert "-    return sum(numbers) / (len(numbers) + 1)\n+    return sum(numbers) / len(numbers)\n" in diff
        assert sandbox.exec(
            "git commit -qam fix && git push -q origin HEAD:fix && git -C ../origin branch", cwd="repo"
        ).ok


def test_work_on_a_directory_without_changing_it(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("colour\n")
    with Sandbox(mounts={"/work": Mount.overlay(Mount.host(str(tmp_path)))}, cwd="/work") as sandbox:
        before = sandbox.files.read("notes.txt")
        sandbox.exec("sed -i s/colour/color/ notes.txt && echo new > more.txt", check=True)
        assert sandbox.exec("cat notes.txt more.txt").stdout == "color\nnew\n"
    assert before == (tmp_path / "notes.txt").read_text() == "colour\n"
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_analyse_a_table_and_bring_the_result_home(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("fruit,count\napple,3\npear,4\napple,5\n")
    with Sandbox() as sandbox:
        sandbox.files.upload(str(tmp_path / "sales.csv"), "/workspace/sales.csv")
        code = "import pandas as pd\ntotals = pd.read_csv('sales.csv').groupby('fruit')['count'].sum()\n"
        result = sandbox.python.run(code + "totals.to_csv('totals.csv')\n{k: int(v) for k, v in totals.items()}")
        assert result.value == {"apple": 8, "pear": 4}, result.error
        sandbox.files.download("/workspace/totals.csv", str(tmp_path / "totals.csv"))
    assert list(csv.reader(io.StringIO((tmp_path / "totals.csv").read_text()))) == [
        ["fruit", "count"],
        ["apple", "8"],
        ["pear", "4"],
    ]


def test_serve_and_fetch() -> None:
    with Sandbox(files={"/workspace/index.html": "<h1>hi</h1>"}) as sandbox:
        sandbox.exec("python3 -m http.server 8000", background=True)
        answer = sandbox.port(8000).wait(120).get("/")
        assert (answer.status, answer.text) == (200, "<h1>hi</h1>")
        assert sandbox.exec("curl -s localhost:8000").stdout == "<h1>hi</h1>"
        host, port = sandbox.expose(8000)
        with urllib.request.urlopen(f"http://{host}:{port}/") as reply:
            assert reply.read() == b"<h1>hi</h1>"


def test_a_web_api_in_javascript() -> None:
    server = """
    import http from 'node:http'
    const seen = []
    http.createServer((request, response) => {
      seen.push(request.url)
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ seen }))
    }).listen(3000)
    """
    with Sandbox(files={"/workspace/server.mjs": server}) as sandbox:
        process = sandbox.exec("node server.mjs", background=True)
        port = sandbox.port(3000).wait(120)
        port.get("/a")
        assert json.loads(port.get("/b").text) == {"seen": ["/a", "/b"]}
        process.kill()
        assert process.result().exit_code == 143


def test_an_agent_with_a_tool_of_its_owner() -> None:
    asked: list[str] = []

    def ticket(number: int, verbose: bool = False) -> dict[str, str]:
        """Look a ticket up."""
        asked.append(f"{number}")
        if number > 100:
            raise ToolError(f"there is no ticket {number}")
        return {"title": f"ticket {number}", "state": "open" if verbose else ""}

    with Sandbox(tools={"ticket": ticket}) as sandbox:
        assert sandbox.exec("ticket 7 --verbose | jq -r .state").stdout == "open\n"
        assert sandbox.python.run("ticket(8)['title']").value == "ticket 8"
        wrong = sandbox.exec("ticket 101")
        assert (wrong.ok, "there is no ticket 101" in wrong.stderr) == (False, True)
        assert "Look a ticket up" in sandbox.exec("ticket --help").stdout
    assert asked == ["7", "8", "101"]


def test_a_loop_that_tells_the_model_what_stopped_it() -> None:
    script = ["echo begin", "sleep 60", "yes", "echo still here"]
    told: list[str] = []
    with Sandbox(limits=Limits(output_bytes=1000)) as sandbox:
        for command in script:
            timeout = 0.5 if command == "sleep 60" else 60
            result = sandbox.exec(command, timeout=timeout, merge_stderr=True)
            told.append(f"[exit {result.exit_code}] {result.stdout[-200:]}")
    assert told[0] == "[exit 0] begin\n"
    assert told[1].startswith("[exit 124]")
    assert "timed out after 0.5 s" in told[1]
    assert "output_bytes" in told[2]
    assert told[3] == "[exit 0] still here\n"


def test_several_attempts_from_one_point() -> None:
    attempts = ["len(numbers) - 1", "len(numbers)", "2"]
    with Sandbox(files={"/workspace/stats.py": BUGGY, "/workspace/test_stats.py": TEST}) as sandbox:
        passed = []
        for attempt in attempts:
            with sandbox.fork() as branch:
                branch.files.edit("stats.py", "(len(numbers) + 1)", attempt)
                if branch.exec("python3 -c 'import test_stats; test_stats.test_mean()'").ok:
                    passed.append(attempt)
        assert passed == ["len(numbers)"]
        assert sandbox.files.read("stats.py") == BUGGY


def test_many_tasks_at_once() -> None:
    async def solve(number: int) -> int:
        async with AsyncSandbox(env={"N": str(number)}) as sandbox:
            result = await sandbox.exec("echo $((N * N))", check=True)
            return int(result.stdout)

    async def main() -> list[int]:
        return await asyncio.gather(*map(solve, range(8)))

    assert asyncio.run(main()) == [n * n for n in range(8)]


def test_follow_a_log_until_it_says_something() -> None:
    async def main() -> list[str]:
        seen = []
        async with AsyncSandbox() as sandbox:
            process = await sandbox.spawn("n=0; while :; do echo line $((++n)); sleep 0.01; done", text=True)
            async for line in process.stdout:
                seen.append(line)
                if line == "line 3\n":
                    await process.kill()
            assert await process.wait() == 143
        return seen

    assert asyncio.run(main())[:3] == ["line 1\n", "line 2\n", "line 3\n"]


def test_a_program_is_talked_to_on_a_terminal() -> None:
    with Sandbox() as sandbox:
        terminal = sandbox.pty("read -p 'name? ' name; echo hello $name; tty > /dev/null && stty size")
        screen = b""
        while b"name? " not in screen:
            screen += terminal.read(timeout=120)
        terminal.write(b"Ada\r")
        while piece := terminal.read(timeout=120):
            screen += piece
        assert terminal.wait() == 0
        assert b"hello Ada\r\n24 80\r\n" in screen


def test_files_without_a_shell() -> None:
    with Sandbox() as sandbox:
        written = sandbox.files.write_many([("src/a.py", "x = 1\n"), ("src/b.py", "y = 2\n"), ("/proc/no", "")])
        assert [result.ok for result in written] == [True, True, False]
        assert sandbox.files.glob("src/*.py") == ["src/a.py", "src/b.py"]
        assert [(match.path, match.line) for match in sandbox.files.grep("y =", "src")] == [("src/b.py", 1)]
        sandbox.files.write("src/a.py", "z = 3\n", append=True)
        assert sandbox.files.read("src/a.py") == "x = 1\nz = 3\n"
        sandbox.files.rename("src/a.py", "src/c.py")
        assert [entry.name for entry in sandbox.files.list("src")] == ["b.py", "c.py"]
        sandbox.files.remove("src", recursive=True)
        assert not sandbox.files.exists("src")


def test_generated_javascript_for_each_user() -> None:
    def lookup(key: str) -> str:
        raise ToolError("nobody is logged in")

    with belljar.js() as js:
        prefix = js.precompile("globalThis.greet = (name) => `hello ${name}`", globals={"lookup": lookup})
        code = "export default greet(await lookup('name'))"
        for name in ("Ada", "Grace"):
            assert (
                prefix.run(code, globals={"lookup": lambda _key, name=name: name}).exports["default"] == f"hello {name}"
            )
        failed = prefix.run(code)
        assert failed.error is not None
        assert "nobody is logged in" in failed.error.message
        endless = prefix.run("for (;;);", limits=RunLimits(cpu_ms=100))
        assert endless.error is not None
        assert endless.error.code == "CPU_LIMIT"


def test_marking_homework() -> None:
    answers = {
        "good": "def double(n): return 2 * n",
        "wrong": "def double(n): return n",
        "loops": "while True: pass",
        "broken": "def double(n) return n",
    }
    with belljar.python() as python:
        prefix = python.precompile("def check(double): return [double(n) == 2 * n for n in (0, 1, 7)]")
        marks = {}
        for name, answer in answers.items():
            result = prefix.run(f"{answer}\nall(check(double))", limits=RunLimits(cpu_ms=300))
            marks[name] = result.value if result.error is None else result.error.code
    assert marks == {"good": True, "wrong": False, "loops": "CPU_LIMIT", "broken": "SYNTAX_ERROR"}


def test_variables_move_to_another_sandbox() -> None:
    with Sandbox() as one:
        one.python.run("rows = [1, 2, 3]\ndef total(): return sum(rows)")
        kept = one.python.save().seal(b"secret", "user 7")
    with Sandbox() as another:
        assert another.python.load(SavedVariables.unseal(kept, b"secret", "user 7")) == {}
        assert another.python.run("rows.append(4); total()").value == 10


def test_what_an_agent_did_is_on_record() -> None:
    events: list[Event] = []
    with Sandbox(on_event=events.append) as sandbox:
        sandbox.exec("echo secret > plan.txt")
        assert not sandbox.exec("curl -s --max-time 5 http://example.com/").ok
        sandbox.exec("true")
    kinds = {event.kind for event in events}
    assert {"exec", "file", "network"} <= kinds
    assert any("plan.txt" in str(event) for event in events if event.kind == "file")


def test_a_report_from_a_database() -> None:
    rows = "".join(f"{n},{n * n}\n" for n in range(5))
    with Sandbox(files={"/workspace/rows.csv": rows}) as sandbox:
        sandbox.exec("sqlite3 a.db 'CREATE TABLE t (n INT, square INT)' '.import --csv rows.csv t'", check=True)
        told = sandbox.exec("sqlite3 -json a.db 'SELECT * FROM t WHERE n > 2' | jq -c '[.[].square]'").stdout
        assert json.loads(told) == [9, 16]


def test_an_archive_is_read_where_it_lies(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        sandbox.exec("mkdir src && seq 3 > src/a && echo b > src/b && tar czf out.tgz src", check=True)
        sandbox.files.download("/workspace/out.tgz", str(tmp_path / "out.tgz"))
    with Sandbox(mounts={"/old": Mount.archive(str(tmp_path / "out.tgz"))}) as sandbox:
        assert sandbox.exec("cat /old/src/a | wc -l; ls /old/src").stdout == "3\na\nb\n"


def test_a_sandbox_for_each_call_of_a_function() -> None:
    def word_count(sandbox: Sandbox) -> int:
        return int(sandbox.exec("wc -w < text").stdout)

    async def shout(sandbox: AsyncSandbox) -> str:
        return (await sandbox.exec("tr a-z A-Z < text")).stdout

    files = {"/workspace/text": "one two three\n"}
    assert belljar.use(word_count, files=files) == 3
    assert asyncio.run(belljar.use(shout, files=files)) == "ONE TWO THREE\n"


def test_progress_of_a_long_computation() -> None:
    heard: list[bytes] = []
    with Sandbox() as sandbox:
        result = sandbox.python.run("for n in range(3):\n    print('step', n)\n'done'", on_stdout=heard.append)
        assert result.value == "done"
        build = sandbox.exec("echo compiling; echo warning >&2; echo linking", on_stdout=heard.append)
        assert build.stderr == "warning\n"
    assert b"".join(heard) == b"step 0\nstep 1\nstep 2\ncompiling\nlinking\n"


def test_errors_say_what_to_do() -> None:
    with Sandbox() as sandbox:
        with pytest.raises(ExecError, match="No such file") as failed:
            sandbox.exec("ls /nothing", check=True)
        assert failed.value.result.exit_code == 2
        with pytest.raises(SandboxError, match="/nothing"):
            sandbox.files.read("/nothing")
    with pytest.raises(SandboxError, match="closed"):
        sandbox.exec("true")


def test_packages_of_the_project_are_tested_offline() -> None:
    project = {
        "/workspace/pkg/__init__.py": "from pkg.core import add\n",
        "/workspace/pkg/core.py": "def add(a, b): return a + b\n",
        "/workspace/tests/test_core.py": "import pytest\nfrom pkg import add\n\n"
        "@pytest.mark.parametrize('n', range(3))\ndef test_add(n): assert add(n, n) == 2 * n\n",
    }
    with Sandbox(files=project) as sandbox:
        result = sandbox.exec("python3 -m pytest -q tests")
        assert (result.ok, "3 passed" in result.stdout) == (True, True), result.stdout
