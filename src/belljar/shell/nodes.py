"""The syntax tree of bash 5.2: what the parser makes, the printer prints and the compiler compiles.

Every node is frozen. Line numbers (1-based) don't take part in `==`, so two trees are equal when they mean the same.

Quoting is kept in the tree, so the runtime derives it from the node's type:

* `Literal` is unquoted text: glob and pattern characters in it are active (`*?[`, and extended patterns such as
  `@(a|b)`, which are kept flat: `Literal("@(")`, parts..., `Literal("|")`, parts..., `Literal(")")`).
  Inside `DoubleQuoted`, `LocaleQuoted` or a here-document a `Literal` is quoted like all the rest there.
* `Escaped`, `SingleQuoted`, `AnsiQuoted` are quoted text; none of their characters is special.
* `Param`, `CommandSub`, `BackquoteSub`, `ArithSub` are split and globbed only where they aren't inside
  `DoubleQuoted`/`LocaleQuoted`/a here-document.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from msgspec import Struct


class Node(Struct, frozen=True):
    """Base of all nodes. Structs, because some 70 dataclasses would be a third of the time a shell takes to load."""

    aside: ClassVar[tuple[str, ...]] = ("line",)
    """Fields that don't take part in `==`."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def _compared(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__struct_fields__ if name not in self.aside)


# --- words ---------------------------------------------------------------------------------------------------------


class Word(Node, frozen=True):
    """One shell word: the concatenation of its parts (no parts: an empty unquoted word, as in `${x:-}`).

    `braces` is set when the text holds a valid brace expansion. The same text is then described twice: `parts` reads
    it without brace expansion (assignments, redirections under POSIX, `case`, `[[`, here-strings, `set +B`), `braces`
    as a sequence to expand.
    """

    parts: tuple[WordPart, ...]
    braces: BraceSequence | None = None


class Literal(Node, frozen=True):
    """Unquoted text (quoted when inside double quotes or a here-document)."""

    text: str


class Escaped(Node, frozen=True):
    """One character quoted by a backslash; in double quotes only `$`, a backquote, `"` and a backslash give this."""

    text: str


class SingleQuoted(Node, frozen=True):
    """'text', verbatim."""

    text: str


class AnsiQuoted(Node, frozen=True):
    r"""$'text', with its escapes already decoded; bytes above 0x7f that aren't UTF-8 are surrogate escapes.

    In the word of `${x#$'..'}` and the like it is quoted as everywhere. Bash prints it back as '...'.
    """

    text: str


class DoubleQuoted(Node, frozen=True):
    """Parts between double quotes: all but Tilde, ProcSub and the quoting kinds.

    `""` has no parts and still makes a word.
    """

    parts: tuple[WordPart, ...]


class LocaleQuoted(Node, frozen=True):
    """$"parts": a DoubleQuoted that would be translated; the C locale translates nothing."""

    parts: tuple[WordPart, ...]


class Tilde(Node, frozen=True):
    """An unquoted tilde prefix; `user` is the text after `~`: "", "+", "-", "+1", "-2", "3" or a login name.

    Made only where bash expands it: at a word's start, and after the `=` and each `:` of an assignment (or of an
    argument that looks like one, outside POSIX mode). When it can't be resolved it stands for its own text.
    """

    user: str


class CommandSub(Node, frozen=True):
    """$(body); `body` is None when it is empty. `$(< file)` is a body of one SimpleCommand with only that redirect.

    `source` is its text, kept where bash does: when it began like arithmetic, as in `$((a); b)`.
    """

    body: Command | None
    line: int = 0
    source: str | None = None
    aside = ("line", "source")


class BackquoteSub(Node, frozen=True):
    """`source`: bash parses it only when it runs, so a syntax error in it is a runtime error; parse `text` then.

    `source` is what stood between the backquotes, `text` is it with the backslashes removed as the context demands.
    """

    source: str
    text: str
    line: int = 0


class ProcSub(Node, frozen=True):
    """<(body) or >(body); `direction` is "<" or ">"."""

    direction: str
    body: Command | None
    line: int = 0
    source: str | None = None
    aside = ("line", "source")


class ArithSub(Node, frozen=True):
    """$((arith)), or $[arith] when `bracket`."""

    arith: Arith
    bracket: bool = False


class BadSubstitution(Node, frozen=True):
    """A `${...}` that means nothing: expanding it is the runtime error "`within`: bad substitution".

    `within` is the text it stands in: the whole word, or what its double quotes enclose; "" if that is `text` alone.
    """

    aside: ClassVar[tuple[str, ...]] = ("within",)

    text: str
    within: str = ""


# --- parameters ----------------------------------------------------------------------------------------------------


class AllElements(Node, frozen=True):
    """The subscript [@] or, when `joined`, [*]."""

    joined: bool


class Subscript(Node, frozen=True):
    """[text] of an array element: a key if the array is associative, else arithmetic; only the runtime knows.

    `word` is the key to expand (no splitting, no globbing), `arith` the index.
    """

    word: Word
    arith: Arith


Index: TypeAlias = "AllElements | Subscript"


class Param(Node, frozen=True):
    """$name, ${name}, ${name[index]}, ${!name...} (`indirect`) and each with an operator.

    `name` is an identifier, digits (no leading zeros removed), or one of `@ * # ? - $ ! _`.
    `${#x}` is Length. A name given by indirection has `index` belonging to the name before the indirection:
    `${!a[1]}` takes the value of a[1] as the name (itself possibly with a subscript) to expand.
    """

    name: str
    index: Index | None = None
    indirect: bool = False
    op: ParamOp | None = None
    braced: bool = False


class Length(Node, frozen=True):
    """${#name}, ${#name[@]}."""


class Default(Node, frozen=True):
    """${name-word} and its kin: `op` is "-", "=", "?" or "+"; `colon`: null counts as unset.

    Inside double quotes the parts of `word` are quoted: they follow the rules of double quotes (single quotes are
    literal) except that a nested `"..."` is a DoubleQuoted. Outside, they are ordinary unquoted parts.
    """

    op: str
    colon: bool
    word: Word


class Strip(Node, frozen=True):
    """${name#pattern}: `op` is "#", "##", "%" or "%%". The pattern's quoting is its own, even in double quotes."""

    op: str
    pattern: Word


class Replace(Node, frozen=True):
    """${name/pattern/replacement}: `mode` is "" (first), "/" (all), "#" (at start) or "%" (at end).

    `replacement` is None when there is no second slash. With `shopt patsub_replacement` (on by default) an unquoted
    `&` in the expanded replacement is the matched text.
    """

    mode: str
    pattern: Word
    replacement: Word | None


class ChangeCase(Node, frozen=True):
    """${name^pattern}: `op` is "^", "^^", ",", ",,", "~" or "~~"; no pattern means "?"."""

    op: str
    pattern: Word | None


class Slice(Node, frozen=True):
    """${name:offset:length}."""

    offset: Arith
    length: Arith | None


class Transform(Node, frozen=True):
    """${name@op}: `op` is one of Q E P A a K k U u L."""

    op: str


ParamOp: TypeAlias = "Length | Default | Strip | Replace | ChangeCase | Slice | Transform"


class ParamNames(Node, frozen=True):
    """${!prefix@} or, when `joined`, ${!prefix*}: the names of the variables that begin so."""

    prefix: str
    joined: bool


class ParamKeys(Node, frozen=True):
    """${!name[@]} or, when `joined`, ${!name[*]}: the keys of an array."""

    name: str
    joined: bool


WordPart: TypeAlias = (
    "Literal | Escaped | SingleQuoted | AnsiQuoted | DoubleQuoted | LocaleQuoted | Tilde"
    " | Param | ParamNames | ParamKeys | BadSubstitution | CommandSub | BackquoteSub | ProcSub | ArithSub"
)

# --- brace expansion -----------------------------------------------------------------------------------------------


class BraceSequence(Node, frozen=True):
    """A concatenation of word parts and brace expansions; expands to the product, leftmost varying slowest."""

    items: tuple[WordPart | BraceList | BraceRange, ...]


class BraceList(Node, frozen=True):
    """{a,b,c}: at least two alternatives."""

    alternatives: tuple[BraceSequence, ...]


class BraceRange(Node, frozen=True):
    """{first..last..step}, on numbers or on single characters (ASCII letters).

    For numbers `width` > 0 asks for zero padding to that many characters, sign included. `step` is as written or 0
    when absent; its sign doesn't matter, the direction is from first to last, and 0 means 1. For characters `first`
    and `last` are code points and `letters` is set.
    """

    first: int
    last: int
    step: int
    width: int = 0
    letters: bool = False


# --- arithmetic ----------------------------------------------------------------------------------------------------


class Arith(Node, frozen=True):
    """An arithmetic expression: `source` is what bash expands (as if double-quoted) and then parses.

    `expr` is the tree when the text could be parsed before expansion. It is exact when it holds no ArithSubst.
    An ArithSubst leaf stands for an expansion such as `$i`: the tree may be used as long as each leaf expands to a
    plain decimal constant (`0` or `[1-9][0-9]*`); for anything else expand `source` and call `parse_arith`.
    `expr` None: always expand, then parse (or, if there is nothing to expand, report the syntax error at run time).
    `nested`: it is the subscript of a variable in another expression, so what its expansions give can't be a subscript.
    """

    source: Word
    expr: ArithNode | None
    nested: bool = False


class ArithNumber(Node, frozen=True):
    """An integer constant, already reduced to 64 bits two's complement."""

    value: int


class ArithSubst(Node, frozen=True):
    """A `$`-expansion or command substitution that stands alone where an operand may stand."""

    part: WordPart


class ArithVariable(Node, frozen=True):
    """name or name[index]; a name's value is itself evaluated as an expression."""

    name: str
    index: Index | None = None


class ArithUnary(Node, frozen=True):
    """`op` is "+", "-", "!" or "~"."""

    op: str
    operand: ArithNode


class ArithIncrement(Node, frozen=True):
    """++x, --x, x++, x--: `delta` is 1 or -1; `prefix` gives the new value."""

    target: ArithVariable
    delta: int
    prefix: bool


class ArithBinary(Node, frozen=True):
    """`op`: ** * / % + - << >> < <= > >= == != & ^ | && || and the comma.

    The left spine of a long sum may be thousands deep (walk it with a loop); the parser bounds all other nesting.
    """

    op: str
    left: ArithNode
    right: ArithNode


class ArithConditional(Node, frozen=True):
    """test ? then : otherwise; only one branch is evaluated."""

    test: ArithNode
    then: ArithNode
    otherwise: ArithNode


class ArithAssign(Node, frozen=True):
    """target = value; `op` is "" for `=`, else the binary operator of `op=`."""

    op: str
    target: ArithVariable
    value: ArithNode


ArithNode: TypeAlias = (
    "ArithNumber | ArithSubst | ArithVariable | ArithUnary | ArithIncrement | ArithBinary"
    " | ArithConditional | ArithAssign"
)

# --- assignments and redirections ----------------------------------------------------------------------------------


class ArrayElement(Node, frozen=True):
    """One element of a=(...): `[index]=value`, `[index]+=value`, or a plain word (`index` None) to expand fully."""

    index: Index | None
    append: bool
    value: Word


class ArrayLiteral(Node, frozen=True):
    """(...) on the right of an assignment."""

    elements: tuple[ArrayElement, ...]


class Assignment(Node, frozen=True):
    """name=value, name[index]+=value, name=(...). `value` has its Tilde parts after `=` and `:` already made."""

    name: str
    index: Index | None
    append: bool
    value: Word | ArrayLiteral
    line: int = 0


class FdVariable(Node, frozen=True):
    """{name} or {name[index]} before a redirection operator: the shell picks the descriptor and stores it there."""

    name: str
    index: Index | None = None


class FileRedirect(Node, frozen=True):
    """`op` is one of `< > >> >| <> &> &>> <<< <& >&`; `<<<` is a here-string.

    `fd` is filled in with the operator's default where none is written (1 for `&>`). For `<&` and `>&` the expanded
    target is "-" (close), digits (dup), digits and "-" (move), or else: for `>&` with `fd` 1 a file, as for `&>`;
    otherwise an "ambiguous redirect". Closing, where plain in the source, is always `>&` with the target "-".
    """

    op: str
    fd: int | FdVariable
    target: Word
    line: int = 0


class HereDoc(Node, frozen=True):
    """<<delimiter. `text` is the body as read, without the delimiter line and the tabs that `<<-` removes.

    `quoted`: `body` is that text as one Literal, not to be expanded; else its parts are those of double quotes (with
    `"` an ordinary character).
    """

    fd: int | FdVariable
    delimiter: str
    quoted: bool
    strip_tabs: bool
    text: str
    body: Word
    line: int = 0


Redirect: TypeAlias = "FileRedirect | HereDoc"

# --- commands ------------------------------------------------------------------------------------------------------


class SimpleCommand(Node, frozen=True):
    """Assignments, then words, with redirections anywhere among them (kept in their order).

    In `words` an Assignment stands for an argument `name=value` of a declaration builtin (declare, typeset, local,
    export, readonly; also behind `command`/`builtin`): its value is neither split nor globbed and may be an array.
    """

    assignments: tuple[Assignment, ...]
    words: tuple[Word | Assignment, ...]
    redirects: tuple[Redirect, ...] = ()
    line: int = 0


class Pipeline(Node, frozen=True):
    """[time [-p]] [!] command | command ...; made only if there is something to say (else the bare command stands).

    `a |& b` is parsed as `a 2>&1 | b`, as bash does. `time` alone has no commands; `!` alone neither.
    """

    commands: tuple[Command, ...]
    negated: bool = False
    timed: bool = False
    posix_time: bool = False
    line: int = 0


class AndOr(Node, frozen=True):
    """first {&& | ||} command ...; left-associative, equal precedence."""

    first: Command
    rest: tuple[AndOrItem, ...]
    line: int = 0


class AndOrItem(Node, frozen=True):
    """`op` is "&&" or "||"."""

    op: str
    command: Command


class CommandList(Node, frozen=True):
    """Commands run one after the other; made only for more than one command or a background one."""

    items: tuple[ListItem, ...]
    line: int = 0


class ListItem(Node, frozen=True):
    """`background`: the command was ended by `&`. `newline`: by a newline, which matters only for printing."""

    command: Command
    background: bool = False
    newline: bool = False
    aside = ("newline",)


class Subshell(Node, frozen=True):
    """( body )"""

    body: Command
    redirects: tuple[Redirect, ...] = ()
    line: int = 0


class Group(Node, frozen=True):
    """{ body; }"""

    body: Command
    redirects: tuple[Redirect, ...] = ()
    line: int = 0


class IfClause(Node, frozen=True):
    """if/elif condition; then body;"""

    condition: Command
    body: Command


class If(Node, frozen=True):
    """if ...; elif ...; else ...; fi"""

    clauses: tuple[IfClause, ...]
    otherwise: Command | None
    redirects: tuple[Redirect, ...] = ()
    line: int = 0


class While(Node, frozen=True):
    """while condition; do body; done, or until when `until`."""

    condition: Command
    body: Command
    until: bool = False
    redirects: tuple[Redirect, ...] = ()
    line: int = 0


class For(Node, frozen=True):
    """for name in words; do body; done; without `in` the parser supplies the word "$@", as bash does."""

    name: str
    words: tuple[Word, ...]
    body: Command
    redirects: tuple[Redirect, ...] = ()
    line: int = 0


class Select(Node, frozen=True):
    """select name in words; do body; done; without `in` the parser supplies the word "$@"."""

    name: str
    words: tuple[Word, ...]
    body: Command
    redirects: tuple[Redirect, ...] = ()
    line: int = 0


class ArithFor(Node, frozen=True):
    """for ((init; test; step)); do body; done; bash reads an absent expression as 1."""

    init: Arith
    test: Arith
    step: Arith
    body: Command
    redirects: tuple[Redirect, ...] = ()
    line: int = 0


class CaseClause(Node, frozen=True):
    """pattern|pattern) body; `terminator` is ";;" (stop), ";&" (run the next body) or ";;&" (go on matching)."""

    patterns: tuple[Word, ...]
    body: Command | None
    terminator: str = ";;"


class Case(Node, frozen=True):
    """case subject in clauses esac"""

    subject: Word
    clauses: tuple[CaseClause, ...]
    redirects: tuple[Redirect, ...] = ()
    line: int = 0


class ArithCommand(Node, frozen=True):
    """(( arith ))"""

    arith: Arith
    redirects: tuple[Redirect, ...] = ()
    line: int = 0


class Conditional(Node, frozen=True):
    """[[ expr ]]"""

    expr: CondNode
    redirects: tuple[Redirect, ...] = ()
    line: int = 0


class Function(Node, frozen=True):
    """name() body, function name [()] body; `body` is any compound command, with its own redirections."""

    name: str
    body: Command
    line: int = 0


class Coproc(Node, frozen=True):
    """coproc [name] command; the name is "COPROC" when absent. For a simple command it is always "COPROC"."""

    name: str
    command: Command
    line: int = 0


Command: TypeAlias = (
    "SimpleCommand | Pipeline | AndOr | CommandList | Subshell | Group | If | While | For | Select | ArithFor"
    " | Case | ArithCommand | Conditional | Function | Coproc"
)

# --- [[ ]] ---------------------------------------------------------------------------------------------------------


class CondUnary(Node, frozen=True):
    """`op` word: -n -z -v -o -R, the file tests -a -b ... -x; a lone word is `-n` word."""

    op: str
    word: Word


class CondBinary(Node, frozen=True):
    """left `op` right: = == != =~ < > -eq -ne -lt -le -gt -ge -nt -ot -ef.

    The right side of `= == !=` is a pattern and of `=~` an ERE whose quoted parts match literally. The operands of
    -eq and its kin are arithmetic.
    """

    op: str
    left: Word
    right: Word


class CondNot(Node, frozen=True):
    """! operand"""

    operand: CondNode


class CondAnd(Node, frozen=True):
    """operand && operand ..."""

    operands: tuple[CondNode, ...]


class CondOr(Node, frozen=True):
    """operand || operand ..."""

    operands: tuple[CondNode, ...]


class CondGroup(Node, frozen=True):
    """( operand ), kept for printing."""

    operand: CondNode


CondNode: TypeAlias = "CondUnary | CondBinary | CondNot | CondAnd | CondOr | CondGroup"
