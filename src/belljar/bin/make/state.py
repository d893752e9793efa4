"""One run of make: variables, targets and rules as read so far, and what its parts need of one another."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin.make.functions import Functions
from belljar.bin.make.rules import DEFAULTS, SUFFIXES, Pattern, Target, builtin_patterns
from belljar.bin.make.variables import Expander, MakeError, Origin, Scope, Variable
from belljar.kernel.process import Process
from belljar.kernel.status import ExitStatus


@dataclass(slots=True)
class Switches:
    """The options of a command line."""

    files: list[str] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)
    includes: list[str] = field(default_factory=list)
    goals: list[str] = field(default_factory=list)
    assignments: list[str] = field(default_factory=list)
    evals: list[str] = field(default_factory=list)
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    dry_run: bool = False
    always: bool = False
    keep_going: bool = False
    silent: bool = False
    question: bool = False
    touch: bool = False
    ignore_errors: bool = False
    environment: bool = False
    no_rules: bool = False
    no_variables: bool = False
    print_directory: bool | None = None
    trace: bool = False
    warn_undefined: bool = False
    print_database: bool = False
    jobs: str | None = None


class State:
    def __init__(self, process: Process, switches: Switches) -> None:
        self.process = process
        self.switches = switches
        self.level = _number(process.env.get("MAKELEVEL", "0"))
        self.scope = Scope()
        """The global variables."""
        self.targets: dict[str, Target] = {}
        self.patterns: list[Pattern] = []
        self.pattern_scopes: list[tuple[str, Scope]] = []
        self.suffixes: list[str] = SUFFIXES.split() if not switches.no_rules else []
        self.vpaths: list[tuple[str, list[str]]] = []
        self.exported: dict[str, bool] = {}
        self.export_all = False
        self.goal = ""
        self.makefiles: list[str] = []
        self.missing: list[tuple[str, str, str]] = []
        """Includes that were not there: the name, where, and the reason."""
        self.where = ""
        self.second_expansion = False
        self.default: Target | None = None
        self.specials: dict[str, set[str]] = {}
        """.PRECIOUS, .SILENT ...: what each names."""
        self.expander = Expander(self)
        self.functions = Functions(self)
        if not switches.no_variables:
            for name, text in DEFAULTS.items():
                self.scope.variables[name] = Variable(text, False, Origin.DEFAULT)
        for name, text in process.env.items():
            origin = Origin.ENVIRONMENT_OVERRIDE if switches.environment else Origin.ENVIRONMENT
            if name not in ("SHELL", "MAKEFLAGS", "MAKELEVEL"):
                self.scope.variables[name] = Variable(text.replace("$", "$$"), False, origin)
        self._simple("MAKELEVEL", str(self.level), Origin.ENVIRONMENT)
        self._simple("CURDIR", process.fs.getcwd(), Origin.FILE)
        self._simple("MAKECMDGOALS", " ".join(switches.goals), Origin.FILE)
        self._simple("MAKEFLAGS", "", Origin.FILE)
        self._simple("MAKEFILE_LIST", "", Origin.FILE)

    def _simple(self, name: str, text: str, origin: Origin) -> None:
        self.scope.variables[name] = Variable(text, True, origin)

    @property
    def builtin(self) -> list[Pattern]:
        return [] if self.switches.no_rules else builtin_patterns()

    def target(self, name: str) -> Target:
        """The target of that name, known from now on."""
        found = self.targets.get(name)
        if found is None:
            self.process.budget.charge_size(len(self.targets) * 200)
            found = self.targets[name] = Target(name)
            found.scope.outer = self.scope
        return found

    def special(self, name: str, target: str) -> bool:
        """Whether .SILENT, .PRECIOUS ... is said of a target, or of all."""
        names = self.specials.get(name)
        return names is not None and (not names or target in names)

    def expand(self, text: str, scope: Scope | None = None) -> str:
        return self.expander.expand(text, scope or self.scope)

    def evaluate(self, text: str) -> None:
        """Read text as if it stood in the makefile."""
        from belljar.bin.make.read import Reader  # the reader needs the state, and $(eval) the reader

        Reader(self, self.where.rpartition(":")[0]).read_text(text, fixed_where=self.where)

    def define(
        self, scope: Scope, name: str, operator: str, text: str, origin: Origin = Origin.FILE, *, local: bool = False
    ) -> None:
        """One assignment. An older one of a stronger origin stays."""
        name = name.strip()
        if not name:
            raise MakeError("empty variable name", self.where)
        old = scope.variables.get(name)
        seen = old if old is not None or not local else scope.find(name)
        if old is not None and old.origin > origin:
            return
        if local and seen is not None and seen.origin > origin:
            return
        match operator:
            case "=":
                made = Variable(text, False, origin, self.where)
            case ":=" | "::=" | ":::=":
                made = Variable(self.expand(text, scope), True, origin, self.where)
            case "?=":
                if seen is not None:
                    return
                made = Variable(text, False, origin, self.where)
            case "!=":
                made = Variable(self.shell(self.expand(text, scope)), False, origin, self.where)
            case _:
                if old is None:
                    made = Variable(text, False, origin, self.where, append=local)
                else:
                    more = self.expand(text, scope) if old.simple else text
                    value = f"{old.value} {more}" if old.value else more
                    self.process.budget.charge_size(len(value))
                    made = Variable(value, old.simple, max(origin, old.origin), self.where, old.append)
        scope.variables[name] = made
        if name == ".DEFAULT_GOAL" and scope is self.scope:
            self.goal = self.expand(made.value)

    def environment(self, scope: Scope) -> dict[str, str]:
        """Return the environment of a recipe's commands: the inherited one, with changed and exported variables."""
        env = dict(self.process.env)
        everything = self.export_all
        seen: set[str] = set()
        inner: Scope | None = scope
        while inner is not None:
            for name, variable in inner.variables.items():
                if name in seen:
                    continue
                seen.add(name)
                said = self.exported.get(name)
                if said is False:
                    env.pop(name, None)
                    continue
                wanted = said or variable.origin in (Origin.COMMAND_LINE,) or name in self.process.env
                if not wanted and everything:
                    wanted = variable.origin not in (Origin.DEFAULT, Origin.AUTOMATIC) and name.isidentifier()
                if wanted and name not in ("SHELL", "MAKEFLAGS", "MAKELEVEL"):
                    env[name] = self.expander.value(name, scope)
            inner = inner.outer
        env["MAKELEVEL"] = str(self.level + 1)
        env["MAKEFLAGS"] = self.expander.value("MAKEFLAGS", self.scope)
        env["MFLAGS"] = ("-" + env["MAKEFLAGS"]) if env["MAKEFLAGS"] and not env["MAKEFLAGS"].startswith(" ") else ""
        return env

    def shell(self, command: str) -> str:
        """$(shell ...): its output with newlines as spaces, the last ones gone."""
        process = self.process
        process.stdout.flush()
        reader, writer = process.pipe(cloexec=True)
        try:
            shell = self.expander.value("SHELL", self.scope) or "/bin/sh"
            flags = (self.expander.value(".SHELLFLAGS", self.scope) or "-c").split()
            env = {**process.env, "MAKELEVEL": str(self.level)}
            child = process.spawn([shell, *flags, command], env=env, stdout=process.fds[writer])
        except SysError as error:
            process.close(reader)
            process.error(f"{self.name}: {shell}: {error.reason}\n")
            self._simple(".SHELLSTATUS", "127", Origin.OVERRIDE)
            return ""
        finally:
            process.close(writer)
        output = process.read_to_end(reader)
        process.close(reader)
        status: ExitStatus = process.wait_for(child)
        self._simple(".SHELLSTATUS", str(status.shell), Origin.OVERRIDE)
        return fsdecode(output).rstrip("\n").replace("\n", " ")

    @property
    def name(self) -> str:
        """Return how make calls itself in messages."""
        return f"make[{self.level}]" if self.level else "make"


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 9 else 0
