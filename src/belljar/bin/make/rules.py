"""A makefile's rules and patterns for targets, and make's built-in rules."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass, field
from belljar.bin.make.variables import Scope


@dataclass(slots=True)
class Recipe:
    """The lines to run, as written."""

    lines: list[str] = field(default_factory=list)
    where: str = ""
    """`Makefile:3` of the first line."""
    numbers: list[int] = field(default_factory=list)
    file: str = ""


@dataclass(slots=True)
class Target:
    """A file that was named: what it needs, and how it is made."""

    name: str
    prerequisites: list[str] = field(default_factory=list)
    order_only: list[str] = field(default_factory=list)
    recipe: Recipe | None = None
    stem: str = ""
    double: list[Target] = field(default_factory=list)
    """For a double-colon target: its rules, each on its own."""
    phony: bool = False
    is_target: bool = False
    later: list[str] = field(default_factory=list)
    """Prerequisites to be expanded a second time."""
    group: list[str] = field(default_factory=list)
    """Targets that the same recipe makes with it."""
    scope: Scope = field(default_factory=Scope)


@dataclass(slots=True)
class Pattern:
    """An implicit rule."""

    targets: list[str]
    prerequisites: list[str]
    order_only: list[str]
    recipe: Recipe | None
    terminal: bool = False
    builtin: bool = False


SUFFIXES = (
    ".out .a .ln .o .c .cc .C .cpp .p .f .F "
    ".m .r .y .l .ym .yl .s .S .mod .sym .def .h .info .dvi .tex .texinfo .texi .txinfo .w .ch .web .sh .elc .el"
)

DEFAULTS = {
    "AR": "ar", "ARFLAGS": "rv", "AS": "as", "CC": "cc", "CXX": "g++", "CPP": "$(CC) -E", "FC": "f77", "LD": "ld",
    "LEX": "lex", "YACC": "yacc", "RM": "rm -f", "OUTPUT_OPTION": "-o $@", "SHELL": "/bin/sh", ".SHELLFLAGS": "-c",
    "COMPILE.c": "$(CC) $(CFLAGS) $(CPPFLAGS) $(TARGET_ARCH) -c",
    "COMPILE.cc": "$(CXX) $(CXXFLAGS) $(CPPFLAGS) $(TARGET_ARCH) -c", "COMPILE.cpp": "$(COMPILE.cc)",
    "COMPILE.C": "$(COMPILE.cc)", "COMPILE.s": "$(AS) $(ASFLAGS) $(TARGET_MACH)",
    "LINK.o": "$(CC) $(LDFLAGS) $(TARGET_ARCH)", "LINK.c": "$(CC) $(CFLAGS) $(CPPFLAGS) $(LDFLAGS) $(TARGET_ARCH)",
    "LINK.cc": "$(CXX) $(CXXFLAGS) $(CPPFLAGS) $(LDFLAGS) $(TARGET_ARCH)", "LINK.cpp": "$(LINK.cc)",
    "LINK.C": "$(LINK.cc)", ".LIBPATTERNS": "lib%.so lib%.a", "SUFFIXES": SUFFIXES, ".RECIPEPREFIX": "",
    "MAKE": "$(MAKE_COMMAND)", "MAKE_COMMAND": "make", "MAKE_VERSION": "4.3", "MAKE_HOST": "x86_64-pc-linux-gnu",
    ".FEATURES": "target-specific order-only second-expansion else-if shortest-stem undefine oneshell",
}  # fmt: skip

_BUILTIN = (
    ("%.o", "%.c", "$(COMPILE.c) $(OUTPUT_OPTION) $<"),
    ("%.o", "%.cc", "$(COMPILE.cc) $(OUTPUT_OPTION) $<"),
    ("%.o", "%.cpp", "$(COMPILE.cpp) $(OUTPUT_OPTION) $<"),
    ("%.o", "%.C", "$(COMPILE.C) $(OUTPUT_OPTION) $<"),
    ("%.o", "%.s", "$(COMPILE.s) -o $@ $<"),
    ("%", "%.o", "$(LINK.o) $^ $(LOADLIBES) $(LDLIBS) -o $@"),
    ("%", "%.c", "$(LINK.c) $^ $(LOADLIBES) $(LDLIBS) -o $@"),
    ("%", "%.cc", "$(LINK.cc) $^ $(LOADLIBES) $(LDLIBS) -o $@"),
    ("%", "%.cpp", "$(LINK.cpp) $^ $(LOADLIBES) $(LDLIBS) -o $@"),
    ("%", "%.sh", "cat $< >$@ \n chmod a+x $@"),
)


def builtin_patterns() -> list[Pattern]:
    rules = []
    for target, source, command in _BUILTIN:
        lines = [line.strip() for line in command.split("\n")]
        recipe = Recipe(lines, "<builtin>", [0] * len(lines), "<builtin>")
        rules.append(Pattern([target], [source], [], recipe, builtin=True))
    return rules
