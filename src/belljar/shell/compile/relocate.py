"""The line numbers of commands in `$( )` and `<( )`, counted as bash counts them.

Bash keeps a substitution as text, laid out anew by its printer, and reads that text when the command around it runs:
its first line has the number of that command, however many lines stood in between in the script.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from belljar.shell.nodes import AndOr, Command, CommandList, CommandSub, Node, Pipeline, ProcSub, SimpleCommand, Word
from belljar.shell.parse import ParseOptions, Parser, ShellSyntaxError
from belljar.shell.print import print_substitution

Tree = TypeVar("Tree", bound=Node)


def single_line(part: CommandSub | ProcSub) -> int:
    """The line the substitution stands on, if bash's layout has just one line too; else 0."""
    return part.line if part.body is not None and _stands_on(part.body, part.line) else 0


def _stands_on(command: Command, line: int) -> bool:
    match command:
        case SimpleCommand():
            return command.line == line
        case Pipeline(commands):
            return all(_stands_on(inner, line) for inner in commands)
        case AndOr(first, rest):
            return _stands_on(first, line) and all(_stands_on(item.command, line) for item in rest)
        case CommandList(items):
            return all(not item.newline and _stands_on(item.command, line) for item in items)
        case _:
            return False


def layout(part: CommandSub | ProcSub) -> str:
    """The substitution's text as bash stores it."""
    assert part.body is not None
    return print_substitution(part.body) if part.source is None else part.source


def relocate(body: Command, text: str, line: int) -> Command:
    """The same commands with the numbers they have in `text`, whose first line is `line`."""
    parser = Parser(text + "\n)", ParseOptions(extglob=True), line)
    try:
        again = parser.command_body()
    except ShellSyntaxError:  # a layout that can't be read back
        return body
    return _numbered(body, again) if isinstance(again, Node) else body


def _numbered(node: Tree, other: Node) -> Tree:
    """`node` with the lines of `other`; words have none."""
    if type(node) is not type(other) or isinstance(node, Word):
        return node
    changed: dict[str, object] = {}
    for name in node.__struct_fields__:
        mine, theirs = getattr(node, name), getattr(other, name)
        if name == "line":
            new: object = theirs
        elif isinstance(mine, Node):
            new = _numbered(mine, theirs)
        elif isinstance(mine, tuple) and isinstance(theirs, tuple) and len(mine) == len(theirs):
            pairs = zip(mine, theirs, strict=True)
            new = tuple(_numbered(item, like) if isinstance(item, Node) else item for item, like in pairs)
        else:
            continue
        changed[name] = new
    return replace(node, **changed)
