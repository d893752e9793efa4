"""Interactive `node`: completion by Tab, and the shell's own afterwards."""

from __future__ import annotations

from belljar import Sandbox
from tests.engines.test_python_terminal import Screen


def test_names_are_completed(sandbox: Sandbox, v8: None) -> None:
    shell = Screen(sandbox.pty(["bash", "--norc"], env={"PS1": "sh> "}))
    shell.until(b"sh> ")
    shell.enter(b"node", b"> ")
    for typed, completed in ((b"consol", b"console"), (b".lo", b".log"), (b"(require('pat", b"(require('path")):
        shell.terminal.write(typed)
        shell.until(typed)
        shell.terminal.write(b"\t")
        shell.until(completed.removeprefix(typed))
    said, _, after = shell.enter(b"').sep)", b"undefined").partition(b"undefined")
    assert b"/\r\n" in said
    if b"> " not in after:  # it may have come with the rest
        shell.until(b"> ")
    shell.terminal.write(b"\x04")
    shell.until(b"sh> ")
    sandbox.files.write("/workspace/a_long_file_name", "its text")
    assert b"its text" in shell.enter(b"cat a_lo\t", b"sh> ")
    shell.terminal.kill("KILL")
    shell.terminal.wait(30)
