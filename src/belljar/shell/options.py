"""The names and defaults of the options of `set -o` and `shopt`."""

from __future__ import annotations

from typing import Final

SET_OPTIONS: Final[dict[str, str]] = {
    "allexport": "a", "braceexpand": "B", "emacs": "", "errexit": "e", "errtrace": "E", "functrace": "T",
    "hashall": "h", "histexpand": "H", "history": "", "ignoreeof": "", "interactive-comments": "", "keyword": "k",
    "monitor": "m", "noclobber": "C", "noexec": "n", "noglob": "f", "nolog": "", "notify": "b", "nounset": "u",
    "onecmd": "t", "physical": "P", "pipefail": "", "posix": "", "privileged": "p", "verbose": "v", "vi": "",
    "xtrace": "x",
}  # fmt: skip
"""Names of `set -o` in the order it lists them, each with its letter or ""."""

LETTERS: Final = {letter: name for name, letter in SET_OPTIONS.items() if letter}

SET_DEFAULTS: Final = frozenset({"braceexpand", "hashall", "interactive-comments"})

SHOPT_DEFAULTS: Final[dict[str, bool]] = {
    "autocd": False, "assoc_expand_once": False, "cdable_vars": False, "cdspell": False, "checkhash": False,
    "checkjobs": False, "checkwinsize": True, "cmdhist": True, "compat31": False, "compat32": False,
    "compat40": False, "compat41": False, "compat42": False, "compat43": False, "compat44": False,
    "complete_fullquote": True, "direxpand": False, "dirspell": False, "dotglob": False, "execfail": False,
    "expand_aliases": False, "extdebug": False, "extglob": False, "extquote": True, "failglob": False,
    "force_fignore": True, "globasciiranges": True, "globskipdots": True, "globstar": False,
    "gnu_errfmt": False, "histappend": False, "histreedit": False, "histverify": False, "hostcomplete": True,
    "huponexit": False, "inherit_errexit": False, "interactive_comments": True, "lastpipe": False,
    "lithist": False, "localvar_inherit": False, "localvar_unset": False, "login_shell": False,
    "mailwarn": False, "no_empty_cmd_completion": False, "nocaseglob": False, "nocasematch": False,
    "noexpand_translation": False, "nullglob": False, "patsub_replacement": True, "progcomp": True,
    "progcomp_alias": False, "promptvars": True, "restricted_shell": False, "shift_verbose": False,
    "sourcepath": True, "varredir_close": False, "xpg_echo": False,
}  # fmt: skip
