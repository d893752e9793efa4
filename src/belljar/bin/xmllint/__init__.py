"""xmllint - check, format and query XML files

Usage: xmllint [--noout] [--format] [--noblanks] [--xpath EXPRESSION] [--output FILE] [FILE]...

Entities are not expanded, and neither DTDs nor other files are ever loaded.
"""

from __future__ import annotations

from belljar.abi.paths import fsencode
from belljar.bin._kit import utility
from belljar.bin.xmllint.tree import Attribute, Document, XmlError, drop_blanks, parse, write, write_document
from belljar.bin.xmllint.xpath import Value, XPathError, evaluate, string
from belljar.kernel.process import Process

IGNORED = frozenset(
    "nonet nowarning noent huge nocdata nsclean pedantic recover quiet novalid dropdtd compress".split()
)
USAGE_STATUS, UNREADABLE, WRONG, NO_RESULT = 1, 1, 1, 10


@utility("xmllint")
def main(process: Process, args: list[str]) -> int:
    flags: set[str] = set()
    expression = output = None
    names: list[str] = []
    rest = iter(args)
    for arg in rest:
        option = arg.lstrip("-") if arg.startswith("-") and arg != "-" else ""
        if not option:
            names.append(arg)
        elif option == "xpath":
            expression = next(rest, "")
        elif option in ("output", "o"):
            output = next(rest, "")
        elif option in ("format", "noout", "noblanks"):
            flags.add(option)
        elif option not in IGNORED:
            process.error(f"Unknown option {arg}\n{str(__doc__).partition(chr(10) * 2)[2]}")
            return USAGE_STATUS
    if not names:
        process.error(str(__doc__).partition("\n\n")[2])
        return USAGE_STATUS
    status = 0
    for name in names:
        status = _one(process, name, flags, expression, output) or status
    return status


def _one(process: Process, name: str, flags: set[str], expression: str | None, output: str | None) -> int:
    if (data := process.try_read(name)) is None:
        process.error(f'warning: failed to load external entity "{name}"\n')
        return UNREADABLE
    try:
        document = parse(data, process.budget)
    except XmlError as error:
        _report(process, name, data, error)
        return WRONG
    if "format" in flags or "noblanks" in flags:
        drop_blanks(document)
    if expression is not None:
        return _query(process, document, expression)
    if "noout" in flags:
        return 0
    text = write_document(document, indent="  " if "format" in flags else None)
    if output is not None:
        process.write_file(output, text)
    else:
        process.stdout.write(text)
    return 0


def _report(process: Process, name: str, data: bytes, error: XmlError) -> None:
    lines = data.decode("utf-8", "replace").splitlines()
    line = lines[error.line - 1] if error.line <= len(lines) else ""
    shown = "-" if name == "-" else name
    process.error(f"{shown}:{error.line}: parser error : {error}\n{line[:80]}\n{' ' * min(error.column, 79)}^\n")


def _query(process: Process, document: Document, expression: str) -> int:
    try:
        value = evaluate(expression, document, process.budget)
    except XPathError as error:
        process.error(f"XPath error : {error}\n{expression}\n{' ' * error.place}^\nXPath evaluation failure\n")
        return NO_RESULT
    if value == []:
        process.error("XPath set is empty\n")
        return NO_RESULT
    process.stdout.write(fsencode(_shown(value, document)))
    return 0


def _shown(value: Value, document: Document) -> str:
    if not isinstance(value, list):
        return string(value) + "\n"
    lines: list[str] = []
    for node in value:
        if node is document:
            lines.append(write_document(document, indent=None).decode("utf-8", "replace").rstrip("\n"))
        elif isinstance(node, Attribute):
            lines.append("".join(write(node, indent=None)))
        else:
            lines.append("".join(write(node, indent=None)))
    return "\n".join(lines) + "\n"
