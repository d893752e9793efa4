r"""Reads and writes .spec files: shell scripts with what the real tool said to them.

    #### a missing file does not stop the others
    wc -l no f
    ## file f: x\n
    ## stdout: 1 f
    ## stderr: wc: no: No such file or directory
    ## status: 1

Lines before the first `## ` are the script. `file NAME: TEXT` makes a file first (`\n \t \r \0 \\ \xHH` are escapes;
`dir NAME` and `link NAME: TARGET` make the others, `mode NAME: 755` sets permissions), `stdin: TEXT` likewise,
`env NAME: VALUE` sets a variable. A stream of one line is `stdout: LINE`; any other is a block from `## STDOUT:` to
`## END`, or, if it does not end in a newline or is not text, `## stdout-json: "..."`. An absent stdout is empty, an
absent status is 0, an absent stderr must be empty; `stderr-any` accepts whatever it says, and `platform: WHY` marks a
case the recorder leaves alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Case:
    title: str
    line: int
    script: str
    inputs: list[str] = field(default_factory=list)
    """The `## ` lines that set the stage, as written."""
    files: dict[str, bytes | tuple[str] | tuple[str, str]] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    stdout: bytes = b""
    stderr: bytes | None = b""
    status: int = 0
    fixed: bool = False


class SpecError(ValueError):
    """A .spec file that can't be read; says where."""


_ESCAPE = re.compile(r"\\(n|t|r|0|\\|x[0-9a-fA-F]{2})")
_SIMPLE = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


def unescape(text: str) -> bytes:
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPE.finditer(text):
        parts.append(text[end : match.start()].encode("utf-8", "surrogateescape"))
        code = match[1]
        parts.append(_SIMPLE[code] if code in _SIMPLE else bytes([int(code[1:], 16)]))
        end = match.end()
    parts.append(text[end:].encode("utf-8", "surrogateescape"))
    return b"".join(parts)


def read_cases(path: Path) -> tuple[str, list[Case]]:
    """The text before the first case, and the cases."""
    lines = path.read_text("utf-8", "surrogateescape").split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    starts = [i for i, line in enumerate(lines) if line.startswith("#### ")]
    head = "\n".join(lines[: starts[0] if starts else len(lines)])
    cases = [
        _read_case(path, lines, start, stop) for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True)
    ]
    return head, cases


def _read_case(path: Path, lines: list[str], start: int, stop: int) -> Case:
    script: list[str] = []
    index = start + 1
    while index < stop and not lines[index].startswith("## "):
        script.append(lines[index])
        index += 1
    case = Case(lines[start][5:], start + 1, "\n".join(script).rstrip("\n") + "\n")
    while index < stop:
        line = lines[index]
        index += 1
        if not line.strip():
            continue
        if not line.startswith("## "):
            raise SpecError(f"{path}:{index}: expected a '## ' line, found {line!r}")
        key, _, value = line[3:].partition(":")
        value = value.removeprefix(" ")
        word, _, name = key.partition(" ")
        if word in ("STDOUT", "STDERR"):
            block: list[str] = []
            while index < stop and lines[index] != "## END":
                block.append(lines[index])
                index += 1
            if index == stop:
                raise SpecError(f"{path}:{index}: '## {word}:' without '## END'")
            index += 1
            setattr(case, word.lower(), "".join(b + "\n" for b in block).encode("utf-8", "surrogateescape"))
            continue
        _apply(case, word, name, value, f"{path}:{index}")
        if word in ("file", "dir", "link", "mode", "env", "stdin", "platform", "stderr-any"):
            case.inputs.append(line)
    return case


def _apply(case: Case, word: str, name: str, value: str, where: str) -> None:
    match word:
        case "file":
            case.files[name] = unescape(value)
        case "dir":
            case.files[name] = ("dir",)
        case "link":
            case.files[name] = ("link", value)
        case "mode":
            case.modes[name] = int(value, 8)
        case "env":
            case.env[name] = value
        case "stdin":
            case.stdin = unescape(value)
        case "stdout":
            case.stdout = value.encode("utf-8", "surrogateescape") + b"\n"
        case "stderr":
            case.stderr = value.encode("utf-8", "surrogateescape") + b"\n"
        case "stdout-json":
            case.stdout = json.loads(value).encode("utf-8", "surrogateescape")
        case "stderr-json":
            case.stderr = json.loads(value).encode("utf-8", "surrogateescape")
        case "stderr-any":
            case.stderr = None
        case "status":
            case.status = int(value)
        case "platform":
            case.fixed = True
        case _:
            raise SpecError(f"{where}: unknown key {word!r}")


def render(case: Case) -> str:
    """The case as text, in the one form the recorder writes."""
    lines = [f"#### {case.title}", case.script.rstrip("\n"), *case.inputs]
    lines += _stream("stdout", case.stdout)
    if case.stderr is not None:
        lines += _stream("stderr", case.stderr)
    if case.status:
        lines.append(f"## status: {case.status}")
    return "\n".join(lines) + "\n"


def _stream(name: str, data: bytes) -> list[str]:
    if not data:
        return []
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return [f"## {name}-json: {json.dumps(data.decode('utf-8', 'surrogateescape'))}"]
    body = text[:-1]
    plain = text.endswith("\n") and all(c == "\n" or c == "\t" or c.isprintable() for c in body)
    if not plain or any(line.startswith(("## ", "#### ")) for line in body.split("\n")):
        return [f"## {name}-json: {json.dumps(text)}"]
    if "\n" not in body and body and not body.startswith(" "):
        return [f"## {name}: {body}"]
    return [f"## {name.upper()}:", *body.split("\n"), "## END"]
