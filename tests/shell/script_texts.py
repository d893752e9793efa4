# ruff: noqa: E501
"""Valid bash scripts as text, made by chance, for property tests of the parser and the printer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from hypothesis import strategies as st

NAMES = ["a", "foo", "x1", "_v"]

ATOMS = [
    "a", "foo", "-l", "12", "a/b.c", "*.c", "[a-z]?", "~", "~/x", "~me:~", "k=v", "k=~/v", "{a,b}", "{1..3}", "{x}",
    "a\\ b", "\\$", "\\\\", "'q q'", "''", '""', '"d d"', '"a\\"b\\$c\\d"', "$x", "$1", "$@", '"$*"', "$?", "$$", "$.",
    "${x}", "${10}", "${#}", "${#x}", "${#a[@]}", "${!x}", "${!pre*}", "${!pre@}", "${!a[@]}", "${!a[*]}",
    "${x@Q}", "${a[@]@A}", "${a[1+i]}", "${a[$i]}", '${a["k k"]}', "${a[@]:1:2}", "${x: -1}", "${x:$y:${#z}}",
    "${x:i?1:2:3}", "${x!bad}", "${}", "$((1 + x))", "$((a[$i]++ , b))", "$(( (1) ))", "$[ 1 + 2 ]", "`ls \\`a\\``",
    "@(a|b*)", "!(x)", "+([0-9])", "a#b", "é", "\udcff", "%", "a]",
]  # fmt: skip
OPERATORS = ["-", ":-", "=", ":=", "?", ":?", "+", ":+", "#", "##", "%", "%%", "^", "^^", ",", ",,", "/", "//"]
REDIRECTS = [
    "> f", ">> f", "< f", "2>&1", "2> f", ">| f", "<> f", "&> f", "&>> f", "<<< 's s'", "{fd}> f", "3<&-", "4>&5-", ">&$x",
]  # fmt: skip
COMMANDS = ["echo", "ls", "declare", "export", "eval", "[", "command", "x"]
SUBSCRIPTS = ["1", "i+1", "$k", '"a b"']
ARITHMETIC = ["x += 1", "a[i] ** 2", " $x > 3 && !y ", "i=0, j=1"]
HEREDOC = "cat <<E <<-'F'{}\nbody $x $(a) \\$\nE\n\tb\n\tF"


class ScriptMaker:
    """Makes text from choices: `choose(n)` gives a number below n."""

    def __init__(self, choose: Callable[[int], int], *, levels: int = 2, nested_heredocs: bool = True) -> None:
        self._choose = choose
        self._levels = levels
        self._top = levels - 1
        self._nested_heredocs = nested_heredocs

    def _pick(self, options: Sequence[str]) -> str:
        return options[self._choose(len(options))]

    def _some(self, make: Callable[[], str], least: int, most: int) -> list[str]:
        return [make() for _ in range(least + self._choose(most - least + 1))]

    # --- words ---

    def word(self) -> str:
        return "".join(self._some(self._part, 1, 3))

    def _plain(self) -> str:
        return "".join(self._some(lambda: self._pick(ATOMS), 1, 2))

    def _part(self) -> str:
        kind = self._choose(9)
        if kind == 0 and self._levels > 0:
            return f"$({self.body()}\n)"
        if kind == 1 and self._levels > 0:
            return f"<({self.body()}\n)"
        if kind == 2 and self._levels > 0:
            return f'"a $({self.body()}\n) b"'
        if kind == 3:
            return f"${{x{self._pick(OPERATORS)}{self._plain()}}}"
        if kind == 4:
            return f'"${{x{self._pick(OPERATORS)}{self._plain()}}}"'
        if kind == 5:
            pattern = self._pick(["a", "#a", "%'b'", '/"c"', "/$y"])
            return f"${{x/{pattern}/{self._plain()}}}"
        return self._pick(ATOMS)

    # --- commands ---

    def _assignment(self) -> str:
        name = self._pick(NAMES)
        kind = self._choose(4)
        if kind == 0:
            return f"{name}[{self._pick(SUBSCRIPTS)}]={self.word()}"
        if kind == 1:
            return f"{name}=({self.word()} [k]={self.word()}\n {self.word()})"
        return f"{name}{self._pick(['=', '+='])}{self.word()}"

    def _simple(self) -> str:
        pieces = self._some(self._assignment, 0, 2)
        pieces.append(self._pick(COMMANDS))
        pieces += self._some(self.word, 0, 3)
        return " ".join(pieces + self._some(lambda: self._pick(REDIRECTS), 0, 2))

    def _condition(self, levels: int) -> str:
        kind = self._choose(8 if levels else 4)
        if kind == 0:
            return f"{self._pick(['-n', '-f', '-v'])} {self.word()}"
        if kind == 1:
            return self._pick(["a =~ ^(b|c d)+$", "$x =~ [[:digit:]]\\.'q'", "x"])
        if kind < 4:
            return f"{self.word()} {self._pick(['==', '=', '!=', '-eq', '<', '>', '-nt'])} {self.word()}"
        if kind == 4:
            return f"! {self._condition(levels - 1)}"
        if kind == 5:
            return f"( {self._condition(levels - 1)} )"
        return f"{self._condition(levels - 1)} {self._pick(['&&', '||'])} {self._condition(levels - 1)}"

    def _compound(self) -> str:
        makers: list[Callable[[], str]] = [
            lambda: f"if {self.body()}\nthen {self.body()}\nfi",
            lambda: f"if {self.body()}\nthen {self.body()}\nelif {self.body()}\nthen a\nelse {self.body()}\nfi",
            lambda: f"{self._pick(['while', 'until'])} {self.body()}\ndo {self.body()}\ndone",
            lambda: f"for {self._pick(NAMES)} in {self.word()} {self.word()}; do {self.body()}\ndone",
            lambda: f"{self._pick(['for', 'select'])} {self._pick(NAMES)}; do {self.body()}\ndone",
            lambda: f"for (({self._pick(ARITHMETIC)};{self._pick(ARITHMETIC)};)); do {self.body()}\ndone",
            lambda: f"case {self.word()} in {self.word()}|b) {self.body()}\n;; ({self.word()}) a;& *) ;;& z) esac",
            lambda: f"{{ {self.body()}\n}}",
            lambda: f"( {self.body()}\n)",
            lambda: f"(({self._pick(ARITHMETIC)}))",
            lambda: f"[[ {self._condition(2)} ]]",
            lambda: f"{self._pick(NAMES)} () {{ {self.body()}\n}}",
            lambda: f"function {self._pick(NAMES)} {{ {self.body()}\n}} > f",
            lambda: f"coproc {self._pick(NAMES)} {{ {self.body()}\n}}",
        ]
        return makers[self._choose(len(makers))]() + self._pick(["", "", " > f", " 2>&1 < g"])

    def _command(self) -> str:
        if self._levels <= 0 or self._choose(2):
            return self._simple()
        return self._compound()

    def _pipeline(self) -> str:
        prefix = self._pick(["", "", "", "! ", "time ", "time -p ! "])
        return prefix + self._pick([" | ", " |& ", " |\n"]).join(self._some(self._command, 1, 2))

    def _and_or(self) -> str:
        return self._pick([" && ", " ||\n"]).join(self._some(self._pipeline, 1, 2))

    def body(self) -> str:
        """A list of commands; a newline may follow it."""
        self._levels -= 1
        items = []
        for _ in range(1 + self._choose(3)):
            if self._choose(8) == 0 and (self._nested_heredocs or self._levels == self._top):
                after = ["", " | sort", " && b", "; b", " > f"] + [" &"] * self._nested_heredocs
                items.append(HEREDOC.format(self._pick(after)) + "\n")
            else:
                items.append(self._and_or() + self._pick(["\n", "; ", " & "]))
        self._levels += 1
        return "".join(items)


def scripts(*, nested_heredocs: bool = True) -> st.SearchStrategy[str]:
    """Whole scripts of a few commands; each is a seed's, as drawing every choice would take most of the time."""

    def make(seed: int) -> str:
        return ScriptMaker(Random(seed).randrange, levels=2, nested_heredocs=nested_heredocs).body() + "\n"

    return st.integers(0, 2**32).map(make)
