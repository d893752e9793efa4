"""One agent, the same code, here and on a server: its tools, files and listeners stay in this program.

With BELLJAR_URL and BELLJAR_KEY it uses that server; else it starts one of its own for a moment.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from belljar import RemoteSandbox, Sandbox

TICKETS = {"17": "open", "23": "closed"}


def ticket(number: str) -> str:
    """The state of a ticket. A function of this program: what it knows never leaves it but for its answers."""
    return TICKETS.get(number, "unknown")


def agent(make: Callable[..., Sandbox]) -> str:
    """What an agent does does not depend on where: `make` is `Sandbox` or `RemoteSandbox`."""
    heard: list[str] = []
    with make(tools={"ticket": ticket}, files={"/workspace/numbers": "17\n23\n42\n"}) as sandbox:
        sandbox.exec("while read n; do echo $n $(ticket $n); done < numbers > states")
        sandbox.python.run("rows = [line.split() for line in open('states')]")
        still_open = sandbox.python.run("[number for number, state in rows if state == 'open']").value
        branch = sandbox.fork()  # try something, keep it or not
        branch.exec("rm states")
        branch.close()
        sandbox.exec("cat states", on_stdout=lambda data: heard.append(data.decode()))
    return f"open: {still_open}; all: {' / '.join(''.join(heard).splitlines())}"


@contextmanager
def server() -> Iterator[None]:
    """The server that the environment names, or one of our own."""
    if "BELLJAR_URL" in os.environ:
        yield
        return
    command = [sys.executable, "-m", "belljar.cli", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        said = process.stdout.readline() + process.stdout.readline()
        os.environ["BELLJAR_URL"] = re.findall(r"http\S+", said)[0]
        os.environ["BELLJAR_KEY"] = re.findall(r"bj_\w+", said)[0]
        try:
            yield
        finally:
            process.terminate()


here = agent(Sandbox)
print("here: ", here)
with server():
    there = agent(RemoteSandbox)
print("there:", there)
assert here == there
