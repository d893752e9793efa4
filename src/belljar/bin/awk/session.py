"""Runs one awk command line against a world: parse, compile, run, report."""

from __future__ import annotations

import re
from functools import lru_cache

from belljar.abi.errors import SysError
from belljar.bin.awk import nodes as n
from belljar.bin.awk.command import USAGE, CommandLine, Usage, parse_command
from belljar.bin.awk.compile import compile_program
from belljar.bin.awk.errors import AwkFatal, AwkSyntaxError
from belljar.bin.awk.inplace import edit_in_place
from belljar.bin.awk.io import World
from belljar.bin.awk.parse import parse_program
from belljar.bin.awk.run import run_program
from belljar.bin.awk.runtime import Runtime
from belljar.bin.awk.values import strnum

VERSION = "GNU Awk 5.2.1, API 3.2, PMA Avon 8-g1, (belljar)"


@lru_cache(maxsize=64)
def _parse_text(text: str, program: str, strict: bool, byte_locale: bool) -> tuple[n.Program, list[str]]:
    """Most programs are one text given again and again; the tree is never changed after parsing."""
    return parse_program([(text, "cmd. line")], program, _no_include, strict=strict, byte_locale=byte_locale)


def _no_include(_name: str) -> tuple[str, str]:
    raise AssertionError("programs with @include are not cached")


class Session:
    """One run of awk."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.encoding = "utf-8"

    def run(self, args: list[str]) -> int:
        """The exit status. BudgetExceeded and the end of the process pass through."""
        stderr = self.world.descriptor_sink(2)
        try:
            command = parse_command(args, self.name)
        except Usage as usage:
            stderr.write((str(usage) + USAGE.format(self.name)).encode("utf-8", "surrogateescape"))
            return 1
        if command.flags & {"help", "version"}:
            text = USAGE.format(self.name) if "help" in command.flags else VERSION + "\n"
            self.world.descriptor_sink(1).write(text.encode())
            return 0
        try:
            return self._run(command)
        except AwkSyntaxError as error:
            stderr.write(error.report.encode("utf-8", "surrogateescape"))
            return 1 if ": fatal: " not in error.report else 2

    def _run(self, command: CommandLine) -> int:
        if self._byte_locale(command):
            self.encoding = "latin-1"
        tree, warnings = self._parse(command)
        runtime = Runtime(
            self.world,
            self.name,
            self.encoding,
            posix="posix" in command.flags,
            csv="csv" in command.flags,
        )
        first_file = next((value for kind, value in command.sources if kind == "file"), None)
        if first_file is not None:
            runtime.where = first_file
        for warning in warnings:
            runtime.streams.stderr.write(warning)
        try:
            self._prepare(runtime, command)
            given = [*command.assignments, *command.operands]
            program = compile_program(tree, runtime, any(item.startswith("IGNORECASE=") for item in given))
            if ("include", "inplace") in command.sources:
                edit_in_place(runtime)
            run_program(program, runtime)
        except AwkFatal as fatal:
            return self._fail(runtime, fatal)
        except RecursionError:
            return self._fail(runtime, AwkFatal("function calls nested too deeply"))
        return runtime.exit_status

    def _fail(self, runtime: Runtime, fatal: AwkFatal) -> int:
        report = f"{runtime.prefix(fatal.line)}{fatal.kind}: {fatal.message}\n"
        try:
            runtime.streams.stdout.flush()
            runtime.streams.stderr.write(report)
            runtime.streams.close_all()
        except AwkFatal:
            # The output is what failed: it has been reported, and there is nowhere else to write.
            runtime.streams.stdout.parts = []
        return 1 if fatal.kind == "error" and "division" not in fatal.message else 2

    def _byte_locale(self, command: CommandLine) -> bool:
        if "characters-as-bytes" in command.flags:
            return True
        for name in ("LC_ALL", "LC_CTYPE", "LANG"):
            if value := self.world.environment.get(name):
                return value in ("C", "POSIX")
        return False

    def _localised(self, text: str) -> str:
        """Command-line text with one character for each character of the locale."""
        if self.encoding == "utf-8" or text.isascii():
            return text
        return text.encode("utf-8", "surrogateescape").decode(self.encoding)

    # -- sources ------------------------------------------------------------------------------------------------

    def _parse(self, command: CommandLine) -> tuple[n.Program, list[str]]:
        strict = bool(command.flags & {"posix", "traditional"})
        byte_locale = self.encoding != "utf-8"
        if len(command.sources) == 1 and command.sources[0][0] == "text" and "@include" not in command.sources[0][1]:
            return _parse_text(self._localised(command.sources[0][1]), self.name, strict, byte_locale)
        sources: list[tuple[str, str]] = []
        for kind, value in command.sources:
            if kind == "text":
                sources.append((self._localised(value), "cmd. line"))
            elif kind == "load":
                raise AwkSyntaxError(f"{self.name}: fatal: cannot open shared library `{value}' for reading\n")
            elif (kind, value) != ("include", "inplace"):
                sources.append(self._read_source(value))
        return parse_program(sources, self.name, self._read_source, strict=strict, byte_locale=byte_locale)

    def _read_source(self, name: str) -> tuple[str, str]:
        world = self.world
        candidates = [name]
        if "/" not in name and name != "-":
            path = world.environment.get("AWKPATH", ".:/usr/share/awk")
            candidates = [f"{folder or '.'}/{name}" if folder not in ("", ".") else name for folder in path.split(":")]
            candidates += [candidate + ".awk" for candidate in candidates]
        failure: SysError | None = None
        for candidate in candidates:
            try:
                source = world.descriptor_source(0) if name in ("-", "/dev/stdin") else world.open_source(candidate)
                parts: list[bytes] = []
                total = 0
                while data := source.read(1 << 18):
                    total += len(data)
                    world.charge_size(total)
                    parts.append(data)
                source.close()
            except SysError as error:
                failure = failure or error
                continue
            text = b"".join(parts).decode(self.encoding, "surrogateescape")
            return (text if not text.startswith("#!") else "#" + text), candidate
        assert failure is not None
        raise AwkSyntaxError(f"{self.name}: fatal: cannot open source file `{name}' for reading: {failure.reason}\n")

    # -- variables ----------------------------------------------------------------------------------------------

    def _prepare(self, runtime: Runtime, command: CommandLine) -> None:
        arguments = runtime.array("ARGV")
        arguments["0"] = self.name
        for number, operand in enumerate(command.operands, 1):
            arguments[str(number)] = strnum(self._localised(operand))
        runtime.cell("ARGC")[0] = float(len(command.operands) + 1)
        if command.separator is not None:
            runtime.assign("FS", self._localised(command.separator))
        for assignment in command.assignments:
            name, equals, value = assignment.partition("=")
            if not equals:
                raise AwkFatal(f"`{assignment}' argument to `-v' not in `var=value' form")
            if not _NAME.fullmatch(name):
                raise AwkFatal(f"`{name}' is not a legal variable name")
            runtime.assign(name, self._localised(value))


_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?:::[A-Za-z_][A-Za-z_0-9]*)?")
