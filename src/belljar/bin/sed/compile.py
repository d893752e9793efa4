"""Turns the commands of a script into closures over a machine."""

from __future__ import annotations

from collections.abc import Callable

from belljar.bin.sed.listing import listed
from belljar.bin.sed.machine import DELETE, END, QUIT, QUIT_SILENTLY, RESTART, Machine, Operation, Range
from belljar.bin.sed.script import Address, Command, Last, LineNumber, Multiple, Pattern, Plus, Script, Step
from belljar.bin.sed.substitute import quick_replacer, replacer
from belljar.regex import Regex

Condition = Callable[[], bool]


def compile_script(script: Script, machine: Machine) -> list[Operation]:
    tracks = any(_uses_last_regex(command) for command in script.commands)
    return [_Compiler(machine, command, tracks).operation() for command in script.commands]


def _uses_last_regex(command: Command) -> bool:
    if command.substitution is not None and command.substitution.regex is None:
        return True
    return any(isinstance(one, Pattern) and one.regex is None for one in (command.first, command.second))


class _Compiler:
    """One command. `tracks`: the script has an empty regex, so the last one used must be known."""

    def __init__(self, machine: Machine, command: Command, tracks: bool) -> None:
        self.machine = machine
        self.command = command
        self.tracks = tracks
        self.range: Range | None = None

    def operation(self) -> Operation:
        command = self.command
        if command.name == "r" and command.first == LineNumber(0) and command.second is None:
            self.machine.preludes.append(command.filename)
            return lambda: None
        condition = self.condition()
        if condition is not None and command.negated:
            wanted = condition
            condition = lambda: not wanted()  # noqa: E731
        if command.name == "{":
            target = command.target
            if condition is None:
                never = command.negated
                return lambda: target if never else None
            accept = condition
            return lambda: None if accept() else target
        body = self.body()
        if condition is None:
            return body if not command.negated else (lambda: None)
        accept = condition
        return lambda: body() if accept() else None

    # -- addresses

    def condition(self) -> Condition | None:
        first, second = self.command.first, self.command.second
        if first is None:
            return None
        if second is None:
            return self.single(first)
        return self.between(first, second)

    def single(self, address: Address) -> Condition:
        machine = self.machine
        match address:
            case LineNumber(number=number):
                return lambda: machine.number == number
            case Step(first=first, step=step):
                return lambda: machine.number >= first and (machine.number - first) % step == 0
            case Last():
                return machine.is_last
            case Pattern(regex=regex):
                return self.matching(regex)
            case _:
                raise AssertionError(address)

    def matching(self, regex: Regex | None) -> Condition:
        machine = self.machine
        if regex is None or self.tracks:
            return lambda: machine.regex(regex).search(machine.space) is not None
        compiled, anything = regex.quick, regex.traits.ascii_exact
        if compiled is None:
            return lambda: regex.search(machine.space) is not None
        search = compiled.search
        if anything:
            return lambda: search(machine.space) is not None

        def matches() -> bool:
            space = machine.space
            return (search(space) if space.isascii() else regex.search(space)) is not None

        return matches

    def between(self, first: Address, second: Address) -> Condition:
        machine = self.machine
        state = Range(from_start=first == LineNumber(0))
        machine.ranges.append(state)
        self.range = state
        starts = self.single(first) if not isinstance(first, LineNumber) else self.reached(first.number, second, state)
        ends = self.single(second) if isinstance(second, Pattern | Last | Step) else None

        def last_line() -> int:
            """Return where a range that starts here ends, if that is known."""
            number = machine.number
            match second:
                case LineNumber(number=end):
                    return end
                case Plus(count=count):
                    return number + count
                case Multiple(of=of):
                    return number if of == 0 else number + of - number % of
                case _:
                    return -1

        def inside() -> bool:
            if not state.active:
                if not starts():
                    return False
                if ends is None:
                    state.end = last_line()
                    state.active = state.end > machine.number
                    state.closed = not state.active
                else:
                    state.active = not (isinstance(second, Last) and machine.is_last())
                return True
            if ends is not None:
                if ends():
                    state.active = False
                    state.closed = True
                return True
            number = machine.number
            if number >= state.end:
                state.active = False
                state.closed = True
            # past the end because lines were skipped: only a given line number is taken at its word
            return number <= state.end or not isinstance(second, LineNumber)

        return inside

    def reached(self, number: int, second: Address, state: Range) -> Condition:
        """A range from a line number on also starts after it, if that line did not come by here."""
        machine = self.machine
        end = second.number if isinstance(second, LineNumber) else None

        def starts() -> bool:
            line = machine.number
            if line == number:
                return True
            return not state.closed and line > number and (end is None or line <= end)

        return starts

    # -- commands

    def body(self) -> Operation:
        command = self.command
        special = {
            "s": self.substitute,
            "y": self.transliterate,
            "c": self.change,
            "b": self.branch,
            "t": self.branch_if,
            "T": self.branch_unless,
            "q": self.quit,
            "Q": self.quit_silently,
            "r": self.queue_file,
            "R": self.queue_line,
            "w": self.write,
            "W": self.write_first,
            "l": self.list,
        }
        if command.name in special:
            return special[command.name]()
        if command.name in "ai":
            return self.insert()
        return _simple(self.machine, command.name)

    def substitute(self) -> Operation:
        machine, substitution = self.machine, self.command.substitution
        assert substitution is not None
        replace = replacer(substitution)
        given, prints = substitution.regex, substitution.prints
        target = machine.writer_for(substitution.filename) if substitution.filename else None
        plain = not prints and target is None

        def full() -> None:
            result = replace(machine.regex(given), machine.space)
            if result is None:
                return
            machine.process.budget.charge_size(len(result))
            machine.space = result
            machine.replaced = True
            if prints:
                machine.out.line(machine.space, machine.end)
            if target is not None:
                target.line(machine.space, machine.end)

        quick = quick_replacer(substitution, given) if given is not None and plain and not self.tracks else None
        if quick is None or given is None:
            return full
        anything = given.traits.ascii_exact
        limit = machine.process.budget.limits.expansion_bytes // 2

        def short() -> None:
            space = machine.space
            if (not anything and not space.isascii()) or len(space) > 8192:
                full()
                return
            result, count = quick(space)
            if count:
                if len(result) > limit:
                    machine.process.budget.charge_size(len(result))
                machine.space = result
                machine.replaced = True

        return short

    def transliterate(self) -> Operation:
        machine, mapping = self.machine, self.command.mapping
        pairs = {ord(old): ord(new) for old, new in mapping.items()}
        utf8 = not mapping or max(map(ord, mapping)) > 255 or any(ord(c) > 127 for c in (*mapping, *mapping.values()))
        if not utf8:
            table = bytes(pairs.get(code, code) for code in range(256))

            def bytewise() -> None:
                machine.space = machine.space.translate(table)

            return bytewise

        def textual() -> None:
            text = machine.space.decode("utf-8", "surrogateescape").translate(pairs)
            machine.space = text.encode("utf-8", "surrogateescape")

        return textual

    def insert(self) -> Operation:
        machine, text = self.machine, self.command.text
        if self.command.name == "i":
            shown = text[:-1] + machine.separator if text else b""
            return lambda: machine.out.raw(shown)
        return lambda: machine.appends.append(("a", text))

    def change(self) -> Operation:
        machine, negated, state = self.machine, self.command.negated, self.range
        text = self.command.text[:-1] + machine.separator if self.command.text else b""

        def change() -> int:
            if state is None or negated or not state.active:
                machine.out.raw(text)
            return DELETE

        return change

    def branch(self) -> Operation:
        target, charge = self.command.target, self.machine.process.budget.charge

        def branch() -> int:
            charge()
            return target

        return branch

    def branch_if(self) -> Operation:
        machine, target, charge = self.machine, self.command.target, self.machine.process.budget.charge

        def branch() -> int | None:
            if not machine.replaced:
                return None
            machine.replaced = False
            charge()
            return target

        return branch

    def branch_unless(self) -> Operation:
        machine, target, charge = self.machine, self.command.target, self.machine.process.budget.charge

        def branch() -> int | None:
            if machine.replaced:
                machine.replaced = False
                return None
            charge()
            return target

        return branch

    def quit(self) -> Operation:
        machine, code = self.machine, self.command.number or 0

        def leave() -> int:
            machine.exit_code = code & 0xFF
            return QUIT

        return leave

    def quit_silently(self) -> Operation:
        machine, code = self.machine, self.command.number or 0

        def leave() -> int:
            machine.exit_code = code & 0xFF
            return QUIT_SILENTLY

        return leave

    def queue_file(self) -> Operation:
        machine, name = self.machine, self.command.filename
        return lambda: machine.appends.append(("r", name))

    def queue_line(self) -> Operation:
        machine, name = self.machine, self.command.filename
        return lambda: machine.line_from(name)

    def write(self) -> Operation:
        machine, target = self.machine, self.machine.writer_for(self.command.filename)
        return lambda: target.line(machine.space, machine.end)

    def write_first(self) -> Operation:
        machine, target = self.machine, self.machine.writer_for(self.command.filename)
        return lambda: target.line(machine.space.partition(machine.separator)[0], machine.separator)

    def list(self) -> Operation:
        machine, number = self.machine, self.command.number
        width = machine.settings.line_length if number is None else number
        return lambda: machine.out.raw(listed(machine.space, width) + machine.separator)


def _simple(machine: Machine, name: str) -> Operation:
    """The commands without an argument."""

    def number_line() -> None:
        machine.out.raw(b"%d%b" % (machine.number, machine.separator))

    def delete_first() -> int:
        _, found, rest = machine.space.partition(machine.separator)
        if not found:
            return DELETE
        machine.space = rest
        machine.process.budget.charge()
        return RESTART

    def show_name() -> None:
        machine.out.raw(machine.file_name.encode("utf-8", "surrogateescape") + b"\n")

    def get() -> None:
        machine.space, machine.end = machine.hold, machine.hold_end

    def get_more() -> None:
        machine.pattern_space.append(machine.separator, machine.hold, machine.process.budget)
        machine.end = machine.hold_end

    def hold() -> None:
        machine.hold, machine.hold_end = machine.space, machine.end

    def hold_more() -> None:
        machine.hold_space.append(machine.separator, machine.space, machine.process.budget)
        machine.hold_end = machine.end

    def next_line() -> int | None:
        if not machine.has_next():
            return DELETE if machine.settings.posix and machine.quiet else END
        if not machine.quiet:
            machine.out.line(machine.space, machine.end)
        if machine.appends:
            machine.flush_appends()
        machine.space = machine.take() or b""
        return None

    def append_line() -> int | None:
        if not machine.has_next():
            return DELETE if machine.settings.posix else END
        if machine.appends:
            machine.flush_appends()
        line = machine.take() or b""
        machine.pattern_space.append(machine.separator, line, machine.process.budget)
        return None

    def show() -> None:
        machine.out.line(machine.space, machine.end)

    def show_first() -> None:
        first, found, _ = machine.space.partition(machine.separator)
        machine.out.line(first, found or machine.end)

    def exchange() -> None:
        machine.pattern_space, machine.hold_space = machine.hold_space, machine.pattern_space
        machine.end, machine.hold_end = machine.hold_end, machine.end

    def zap() -> None:
        machine.space = b""

    operations: dict[str, Operation] = {
        "=": number_line,
        "d": lambda: DELETE,
        "D": delete_first,
        "F": show_name,
        "g": get,
        "G": get_more,
        "h": hold,
        "H": hold_more,
        "n": next_line,
        "N": append_line,
        "p": show,
        "P": show_first,
        "x": exchange,
        "z": zap,
    }
    return operations[name]
