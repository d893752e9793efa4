"""Runs simple scripts on whole buffers: `s`, `y`, `/re/d` and `-n /re/p` without a Python step for each line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from belljar.abi.dataclass import replace
from belljar.bin.sed.machine import Machine
from belljar.bin.sed.script import CaseChange, Command, LineNumber, Pattern, Script, Substitution
from belljar.bin.sed.streams import CHUNK, Reader
from belljar.bin.sed.substitute import expander, template
from belljar.regex import Regex, Spans
from belljar.regex.nodes import Assert, Zero

Bulk = Callable[[bytes], bytes]
_LONG_REPLACEMENT = 256
_LONG_LINE = 4096


def bulk_operation(script: Script, machine: Machine) -> Bulk | None:
    """The script as a function on buffers of whole lines; None if it needs to go line by line."""
    settings = machine.settings
    if settings.null_data or settings.unbuffered or not script.commands:
        return None
    if machine.quiet:
        return _printing(script.commands[0], machine) if len(script.commands) == 1 else None
    if any(_makes_lines(command) for command in script.commands[:-1]):
        return None  # what follows must not take part of a pattern space for a line
    operations = [_operation(command, machine, alone=len(script.commands) == 1) for command in script.commands]
    if any(operation is None for operation in operations):
        return None
    if len(operations) == 1:
        return operations[0]

    def all_of_them(buffer: bytes) -> bytes:
        for operation in operations:
            assert operation is not None
            if not buffer:
                break  # every line is deleted
            buffer = operation(buffer)
        return buffer

    return all_of_them


def _makes_lines(command: Command) -> bool:
    parts = command.substitution.parts if command.substitution is not None else ()
    return any(isinstance(part, bytes) and b"\n" in part for part in parts)


def _selection(command: Command) -> Regex | None:
    if command.second is None and isinstance(command.first, Pattern):
        return command.first.regex if command.first.regex is not None and command.first.regex.newline is None else None
    return None


def _printing(command: Command, machine: Machine) -> Bulk | None:
    """A single command under -n."""
    if command.name == "p" and isinstance(command.first, LineNumber) and not command.negated:
        return _by_number(command, machine, keep=True)
    substitution = command.substitution
    if substitution is not None and command.first is None and substitution.prints and substitution.regex is not None:
        replace_ = _substitute(replace(substitution, prints=0))
        if replace_ is None or substitution.regex.newline is not None:
            return None
        select, change = _filter(substitution.regex, keep=True), replace_
        return lambda buffer: change(select(buffer))
    regex = _selection(command)
    return _filter(regex, keep=not command.negated) if command.name == "p" and regex is not None else None


def _operation(command: Command, machine: Machine, *, alone: bool) -> Bulk | None:
    if command.name == "d" and isinstance(command.first, LineNumber) and not command.negated and alone:
        return _by_number(command, machine, keep=False)
    if command.name == "d":
        regex = _selection(command)
        return _filter(regex, keep=command.negated) if regex is not None else None
    if command.first is not None or command.negated:
        return None
    if command.name == "s" and command.substitution is not None:
        return _substitute(command.substitution)
    if command.name == "y" and all(char.isascii() for pair in command.mapping.items() for char in pair):
        if "\n" in command.mapping or "\n" in command.mapping.values():
            return None
        table = bytes(ord(command.mapping.get(chr(code), chr(code))) for code in range(256))
        return lambda buffer: buffer.translate(table)
    return None


def _filter(regex: Regex, *, keep: bool) -> Bulk:
    def run(buffer: bytes) -> bytes:
        out: list[bytes] = []
        last = 0
        for start, end in regex.lines(buffer):
            if keep:
                out.append(buffer[start : end + 1])
            elif start > last:
                out.append(buffer[last:start])
            last = end + 1
        if not keep:
            out.append(buffer[last:])
        return b"".join(out)

    return run


def _substitute(substitution: Substitution) -> Bulk | None:
    regex = substitution.regex
    once = regex is not None and (not substitution.globally or regex.anchored)
    # where a match takes the rest of its line along, a group around the pattern comes first
    text = template(substitution.parts, shift=1 if once else 0)
    if regex is None or text is None or substitution.prints or substitution.filename or substitution.number != 1:
        return None
    if (
        len(text) > _LONG_REPLACEMENT
        or regex.newline is not None
        or any(isinstance(part, CaseChange) for part in substitution.parts)
    ):
        return None
    if not once and regex.may_be_empty:
        return None
    anchor = _at_line_ends(regex, substitution)
    if anchor is not None:
        return anchor
    narrow = _compiled(regex, once, wide=False)
    if narrow is None:
        return _by_re2(regex, substitution, once)
    if once:
        text += b"\\g<%d>\n" % (regex.groups + 2)

    by_re2 = _by_re2(regex, substitution, once) if regex.traits.ambiguous_repeats else None

    def run(buffer: bytes) -> bytes:
        if not regex.may_match(buffer):
            return buffer
        if by_re2 is not None and len(buffer) > _LONG_LINE * buffer.count(b"\n"):
            return by_re2(buffer)  # backtracking over such lines is quadratic
        if regex.narrow(buffer):
            return bytes(narrow.sub(text, buffer))
        wide = _compiled(regex, once, wide=True)
        assert wide is not None
        decoded = buffer.decode("utf-8", "surrogateescape")
        replacement = text.decode("utf-8", "surrogateescape")
        return str(wide.sub(replacement, decoded)).encode("utf-8", "surrogateescape")

    return run


def _at_line_ends(regex: Regex, substitution: Substitution) -> Bulk | None:
    """s/^/text/ and s/$/text/"""
    if not all(isinstance(part, bytes) for part in substitution.parts):
        return None
    text = b"".join([part for part in substitution.parts if isinstance(part, bytes)])
    if regex.tree == Assert(Zero.LINE_START):
        return lambda buffer: text + buffer[:-1].replace(b"\n", b"\n" + text) + b"\n"
    if regex.tree == Assert(Zero.LINE_END):
        return lambda buffer: buffer.replace(b"\n", text + b"\n")
    return None


def _by_re2(regex: Regex, substitution: Substitution, once: bool) -> Bulk | None:
    """For patterns whose longest match only RE2 finds."""
    if regex.line_finder(wide=False) is None:
        return None
    expand = expander(substitution.parts)

    def run(buffer: bytes) -> bytes:
        finder = regex.line_finder(wide=not regex.narrow(buffer))
        assert finder is not None
        match, how = finder.match, finder.unanchored
        text = buffer[:-1]
        end = len(text)
        out: list[bytes] = []
        last = pos = 0
        while pos <= end:
            spans = match(how, text, pos, end)
            first, final = spans[0]
            if first < 0:
                break
            out.append(text[last:first])
            out.append(expand(Spans(text, spans)))
            last = final
            if once:
                pos = text.find(b"\n", final) + 1
                if not pos:
                    break
            else:
                pos = final
        out.append(buffer[last:])
        return b"".join(out)

    return run


def _by_number(command: Command, machine: Machine, *, keep: bool) -> Bulk | None:
    """N and N,M: only the lines at the edges are looked for one by one."""
    first, second = command.first, command.second
    if not isinstance(first, LineNumber) or not isinstance(second, LineNumber | None) or machine.separate:
        return None
    begin, end = first.number, max(second.number if second is not None else 0, first.number)
    passed = 0

    def run(buffer: bytes) -> bytes:
        nonlocal passed
        count = buffer.count(b"\n")
        start, stop = begin - 1 - passed, end - passed  # lines of this buffer, counted from 0
        passed += count
        if stop <= 0 or start >= count:
            return b"" if keep else buffer
        low = _offset(buffer, max(start, 0))
        high = len(buffer) if stop >= count else low + _offset(buffer[low:], stop - max(start, 0))
        return buffer[low:high] if keep else buffer[:low] + buffer[high:]

    return run


def _offset(buffer: bytes, lines: int) -> int:
    """Return where line number `lines`, counted from 0, starts."""
    if not lines:
        return 0
    parts = buffer.split(b"\n", lines)
    return len(buffer) - len(parts[-1])


def _compiled(regex: Regex, once: bool, *, wide: bool) -> re.Pattern[Any] | None:
    """The pattern for all lines at once; `once`: it takes the rest of its line with it, newline included."""
    return regex.line_pattern("({})([^\\n]*)\\n" if once else "{}", wide=wide)


def run_bulk(machine: Machine, operation: Bulk) -> None:
    """Every file through `operation`."""
    budget = machine.process.budget
    while (opened := machine.open_next()) is not None:
        machine.switch(opened)
        for buffer in _buffers(opened[0]):
            budget.charge(1 + (len(buffer) >> 6))
            if buffer.endswith(b"\n"):
                machine.out.raw(operation(buffer))
            else:
                last = operation(buffer + b"\n")
                if last:
                    machine.out.line(last[:-1], b"")


def _buffers(reader: Reader) -> Iterator[bytes]:
    """Whole lines; a last one without a newline comes alone."""
    parts: list[bytes] = []
    held = 0
    while data := reader.process.read(reader.fd, CHUNK):
        cut = data.rfind(b"\n") + 1
        if not cut:
            held += len(data)
            reader.process.budget.charge_size(held)
            parts.append(data)
            continue
        parts.append(data[:cut])
        yield b"".join(parts)
        parts = [data[cut:]] if cut < len(data) else []
        held = len(data) - cut
    if parts:
        yield b"".join(parts)
