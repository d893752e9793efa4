"""`select` compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from belljar.abi.paths import fsdecode
from belljar.libc.width import display_width
from belljar.shell.compile.fields import compile_words
from belljar.shell.compile.loops import bind_loop_variable, ends_loop
from belljar.shell.control import Break, Continue, ShellError
from belljar.shell.nodes import Select
from belljar.shell.print import print_word

if TYPE_CHECKING:
    from belljar.shell.processes import Run
    from belljar.shell.shell import Shell

TAB: Final = 8


def compile_select(node: Select, body: Run) -> Run:
    words, name = compile_words(node.words), node.name

    def run(shell: Shell) -> int:
        shell.line = node.line
        try:
            items = words(shell)
        except ShellError as error:
            shell.abandon(error)
        if not items:
            shell.status = 0
            return 0
        if shell.xtrace:
            shell.trace(f"select {name} in {' '.join([print_word(word) for word in node.words])}")
        shell.loops += 1
        status = 0
        show = True
        try:
            while True:
                shell.budget.charge()
                choice = _ask(shell, items, show=show)
                if choice is None:
                    shell.write("\n") if shell.posix else shell.process.error("\n")
                    shell.status = 1
                    return 1
                show = False
                shell.vars.set("REPLY", choice)
                if not choice:
                    show = True
                    continue
                number = int(choice) if choice.isdecimal() and len(choice) < 9 else 0
                if not bind_loop_variable(shell, name, items[number - 1] if 0 < number <= len(items) else ""):
                    status = 1
                    break
                try:
                    status = body(shell)
                except (Break, Continue) as jump:
                    status = 0
                    if ends_loop(shell, jump):
                        break
                show = not shell.vars.get("REPLY")
        finally:
            shell.loops -= 1
        shell.status = status
        return status

    return run


def _ask(shell: Shell, items: list[str], *, show: bool) -> str | None:
    """Show the menu and the prompt, read a line; None at the end of input."""
    while True:
        if show:
            shell.process.error(_menu(shell, items))
        prompt = shell.vars.get("PS3")
        shell.process.error("#? " if prompt is None else prompt)
        line = shell.read_line(0)
        if not line:
            return None
        text = fsdecode(line).rstrip("\n").strip(" \t")
        if text:
            return text
        show = True


def _menu(shell: Shell, items: list[str]) -> str:
    """The numbered items in columns, as bash lays them out."""
    columns = shell.vars.get("COLUMNS") or "80"
    width = int(columns) if columns.isdecimal() else 80
    digits = len(str(len(items)))
    widths = [display_width(item) for item in items]
    longest = max(widths) + digits + 2 + 2
    across = max(width // longest, 1) if longest else 1
    rows = -(-len(items) // across)
    across = -(-len(items) // rows)
    if rows == 1:
        rows, across = across, 1
    out: list[str] = []
    for row in range(rows):
        at = column = 0
        for place in range(row, len(items), rows):
            out.append(_blanks(at, column))
            numbers = digits if column else len(str(rows))
            out.append(f"{place + 1:>{numbers}}) {items[place]}")
            at = column + numbers + 2 + widths[place]
            column += longest
        out.append("\n")
    return "".join(out)


def _blanks(start: int, end: int) -> str:
    """Padding from one column to another: tabs, then spaces."""
    tabs = max(end // TAB - start // TAB, 0)
    return "\t" * tabs + " " * (end - (end // TAB * TAB if tabs else start))
