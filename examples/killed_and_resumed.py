"""An agent's work survives its owner: the process is killed in the middle, and another one goes on.

    python examples/killed_and_resumed.py

With `checkpoint="exec"` a sandbox is kept under its name after each command. `exec` returns when that is durable, so
what a program has seen the end of is there after `kill -9`, a crash or a power cut.
"""

import os
import signal
import subprocess
import sys
import tempfile

from belljar import Sandbox, Store


def work(path: str) -> None:
    """The agent: step after step, until somebody kills it."""
    with Sandbox(name="lane", store=Store.sqlite(path), checkpoint="exec") as sandbox:
        for step in range(1000):
            sandbox.exec(f"mkdir -p done; echo {step} > done/{step}").check()
            print(step, flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "store.db")
        agent = subprocess.Popen([sys.executable, __file__, path], stdout=subprocess.PIPE, text=True)  # noqa: S603
        assert agent.stdout is not None
        finished = [int(agent.stdout.readline()) for _ in range(5)]
        agent.send_signal(signal.SIGKILL)
        finished += [int(line) for line in agent.communicate()[0].splitlines()]
        print(f"killed after {len(finished)} steps")
        with Sandbox.resume("lane", Store.sqlite(path), checkpoint="exec") as sandbox:
            found = {int(name) for name in sandbox.exec("ls done").stdout.split()}
            print("nothing is lost:", set(finished) <= found)
            sandbox.exec("echo on > done/again").check()


if __name__ == "__main__":
    work(sys.argv[1]) if len(sys.argv) > 1 else main()
