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

from dataclasses import dataclass, field
from typing import TypeAlias

# --- words ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Word:
    """One shell word: the concatenation of its parts (no parts: an empty unquoted word, as in `${x:-}`).

    `braces` is set when the text holds a valid brace expansion. The same text is then described twice: `parts` reads
    it without brace expansion (assignments, redirections under POSIX, `case`, `[[`, here-strings, `set +B`), `braces`
    as a sequence to expand.
    """

    parts: tuple[WordPart, ...]
    braces: BraceSequence | None = None


@dataclass(frozen=True, slots=True)
class Literal:
    """Unquoted text (quoted when inside double quotes or a here-document)."""

    text: str


@dataclass(frozen=True, slots=True)
class Escaped:
    """One character quoted by a backslash; in double quotes only `$`, a backquote, `"` and a backslash give this."""

    text: str


@dataclass(frozen=True, slots=True)
class SingleQuoted:
    """'text', verbatim."""

    text: str


@dataclass(frozen=True, slots=True)
class AnsiQuoted:
    r"""$'text', with its escapes already decoded; bytes above 0x7f that aren't UTF-8 are surrogate escapes.

    In the word of `${x#$'..'}` and the like it is quoted as everywhere. Bash prints it back as '...'.
    """

    text: str


@dataclass(frozen=True, slots=True)
class DoubleQuoted:
    """Parts between double quotes: all but Tilde, ProcSub and the quoting kinds.

    `""` has no parts and still makes a word.
    """

    parts: tuple[WordPart, ...]


@dataclass(frozen=True, slots=True)
class LocaleQuoted:
    """$"parts": a DoubleQuoted that would be translated; the C locale translates nothing."""

    parts: tuple[WordPart, ...]


@dataclass(frozen=True, slots=True)
class Tilde:
    """An unquoted tilde prefix; `user` is the text after `~`: "", "+", "-", "+1", "-2", "3" or a login name.

    Made only where bash expands it: at a word's start, and after the `=` and each `:` of an assignment (or of an
    argument that looks like one, outside POSIX mode). When it can't be resolved it stands for its own text.
    """

    user: str


@dataclass(frozen=True, slots=True)
class CommandSub:
    """$(body); `body` is None when it is empty. `$(< file)` is a body of one SimpleCommand with only that redirect.

    `source` is its text, kept where bash does: when it began like arithmetic, as in `$((a); b)`.
    """

    body: Command | None
    line: int = field(default=0, compare=False)
    source: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class BackquoteSub:
    """`source`: bash parses it only when it runs, so a syntax error in it is a runtime error; parse `text` then.

    `source` is what stood between the backquotes, `text` is it with the backslashes removed as the context demands.
    """

    source: str
    text: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ProcSub:
    """<(body) or >(body); `direction` is "<" or ">"."""

    direction: str
    body: Command | None
    line: int = field(default=0, compare=False)
    source: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ArithSub:
    """$((arith)), or $[arith] when `bracket`."""

    arith: Arith
    bracket: bool = False


@dataclass(frozen=True, slots=True)
class BadSubstitution:
    """A `${...}` that means nothing: expanding it is the runtime error "`text`: bad substitution"."""

    text: str


# --- parameters ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AllElements:
    """The subscript [@] or, when `joined`, [*]."""

    joined: bool


@dataclass(frozen=True, slots=True)
class Subscript:
    """[text] of an array element: a key if the array is associative, else arithmetic; only the runtime knows.

    `word` is the key to expand (no splitting, no globbing), `arith` the index.
    """

    word: Word
    arith: Arith


Index: TypeAlias = "AllElements | Subscript"


@dataclass(frozen=True, slots=True)
class Param:
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


@dataclass(frozen=True, slots=True)
class Length:
    """${#name}, ${#name[@]}."""


@dataclass(frozen=True, slots=True)
class Default:
    """${name-word} and its kin: `op` is "-", "=", "?" or "+"; `colon`: null counts as unset.

    Inside double quotes the parts of `word` are quoted: they follow the rules of double quotes (single quotes are
    literal) except that a nested `"..."` is a DoubleQuoted. Outside, they are ordinary unquoted parts.
    """

    op: str
    colon: bool
    word: Word


@dataclass(frozen=True, slots=True)
class Strip:
    """${name#pattern}: `op` is "#", "##", "%" or "%%". The pattern's quoting is its own, even in double quotes."""

    op: str
    pattern: Word


@dataclass(frozen=True, slots=True)
class Replace:
    """${name/pattern/replacement}: `mode` is "" (first), "/" (all), "#" (at start) or "%" (at end).

    `replacement` is None when there is no second slash. With `shopt patsub_replacement` (on by default) an unquoted
    `&` in the expanded replacement is the matched text.
    """

    mode: str
    pattern: Word
    replacement: Word | None


@dataclass(frozen=True, slots=True)
class ChangeCase:
    """${name^pattern}: `op` is "^", "^^", ",", ",,", "~" or "~~"; no pattern means "?"."""

    op: str
    pattern: Word | None


@dataclass(frozen=True, slots=True)
class Slice:
    """${name:offset:length}."""

    offset: Arith
    length: Arith | None


@dataclass(frozen=True, slots=True)
class Transform:
    """${name@op}: `op` is one of Q E P A a K k U u L."""

    op: str


ParamOp: TypeAlias = "Length | Default | Strip | Replace | ChangeCase | Slice | Transform"


@dataclass(frozen=True, slots=True)
class ParamNames:
    """${!prefix@} or, when `joined`, ${!prefix*}: the names of the variables that begin so."""

    prefix: str
    joined: bool


@dataclass(frozen=True, slots=True)
class ParamKeys:
    """${!name[@]} or, when `joined`, ${!name[*]}: the keys of an array."""

    name: str
    joined: bool


WordPart: TypeAlias = (
    "Literal | Escaped | SingleQuoted | AnsiQuoted | DoubleQuoted | LocaleQuoted | Tilde"
    " | Param | ParamNames | ParamKeys | BadSubstitution | CommandSub | BackquoteSub | ProcSub | ArithSub"
)

# --- brace expansion -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BraceSequence:
    """A concatenation of word parts and brace expansions; expands to the product, leftmost varying slowest."""

    items: tuple[WordPart | BraceList | BraceRange, ...]


@dataclass(frozen=True, slots=True)
class BraceList:
    """{a,b,c}: at least two alternatives."""

    alternatives: tuple[BraceSequence, ...]


@dataclass(frozen=True, slots=True)
class BraceRange:
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


@dataclass(frozen=True, slots=True)
class Arith:
    """An arithmetic expression: `source` is what bash expands (as if double-quoted) and then parses.

    `expr` is the tree when the text could be parsed before expansion. It is exact when it holds no ArithSubst.
    An ArithSubst leaf stands for an expansion such as `$i`: the tree may be used as long as each leaf expands to a
    plain decimal constant (`0` or `[1-9][0-9]*`); for anything else expand `source` and call `parse_arith`.
    `expr` None: always expand, then parse (or, if there is nothing to expand, report the syntax error at run time).
    """

    source: Word
    expr: ArithNode | None


@dataclass(frozen=True, slots=True)
class ArithNumber:
    """An integer constant, already reduced to 64 bits two's complement."""

    value: int


@dataclass(frozen=True, slots=True)
class ArithSubst:
    """A `$`-expansion or command substitution that stands alone where an operand may stand."""

    part: WordPart


@dataclass(frozen=True, slots=True)
class ArithVariable:
    """name or name[index]; a name's value is itself evaluated as an expression."""

    name: str
    index: Index | None = None


@dataclass(frozen=True, slots=True)
class ArithUnary:
    """`op` is "+", "-", "!" or "~"."""

    op: str
    operand: ArithNode


@dataclass(frozen=True, slots=True)
class ArithIncrement:
    """++x, --x, x++, x--: `delta` is 1 or -1; `prefix` gives the new value."""

    target: ArithVariable
    delta: int
    prefix: bool


@dataclass(frozen=True, slots=True)
class ArithBinary:
    """`op`: ** * / % + - << >> < <= > >= == != & ^ | && || and the comma.

    The left spine of a long sum may be thousands deep (walk it with a loop); the parser bounds all other nesting.
    """

    op: str
    left: ArithNode
    right: ArithNode


@dataclass(frozen=True, slots=True)
class ArithConditional:
    """test ? then : otherwise; only one branch is evaluated."""

    test: ArithNode
    then: ArithNode
    otherwise: ArithNode


@dataclass(frozen=True, slots=True)
class ArithAssign:
    """target = value; `op` is "" for `=`, else the binary operator of `op=`."""

    op: str
    target: ArithVariable
    value: ArithNode


ArithNode: TypeAlias = (
    "ArithNumber | ArithSubst | ArithVariable | ArithUnary | ArithIncrement | ArithBinary"
    " | ArithConditional | ArithAssign"
)

# --- assignments and redirections ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArrayElement:
    """One element of a=(...): `[index]=value`, `[index]+=value`, or a plain word (`index` None) to expand fully."""

    index: Index | None
    append: bool
    value: Word


@dataclass(frozen=True, slots=True)
class ArrayLiteral:
    """(...) on the right of an assignment."""

    elements: tuple[ArrayElement, ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    """name=value, name[index]+=value, name=(...). `value` has its Tilde parts after `=` and `:` already made."""

    name: str
    index: Index | None
    append: bool
    value: Word | ArrayLiteral
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class FdVariable:
    """{name} or {name[index]} before a redirection operator: the shell picks the descriptor and stores it there."""

    name: str
    index: Index | None = None


@dataclass(frozen=True, slots=True)
class FileRedirect:
    """`op` is one of `< > >> >| <> &> &>> <<< <& >&`; `<<<` is a here-string.

    `fd` is filled in with the operator's default where none is written (1 for `&>`). For `<&` and `>&` the expanded
    target is "-" (close), digits (dup), digits and "-" (move), or else: for `>&` with `fd` 1 a file, as for `&>`;
    otherwise an "ambiguous redirect". Closing, where plain in the source, is always `>&` with the target "-".
    """

    op: str
    fd: int | FdVariable
    target: Word
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class HereDoc:
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
    line: int = field(default=0, compare=False)


Redirect: TypeAlias = "FileRedirect | HereDoc"

# --- commands ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """Assignments, then words, with redirections anywhere among them (kept in their order).

    In `words` an Assignment stands for an argument `name=value` of a declaration builtin (declare, typeset, local,
    export, readonly; also behind `command`/`builtin`): its value is neither split nor globbed and may be an array.
    """

    assignments: tuple[Assignment, ...]
    words: tuple[Word | Assignment, ...]
    redirects: tuple[Redirect, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """[time [-p]] [!] command | command ...; made only if there is something to say (else the bare command stands).

    `a |& b` is parsed as `a 2>&1 | b`, as bash does. `time` alone has no commands; `!` alone neither.
    """

    commands: tuple[Command, ...]
    negated: bool = False
    timed: bool = False
    posix_time: bool = False
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class AndOr:
    """first {&& | ||} command ...; left-associative, equal precedence."""

    first: Command
    rest: tuple[AndOrItem, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class AndOrItem:
    """`op` is "&&" or "||"."""

    op: str
    command: Command


@dataclass(frozen=True, slots=True)
class CommandList:
    """Commands run one after the other; made only for more than one command or a background one."""

    items: tuple[ListItem, ...]
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ListItem:
    """`background`: the command was ended by `&`. `newline`: by a newline, which matters only for printing."""

    command: Command
    background: bool = False
    newline: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Subshell:
    """( body )"""

    body: Command
    redirects: tuple[Redirect, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Group:
    """{ body; }"""

    body: Command
    redirects: tuple[Redirect, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class IfClause:
    """if/elif condition; then body;"""

    condition: Command
    body: Command


@dataclass(frozen=True, slots=True)
class If:
    """if ...; elif ...; else ...; fi"""

    clauses: tuple[IfClause, ...]
    otherwise: Command | None
    redirects: tuple[Redirect, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class While:
    """while condition; do body; done, or until when `until`."""

    condition: Command
    body: Command
    until: bool = False
    redirects: tuple[Redirect, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class For:
    """for name in words; do body; done; without `in` the parser supplies the word "$@", as bash does."""

    name: str
    words: tuple[Word, ...]
    body: Command
    redirects: tuple[Redirect, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Select:
    """select name in words; do body; done; without `in` the parser supplies the word "$@"."""

    name: str
    words: tuple[Word, ...]
    body: Command
    redirects: tuple[Redirect, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ArithFor:
    """for ((init; test; step)); do body; done; bash reads an absent expression as 1."""

    init: Arith
    test: Arith
    step: Arith
    body: Command
    redirects: tuple[Redirect, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class CaseClause:
    """pattern|pattern) body; `terminator` is ";;" (stop), ";&" (run the next body) or ";;&" (go on matching)."""

    patterns: tuple[Word, ...]
    body: Command | None
    terminator: str = ";;"


@dataclass(frozen=True, slots=True)
class Case:
    """case subject in clauses esac"""

    subject: Word
    clauses: tuple[CaseClause, ...]
    redirects: tuple[Redirect, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class ArithCommand:
    """(( arith ))"""

    arith: Arith
    redirects: tuple[Redirect, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Conditional:
    """[[ expr ]]"""

    expr: CondNode
    redirects: tuple[Redirect, ...] = ()
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Function:
    """name() body, function name [()] body; `body` is any compound command, with its own redirections."""

    name: str
    body: Command
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Coproc:
    """coproc [name] command; the name is "COPROC" when absent. For a simple command it is always "COPROC"."""

    name: str
    command: Command
    line: int = field(default=0, compare=False)


Command: TypeAlias = (
    "SimpleCommand | Pipeline | AndOr | CommandList | Subshell | Group | If | While | For | Select | ArithFor"
    " | Case | ArithCommand | Conditional | Function | Coproc"
)

# --- [[ ]] ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CondUnary:
    """`op` word: -n -z -v -o -R, the file tests -a -b ... -x; a lone word is `-n` word."""

    op: str
    word: Word


@dataclass(frozen=True, slots=True)
class CondBinary:
    """left `op` right: = == != =~ < > -eq -ne -lt -le -gt -ge -nt -ot -ef.

    The right side of `= == !=` is a pattern and of `=~` an ERE whose quoted parts match literally. The operands of
    -eq and its kin are arithmetic.
    """

    op: str
    left: Word
    right: Word


@dataclass(frozen=True, slots=True)
class CondNot:
    """! operand"""

    operand: CondNode


@dataclass(frozen=True, slots=True)
class CondAnd:
    """operand && operand ..."""

    operands: tuple[CondNode, ...]


@dataclass(frozen=True, slots=True)
class CondOr:
    """operand || operand ..."""

    operands: tuple[CondNode, ...]


@dataclass(frozen=True, slots=True)
class CondGroup:
    """( operand ), kept for printing."""

    operand: CondNode


CondNode: TypeAlias = "CondUnary | CondBinary | CondNot | CondAnd | CondOr | CondGroup"
