"""The state that every shell begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from belljar.shell.expand.ifs import prepare
from belljar.shell.heredoc import HereServer
from belljar.shell.nodes import Command
from belljar.shell.options import SET_DEFAULTS, SET_OPTIONS, SHOPT_DEFAULTS
from belljar.shell.variables import Frame

if TYPE_CHECKING:
    from belljar.shell.complete import Specification


class State:
    """Initial values that are the same in every new shell: nothing here is ever changed in place."""

    def __init__(self) -> None:
        self.args: list[str] = []
        """The positional parameters $1, $2 ...; replace the list (`shell.args = [...]`), don't change it in place."""
        self.name = "bash"
        """$0."""
        self.from_argument = False
        """Whether the script is the argument of -c."""
        self.script: str | None = None
        """The script file being run, if it is one."""
        self.script_args: list[str] = []
        """The arguments it was started with, unchanged by `set`."""
        self.here_server: HereServer | None = None
        """Made for the first here-document."""
        self.options: dict[str, bool] = {name: name in SET_DEFAULTS for name in SET_OPTIONS}
        """`set -o` options by name; change with `set_option`. The hot ones are attributes too: errexit, nounset, ..."""
        self.shopts: dict[str, bool] = SHOPT_DEFAULTS
        """`shopt` options by name; change with `set_shopt`."""
        self.interactive = False
        self.login = False
        self.mirror_options()

        self.status = 0
        """$?"""
        self.pipestatus: list[int] | None = []
        """PIPESTATUS of the last pipeline; None: it was a single command, whose status is `status`."""
        self.subst_status = 0
        """Status of the last command substitution of the command being expanded."""
        self.line = 0
        """$LINENO: the line of the running command."""
        self.loops = 0
        """Number of loops around the running command in this function (what `break` may leave)."""
        self.command: Command | None = None
        self.trap_command = ""
        self.last_argument = ""
        self.subshell = 0
        """BASH_SUBSHELL."""
        self.subshell_process = False
        self.background = False
        self.stdin_given = False
        """Whether a pipeline or redirection gave this shell its standard input: `&` then leaves it alone."""
        self.suppressed = 0
        """Above 0 inside a condition: `set -e` and the ERR trap don't act."""
        self.attention = False
        """Something must be done before the next command: a signal's trap, the DEBUG trap, `set -x`."""
        self.watching = False
        """A failing command matters: `set -e` or an ERR trap."""
        self.in_trap = ""
        self.active_traps: frozenset[str] = frozenset()
        """The traps whose commands are running: none of them runs inside itself."""
        self.holds_notice = False
        """A program runs with redirections that are not for the shell's word about its death."""
        self.held_notice = ""
        self.trap_status = 0
        """`$?` before the trap that is running: what `exit` and `return` in it give by default."""
        self.trap_level = 0
        """The subshell that trap runs in."""
        self.spared = 0
        """Above 0 while `command` runs a special builtin, whose errors then don't end the shell."""
        self.err_traced = False
        """Whether the ERR trap acts in subshells too."""
        self.outer_loops = 0
        """The loops around this subshell."""
        self.fatal = 0
        """The fatal signal that will end this shell."""
        self.misused = False
        """A special builtin just got a wrong command line: in POSIX mode that ends the shell."""
        self.trace_depth = 0
        self.arith_depth = 0
        self.ifs = prepare(None)
        self.plain_ifs = True
        self.random_seed = 0
        self.random_branch: int | None = None
        """The branch of the sandbox that the seed belongs to; none before the first $RANDOM."""
        self.byte_locale = False
        """Whether a character is a byte (the locale C) rather than UTF-8."""
        self.special_names: frozenset[str] = frozenset()
        self.random_last = 0
        self.getopts = (1, 1)
        """The argument that `getopts` reads, and its position in it."""
        self.getopts_frames: list[tuple[Frame | None, tuple[int, int]]] = []
        """Function calls with an OPTIND of their own, and where `getopts` was before; replaced, never changed."""
        self.command_number = 1
        self.completions: dict[str, Specification] = {}
        """Completion specifications by command; replaced, never changed in place."""
        self.bindings: dict[str, str] = {}
        """Key bindings made by `bind`; replaced, never changed in place."""
        self.interrupted = False
        self.started = False
        """Whether commands are being run already, start-up being over."""
        self.invocation_letters = ""
        """The letters of `$-` for how the shell was started."""

    def mirror_options(self) -> None:
        options, shopts = self.options, self.shopts
        self.errexit = options["errexit"]
        self.nounset = options["nounset"]
        self.xtrace = options["xtrace"]
        self.noglob = options["noglob"]
        self.noclobber = options["noclobber"]
        self.noexec = options["noexec"]
        self.pipefail = options["pipefail"]
        self.allexport = options["allexport"]
        self.braceexpand = options["braceexpand"]
        self.posix = options["posix"]
        self.monitor = options["monitor"]
        self.extglob = shopts["extglob"]
        self.nocasematch = shopts["nocasematch"]
        self.patsub_replacement = shopts["patsub_replacement"]
        self.expand_aliases = shopts["expand_aliases"]

    def copy(self, other: State) -> None:
        """Copy every attribute of another shell. Written out, as it runs for every shell and subshell."""
        self.args = other.args
        self.name = other.name
        self.from_argument = other.from_argument
        self.script = other.script
        self.script_args = other.script_args
        self.here_server = other.here_server
        self.options = other.options
        self.shopts = other.shopts
        self.interactive = other.interactive
        self.login = other.login
        self.errexit = other.errexit
        self.nounset = other.nounset
        self.xtrace = other.xtrace
        self.noglob = other.noglob
        self.noclobber = other.noclobber
        self.noexec = other.noexec
        self.pipefail = other.pipefail
        self.allexport = other.allexport
        self.braceexpand = other.braceexpand
        self.posix = other.posix
        self.monitor = other.monitor
        self.extglob = other.extglob
        self.nocasematch = other.nocasematch
        self.patsub_replacement = other.patsub_replacement
        self.expand_aliases = other.expand_aliases
        self.status = other.status
        self.pipestatus = other.pipestatus
        self.subst_status = other.subst_status
        self.line = other.line
        self.loops = other.loops
        self.command = other.command
        self.trap_command = other.trap_command
        self.last_argument = other.last_argument
        self.subshell = other.subshell
        self.subshell_process = other.subshell_process
        self.background = other.background
        self.stdin_given = other.stdin_given
        self.suppressed = other.suppressed
        self.attention = other.attention
        self.watching = other.watching
        self.in_trap = other.in_trap
        self.active_traps = other.active_traps
        self.holds_notice = other.holds_notice
        self.held_notice = other.held_notice
        self.trap_status = other.trap_status
        self.trap_level = other.trap_level
        self.spared = other.spared
        self.err_traced = other.err_traced
        self.outer_loops = other.outer_loops
        self.fatal = other.fatal
        self.misused = other.misused
        self.trace_depth = other.trace_depth
        self.arith_depth = other.arith_depth
        self.ifs = other.ifs
        self.plain_ifs = other.plain_ifs
        self.random_seed = other.random_seed
        self.random_branch = other.random_branch
        self.byte_locale = other.byte_locale
        self.special_names = other.special_names
        self.random_last = other.random_last
        self.getopts = other.getopts
        self.getopts_frames = other.getopts_frames
        self.command_number = other.command_number
        self.completions = other.completions
        self.bindings = other.bindings
        self.interrupted = other.interrupted
        self.started = other.started
        self.invocation_letters = other.invocation_letters


SAME: Final = tuple(vars(State()))
"""The names of these attributes."""
