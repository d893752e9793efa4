"""Editing by commands, one a line: what ed does, and what ex does in its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_TRUNC, O_WRONLY
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin.ed.buffer import Buffer, EditError, Line
from belljar.bin.ed.patterns import Patterns, Substitution, read_delimited
from belljar.kernel.process import Process


class Quit(Exception):
    """The editor is to end."""


@dataclass(slots=True)
class Addresses:
    """The lines that a command is for; `count` of them were given."""

    first: int
    last: int
    count: int


_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 11: "\\v", 12: "\\f", 13: "\\r", 92: "\\\\", 36: "\\$"}


def listed(text: bytes) -> bytes:
    """A line as `l` shows it, unambiguously."""
    out = []
    for char in fsdecode(text):
        code = ord(char)
        if code in _ESCAPES:
            out.append(_ESCAPES[code])
        elif char.isprintable() and code < 128:
            out.append(char)
        else:
            out += [f"\\{byte:03o}" for byte in fsencode(char)]
    shown = "".join(out) + "$"
    return fsencode("\\\n".join(shown[at : at + 71] for at in range(0, len(shown), 71)) if len(shown) > 72 else shown)


class Editor:
    """A buffer with a file name, and the commands of ed. `more` gives the next line of the script, None at its end."""

    undoable = "acdijmrstx"

    def __init__(
        self, process: Process, more: Callable[[], str | None], *, quiet: bool, syntax: str, prompt: str = ""
    ) -> None:
        self.process = process
        self.more = more
        self.quiet = quiet
        self.prompt = prompt
        self.buffer = Buffer(process.budget)
        self.patterns = Patterns(syntax)
        self.name = ""
        self.error = ""
        self.verbose = False
        self.warned = False
        self.cut: list[bytes] = []
        self.last_substitution: Substitution | None = None
        self.last_shell = ""
        self.in_global = False

    # Addresses.

    def addresses(self, text: str) -> tuple[Addresses, str]:
        """The addresses before a command, and the command."""
        buffer = self.buffer
        found: list[int] = []
        at = len(text) - len(text.lstrip())
        pending = False
        while True:
            number, at = self._address(text, at)
            if number is not None:
                found.append(number)
            at += len(text[at:]) - len(text[at:].lstrip(" \t"))
            mark = text[at : at + 1]
            if mark not in (",", ";", "%"):
                break
            if mark == "%":
                found += [1, buffer.last]
                at += 1
                pending = False
                continue
            if number is None:
                # `,` alone is the whole buffer, `;` the rest of it.
                found.append(1 if mark == "," else buffer.current)
                following, _ = self._address(text, at + 1)
                if following is None:
                    found.append(buffer.last)
            elif mark == ";":
                buffer.current = number
            at += 1
            pending = number is not None
        if pending and len(found) == 1:
            found.append(found[0])
        last = found[-1] if found else buffer.current
        first = found[-2] if len(found) > 1 else last
        if not 0 <= first <= last <= buffer.last:
            raise EditError("Invalid address")
        return Addresses(first, last, min(len(found), 2)), text[at:]

    def _address(self, text: str, at: int) -> tuple[int | None, int]:
        at += len(text[at:]) - len(text[at:].lstrip(" \t"))
        buffer = self.buffer
        char = text[at : at + 1]
        number: int | None = None
        if char.isdecimal():
            digits = re.compile(r"\d+").match(text, at)
            assert digits is not None
            number, at = int(digits[0][:18]), digits.end()
        elif char == ".":
            number, at = buffer.current, at + 1
        elif char == "$":
            number, at = buffer.last, at + 1
        elif char == "'":
            number, at = buffer.marked(text[at + 1 : at + 2]), at + 2
        elif char and char in "/?":
            pattern, at, _ = read_delimited(text, at + 1, char)
            number = (
                self.patterns.find(buffer, pattern, backwards=char == "?", start=buffer.current, step=1)
                if buffer.last
                else self._no_match()
            )
        while offset := re.compile(r"[ \t]*([-+^])[ \t]*(\d*)").match(text, at):
            if number is None:
                number = buffer.current
            amount = int(offset[2][:18] or "1")
            number += amount if offset[1] == "+" else -amount
            at = offset.end()
        return number, at

    def _no_match(self) -> int:
        raise EditError("No match")

    # Running.

    def run(self) -> int:
        """Do every command of the script; 1 if one failed."""
        status = 0
        while True:
            if self.prompt:
                self.process.print(self.prompt, end="")
                self.process.stdout.flush()
            line = self.more()
            if line is None:
                if self.buffer.modified and not self.warned and self.asks_at_end():
                    self.fail(EditError("Warning: buffer modified"))
                    return 2
                return status
            self.process.budget.charge()
            try:
                self.do(line)
            except Quit:
                return status
            except EditError as error:
                status = 1
                self.fail(error)
            except SysError as error:
                status = 1
                self.fail(EditError(error.reason))

    def asks_at_end(self) -> bool:
        return True

    def fail(self, error: EditError) -> None:
        self.error = str(error)
        self.process.print("?")
        if self.verbose:
            self.process.print(self.error)

    def do(self, line: str) -> None:
        """One command."""
        place, command = self.addresses(line)
        letter, rest = command[:1], command[1:]
        handler = self.handlers().get(letter)
        if handler is None:
            raise EditError("Unknown command")
        if letter in self.undoable and letter and not self.in_global:
            self.buffer.remember()
        warned, self.warned = self.warned, False
        if letter in "qe" and letter:
            self.warned = warned
        handler(place, rest)

    def handlers(self) -> dict[str, Callable[[Addresses, str], None]]:
        return {
            "": self.do_nothing, "a": self.do_append, "c": self.do_change, "d": self.do_delete, "e": self.do_edit,
            "E": self.do_edit_anyway, "f": self.do_file, "g": self.do_global, "G": self.do_global, "h": self.do_help,
            "H": self.do_verbose, "i": self.do_insert, "j": self.do_join, "k": self.do_mark, "l": self.do_list,
            "m": self.do_move, "n": self.do_number, "p": self.do_print, "P": self.do_prompt, "q": self.do_quit,
            "Q": self.do_quit_anyway, "r": self.do_read, "s": self.do_substitute, "t": self.do_copy,
            "u": self.do_undo, "v": self.do_inverse, "V": self.do_inverse, "w": self.do_write, "W": self.do_append_to,
            "x": self.do_put, "y": self.do_yank, "z": self.do_scroll, "=": self.do_count, "!": self.do_shell,
            "#": self.do_comment,
        }  # fmt: skip

    # What commands share.

    def lines(self, place: Addresses, *, least: int = 1) -> range:
        if place.first < least or place.last > self.buffer.last:
            raise EditError("Invalid address")
        return range(place.first, place.last + 1)

    def suffix(self, rest: str) -> None:
        """p, l and n after a command print the current line."""
        rest = rest.strip()
        if rest.strip("pln"):
            raise EditError("Invalid command suffix")
        if rest:
            self.show(range(self.buffer.current, self.buffer.current + 1), rest)

    def show(self, numbers: range, how: str) -> None:
        for number in numbers:
            self.process.budget.charge()
            text = self.buffer.text(number)
            prefix = b"%d\t" % number if "n" in how else b""
            self.process.stdout.write(prefix + (listed(text) if "l" in how else text) + b"\n")
        if numbers:
            self.buffer.current = numbers[-1]

    def typed(self) -> list[bytes]:
        """The lines up to a single dot."""
        found: list[bytes] = []
        while (line := self.more()) is not None and line != ".":
            self.process.budget.charge()
            found.append(fsencode(line))
        return found

    def read(self, source: str) -> list[bytes]:
        """The lines of a file, or of what a command writes."""
        data = self._output(source[1:]) if source.startswith("!") else self._contents(source)
        incomplete = bool(data) and not data.endswith(b"\n")
        if not self.quiet:
            if incomplete:
                self.process.print("Newline appended")
            self.process.print(str(len(data) + incomplete))
        lines = data.split(b"\n")
        return lines if incomplete else lines[:-1]

    def _contents(self, path: str) -> bytes:
        try:
            return self.process.read_file(path)
        except SysError as error:
            self.process.error(f"{path}: {error.reason}\n")
            raise EditError("Cannot open input file") from None

    def _output(self, command: str) -> bytes:
        process = self.process
        process.stdout.flush()
        reader, writer = process.pipe(cloexec=True)
        child = process.spawn(["/bin/sh", "-c", command], stdout=process.fds[writer])
        process.close(writer)
        output = process.read_to_end(reader)
        process.close(reader)
        process.wait_for(child)
        return output

    def write(self, numbers: range, target: str, flags: int) -> None:
        data = b"".join(self.buffer.text(number) + b"\n" for number in numbers)
        process = self.process
        if target.startswith("!"):
            process.stdout.flush()
            reader, writer = process.pipe(cloexec=True)
            child = process.spawn(["/bin/sh", "-c", target[1:]], stdin=process.fds[reader])
            process.close(reader)
            process.write_all(writer, data)
            process.close(writer)
            process.wait_for(child)
        else:
            try:
                fd = process.open(target, O_WRONLY | O_CREAT | flags, 0o666)
            except SysError as error:
                process.error(f"{target}: {error.reason}\n")
                raise EditError("Cannot open output file") from None
            try:
                process.write_all(fd, data)
            finally:
                process.close(fd)
        if not self.quiet:
            process.print(str(len(data)))

    def file_name(self, rest: str, *, required: bool = True) -> str:
        if rest and not rest[0].isspace() and rest[0] != "!":
            raise EditError("Unexpected command suffix")
        given = rest.strip()
        if not given and not self.name and required:
            raise EditError("No current filename")
        return given or self.name

    # Commands.

    def do_nothing(self, place: Addresses, rest: str) -> None:
        number = place.last if place.count else self.buffer.current + 1
        if not 1 <= number <= self.buffer.last:
            raise EditError("Invalid address")
        self.show(range(number, number + 1), "")

    def do_append(self, place: Addresses, rest: str) -> None:
        self.buffer.insert(place.last, self.typed())
        self.suffix(rest)

    def do_insert(self, place: Addresses, rest: str) -> None:
        self.buffer.insert(max(0, place.last - 1), self.typed())
        self.suffix(rest)

    def do_change(self, place: Addresses, rest: str) -> None:
        self.lines(place)
        texts = self.typed()
        self.buffer.delete(place.first, place.last)
        if texts:
            self.buffer.insert(place.first - 1, texts)
        self.suffix(rest)

    def do_delete(self, place: Addresses, rest: str) -> None:
        self.lines(place)
        self.cut = [line.text for line in self.buffer.delete(place.first, place.last)]
        self.suffix(rest)

    def do_edit(self, place: Addresses, rest: str) -> None:
        if self.buffer.modified and not self.warned:
            self.warned = True
            raise EditError("Warning: buffer modified")
        self.do_edit_anyway(place, rest)

    def do_edit_anyway(self, place: Addresses, rest: str) -> None:
        name = self.file_name(rest)
        lines = self.read(name)
        self.buffer.lines = []
        self.buffer.insert(0, lines)
        self.buffer.modified = self.warned = False
        if not name.startswith("!"):
            self.name = name

    def do_file(self, place: Addresses, rest: str) -> None:
        self.name = self.file_name(rest)
        self.process.print(self.name)

    def do_help(self, place: Addresses, rest: str) -> None:
        if self.error:
            self.process.print(self.error)

    def do_verbose(self, place: Addresses, rest: str) -> None:
        self.verbose = not self.verbose
        if self.verbose and self.error:
            self.process.print(self.error)

    def do_prompt(self, place: Addresses, rest: str) -> None:
        self.prompt = "" if self.prompt else "*"

    def do_join(self, place: Addresses, rest: str) -> None:
        if place.count < 2:
            place = Addresses(place.last, place.last + 1, 2)
        numbers = self.lines(place)
        joined = b"".join(self.buffer.text(number) for number in numbers)
        self.buffer.delete(place.first, place.last)
        self.buffer.insert(place.first - 1, [joined])
        self.suffix(rest)

    def do_mark(self, place: Addresses, rest: str) -> None:
        name = rest[:1]
        if not ("a" <= name <= "z"):
            raise EditError("Invalid mark character")
        self.lines(place)
        self.buffer.marks[name] = self.buffer.lines[place.last - 1]
        self.suffix(rest[1:])

    def do_list(self, place: Addresses, rest: str) -> None:
        self.show(self.lines(place), "l" + rest.strip())

    def do_number(self, place: Addresses, rest: str) -> None:
        self.show(self.lines(place), "n" + rest.strip())

    def do_print(self, place: Addresses, rest: str) -> None:
        if rest.strip().strip("pln"):
            raise EditError("Invalid command suffix")
        self.show(self.lines(place), rest.strip())

    def destination(self, rest: str) -> tuple[int, str]:
        number, at = self._address(rest, 0)
        target = self.buffer.current if number is None else number
        if not 0 <= target <= self.buffer.last:
            raise EditError("Invalid address")
        return target, rest[at:]

    def do_move(self, place: Addresses, rest: str) -> None:
        self.lines(place)
        target, rest = self.destination(rest)
        self.buffer.move(place.first, place.last, target)
        self.suffix(rest)

    def do_copy(self, place: Addresses, rest: str) -> None:
        texts = [self.buffer.text(number) for number in self.lines(place)]
        target, rest = self.destination(rest)
        self.buffer.insert(target, texts)
        self.suffix(rest)

    def do_quit(self, place: Addresses, rest: str) -> None:
        if self.buffer.modified and not self.warned:
            self.warned = True
            raise EditError("Warning: buffer modified")
        raise Quit

    def do_quit_anyway(self, place: Addresses, rest: str) -> None:
        raise Quit

    def do_read(self, place: Addresses, rest: str) -> None:
        name = self.file_name(rest)
        after = place.last if place.count else self.buffer.last
        self.buffer.insert(after, self.read(name))
        if not self.name and not name.startswith("!"):
            self.name = name

    def do_undo(self, place: Addresses, rest: str) -> None:
        self.buffer.undo()
        self.suffix(rest)

    def do_write(self, place: Addresses, rest: str, flags: int = O_TRUNC) -> None:
        ends = rest.startswith("q")
        name = self.file_name(rest[1:] if ends else rest)
        whole = place.count == 0
        numbers = range(1, self.buffer.last + 1) if whole else self.lines(place)
        self.write(numbers, name, flags)
        if not name.startswith("!"):
            self.name = self.name or name
            if len(numbers) == self.buffer.last:
                self.buffer.modified = False
        if ends:
            raise Quit

    def do_append_to(self, place: Addresses, rest: str) -> None:
        self.do_write(place, rest, O_APPEND)

    def do_put(self, place: Addresses, rest: str) -> None:
        if not self.cut:
            raise EditError("Nothing to put")
        self.buffer.insert(place.last, self.cut)
        self.suffix(rest)

    def do_yank(self, place: Addresses, rest: str) -> None:
        self.cut = [self.buffer.text(number) for number in self.lines(place)]
        self.suffix(rest)

    def do_scroll(self, place: Addresses, rest: str) -> None:
        digits = re.match(r"(\d*)[pln]*\Z", rest.strip())
        if digits is None:
            raise EditError("Invalid command suffix")
        first = place.last if place.count else self.buffer.current + 1
        last = min(self.buffer.last, first + int(digits[1][:9] or "22") - 1)
        self.show(self.lines(Addresses(first, last, 2)), rest.strip()[len(digits[1]) :])

    def do_count(self, place: Addresses, rest: str) -> None:
        self.process.print(str(place.last if place.count else self.buffer.last))

    def do_comment(self, place: Addresses, rest: str) -> None:
        return

    def do_shell(self, place: Addresses, rest: str) -> None:
        command = self.last_shell + rest[1:] if rest.startswith("!") else rest
        command = re.sub(r"(?<!\\)%", lambda _: self.name, command)
        self.last_shell = command
        self.process.stdout.flush()
        self.process.wait_for(self.process.spawn(["/bin/sh", "-c", command]))
        if not self.quiet:
            self.process.print("!")

    # s and g.

    def substitution(self, rest: str) -> Substitution:
        """Parse an s command; with only flags, the last one is repeated."""
        delimiter = rest[:1]
        if not delimiter or delimiter.isalnum():
            if self.last_substitution is None:
                raise EditError("No previous substitution")
            return self._flags(self.last_substitution, rest)
        if delimiter.isspace():
            raise EditError("Invalid pattern delimiter")
        pattern, at, closed = read_delimited(rest, 1, delimiter)
        if not closed:
            raise EditError("Missing pattern delimiter")
        replacement, at, closed = read_delimited(rest, at, delimiter)
        while not closed and replacement.endswith("\\") and (line := self.more()) is not None:
            rest = rest + "\n" + line
            replacement, at, closed = read_delimited(rest, len(pattern) + 2, delimiter)
        flags = rest[at:] if closed else "p"
        if replacement == "%" and self.last_substitution is not None:
            replacement = self.last_substitution.replacement
        found = Substitution(self.patterns.get(pattern, ignore_case=bool(re.search("[iI]", flags))), replacement)
        return self._flags(found, flags)

    def _flags(self, found: Substitution, flags: str) -> Substitution:
        match = re.fullmatch(r"(?:[gpnliIr&]|(\d{1,9}))*", flags.strip())
        if match is None:
            raise EditError("Invalid command suffix")
        shows = "".join(char for char in flags if char in "pln")
        return Substitution(found.pattern, found.replacement, "g" in flags, int(match[1] or "1"), shows)

    def do_substitute(self, place: Addresses, rest: str) -> None:
        numbers = self.lines(place)
        found = self.substitution(rest)
        self.last_substitution = found
        if not self.substitute(numbers, found) and not self.in_global:
            raise EditError("No match")
        if found.shows and self._changed:
            self.show(range(self.buffer.current, self.buffer.current + 1), found.shows)

    _changed = False

    def substitute(self, numbers: range, found: Substitution) -> bool:
        """Change lines; the last changed one is then the current one."""
        lines = [self.buffer.lines[number - 1] for number in numbers]
        self._changed = False
        position = numbers[0] if numbers else 0
        for line in lines:
            self.process.budget.charge(len(line.text) // 64 + 1)
            changed = found.apply(line.text)
            if changed is not None:
                parts = changed.split(b"\n")
                line.text = parts[0]
                self.buffer.lines[position:position] = [Line(part) for part in parts[1:]]
                position += len(parts) - 1
                self.buffer.current = position
                self.buffer.modified = self._changed = True
            position += 1
        return self._changed

    def do_global(self, place: Addresses, rest: str, *, inverse: bool = False) -> None:
        if self.in_global:
            raise EditError("Cannot nest global commands")
        delimiter = rest[:1]
        if not delimiter or delimiter.isspace():
            raise EditError("Invalid pattern delimiter")
        if not place.count:
            place = Addresses(min(1, self.buffer.last), self.buffer.last, 2)
        text, at, _ = read_delimited(rest, 1, delimiter)
        pattern = self.patterns.get(text)
        commands = [rest[at:]]
        while commands[-1].endswith("\\") and (line := self.more()) is not None:
            commands[-1] = commands[-1][:-1]
            commands.append(line)
        chosen = []
        for number in self.lines(place, least=0):
            self.process.budget.charge()
            if number and (pattern.search(self.buffer.text(number)) is None) == inverse:
                chosen.append(self.buffer.lines[number - 1])
        if not chosen:
            return
        self.buffer.remember()
        outer, self.in_global = self.more, True
        try:
            for target in chosen:
                number = self.buffer.number_of(target)
                if number:
                    self.buffer.current = number
                    self.more = _script(commands)
                    while (command := self.more()) is not None:
                        self.do(command if command.strip() or len(commands) > 1 else "p")
        finally:
            self.more, self.in_global = outer, False

    def do_inverse(self, place: Addresses, rest: str) -> None:
        self.do_global(place, rest, inverse=True)


def _script(commands: list[str]) -> Callable[[], str | None]:
    lines: Iterator[str] = iter(commands)
    return lambda: next(lines, None)
