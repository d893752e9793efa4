"""Topics of `help` besides the builtins: the shell's keywords and variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from belljar.shell.builtins.registry import BUILTINS, Builtin
from belljar.shell.special import VERSION

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

_TOPICS: Final = (
    (
        "%",
        "job_spec [&]",
        """Continue a job in the foreground, or with `&` in the background.

A job is named by its number (%1), by how its command begins (%name) or by a text in it (%?text); %+ or %% is the
current one, %- the one before.""",
    ),
    (
        "((",
        "(( expression ))",
        """Evaluate an arithmetic expression.

The status is 0 if its value is not zero, else 1, as with `let \"expression\"`.""",
    ),
    (
        "[[",
        "[[ expression ]]",
        """Test a condition; the status is 0 if it holds.

The words are neither split nor globbed. Besides what `test` knows:
  ( EXPR )  ! EXPR  EXPR && EXPR  EXPR || EXPR
  WORD == PATTERN   WORD != PATTERN   WORD =~ REGEX (its groups in BASH_REMATCH)""",
    ),
    (
        "case",
        "case WORD in [PATTERN [| PATTERN]...) COMMANDS ;;]... esac",
        """Run the commands of the first pattern that the word matches.

`;&` instead of `;;` goes on with the next commands, `;;&` with the next patterns.""",
    ),
    (
        "coproc",
        "coproc [NAME] command [redirections]",
        """Run a command in the background with pipes to and from it.

NAME (COPROC by default) becomes an array: ${NAME[0]} reads its output, ${NAME[1]} writes its input; NAME_PID is its
process id.""",
    ),
    (
        "for",
        "for NAME [in WORDS ... ] ; do COMMANDS; done",
        """Run commands once for each word, with NAME set to it.

Without `in WORDS` the positional parameters are taken. The status is that of the last command.""",
    ),
    (
        "for ((",
        "for (( exp1; exp2; exp3 )); do COMMANDS; done",
        """Run commands while an arithmetic expression is not zero.

EXP1 is evaluated first, EXP2 before and EXP3 after each turn; one that is left out counts as 1.""",
    ),
    (
        "function",
        "function name { COMMANDS ; } or name () { COMMANDS ; }",
        """Define a function.

Called as a command, it runs in the shell itself with the arguments as $1 ..., and its name in FUNCNAME.""",
    ),
    (
        "if",
        "if COMMANDS; then COMMANDS; [ elif COMMANDS; then COMMANDS; ]... [ else COMMANDS; ] fi",
        """Run commands if others succeed.

The status is that of the last command run, or 0 if no condition held.""",
    ),
    (
        "select",
        "select NAME [in WORDS ... ;] do COMMANDS; done",
        """Let the user choose from a menu, again and again.

The words are shown numbered on stderr, PS3 asks, the line read is in REPLY, and NAME is the word of that number (empty
if there is none). Ends with `break` or at the end of the input.""",
    ),
    (
        "time",
        "time [-p] pipeline",
        """Report how long a pipeline took: real, user and system time.

  -p  in the form of POSIX; otherwise TIMEFORMAT says how""",
    ),
    (
        "until",
        "until COMMANDS; do COMMANDS-2; done",
        "Run COMMANDS-2 again and again, until COMMANDS succeed.",
    ),
    (
        "variables",
        "variables - Names and meanings of some shell variables",
        """Variables the shell itself uses.

  BASH_VERSION  CDPATH  GLOBIGNORE  HISTFILE  HISTSIZE  HISTCONTROL  HISTIGNORE  HOME  HOSTNAME  IFS  OSTYPE  PATH
  PROMPT_COMMAND  PS1  PS2  PS4  PWD  SHELLOPTS  TERM  TIMEFORMAT
  and set by it: BASHPID  BASH_REMATCH  BASH_SOURCE  EPOCHREALTIME  FUNCNAME  LINENO  OPTARG  OPTIND  PIPESTATUS
  RANDOM  REPLY  SECONDS""",
    ),
    (
        "while",
        "while COMMANDS; do COMMANDS-2; done",
        "Run COMMANDS-2 again and again, while COMMANDS succeed.",
    ),
    (
        "{",
        "{ COMMANDS ; }",
        """Run commands as one, in this shell: a redirection behind the brace is for all of them.

The status is that of the last one.""",
    ),
)


def topics() -> dict[str, Builtin]:
    """All that `help` knows, by name, in the order of the names."""
    words = {name: Builtin(name, lambda _shell, _args: 0, synopsis, text) for name, synopsis, text in _TOPICS}
    known = BUILTINS | words
    return {name: known[name] for name in sorted(known)}


def overview(shell: Shell, columns: int) -> str:
    """Output of `help` without arguments: every synopsis in two columns, truncated to fit."""
    width = max(columns, 20) // 2
    entries = [(name in shell.disabled, topic.synopsis) for name, topic in topics().items()]
    half = -(-len(entries) // 2)
    lines = [
        f"GNU bash, version {VERSION} (x86_64-pc-linux-gnu)",
        "These shell commands are defined internally.  Type `help' to see this list.",
        "Type `help name' to find out more about the function `name'.",
        "",
        "A star (*) next to a name means that the command is disabled.",
        "",
    ]
    for row in range(half):
        line = _cell(*entries[row], width - 1).ljust(width)
        if row + half < len(entries):
            line += _cell(*entries[row + half], width - 2)
        lines.append(line.rstrip())
    return "\n".join(lines) + "\n"


def _cell(disabled: bool, synopsis: str, width: int) -> str:
    text = ("*" if disabled else " ") + synopsis
    return text if len(text) < width else text[: width - 1] + ">"
