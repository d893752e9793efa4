"""npm's command line: options anywhere, long and short, each also a setting that a file or the environment may give."""

from __future__ import annotations

from typing import Final

from belljar.abi.dataclass import dataclass, field

BOOLEANS: Final = frozenset(
    "all audit bin-links color dry-run engine-strict force foreground-scripts fund global ignore-scripts if-present "
    "install-links json legacy-peer-deps link long offline optional package-lock package-lock-only parseable "
    "prefer-dedupe prefer-offline prefer-online production progress read-only save save-bundle save-dev save-exact "
    "save-optional save-peer save-prod shrinkwrap strict-peer-deps strict-ssl unicode update-notifier usage version "
    "workspaces workspaces-update yes include-workspace-root allow-same-version git-tag-version dev also timing "
    "allow-scripts-pending".split()
)
_MANY: Final = frozenset({"omit", "include", "package", "workspace"})
_VALUES: Final = frozenset(
    "access before cache call cpu depth fetch-retries fetch-timeout globalconfig init-author-name init-license "
    "init-main init-module init-type init-version install-strategy libc location lockfile-version loglevel maxsockets "
    "message min-release-age node-options noproxy npm-version os otp pack-destination prefix preid proxy https-proxy "
    "registry save-prefix scope script-shell tag tag-version-prefix umask user-agent userconfig which auth-type".split()
)
_SHORT: Final[dict[str, tuple[str, ...]]] = {
    "a": ("--all",), "B": ("--save-bundle",), "C": ("--prefix",), "c": ("--call",), "D": ("--save-dev",),
    "d": ("--loglevel", "info"), "dd": ("--loglevel", "verbose"), "ddd": ("--loglevel", "silly"),
    "E": ("--save-exact",), "f": ("--force",), "g": ("--global",), "h": ("--usage",), "H": ("--usage",),
    "?": ("--usage",), "help": ("--usage",), "i": ("--save",), "l": ("--long",), "L": ("--location",),
    "m": ("--message",), "n": ("--no-yes",), "N": ("--no-registry",), "no": ("--no-yes",), "O": ("--save-optional",),
    "P": ("--save-prod",), "p": ("--parseable",), "q": ("--loglevel", "warn"), "quiet": ("--loglevel", "warn"),
    "reg": ("--registry",), "S": ("--save",), "s": ("--loglevel", "silent"), "silent": ("--loglevel", "silent"),
    "v": ("--version",), "verbose": ("--loglevel", "verbose"), "w": ("--workspace",), "ws": ("--workspaces",),
    "y": ("--yes",), "local": ("--no-global",), "porcelain": ("--parseable",), "readonly": ("--read-only",),
    "iwr": ("--include-workspace-root",),
}  # fmt: skip

Value = bool | str | list[str]


@dataclass(slots=True)
class CommandLine:
    settings: dict[str, Value] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    """Operands; also everything after `--`."""
    unknown: list[str] = field(default_factory=list)


def parse(args: list[str], *, first_word_ends: bool = False) -> CommandLine:
    """Read a command line. With `first_word_ends` (npx) what follows the first word is that command's own."""
    line = CommandLine()
    queue = list(args)
    while queue:
        word = queue.pop(0)
        if word == "--":
            line.words += queue
            break
        if not word.startswith("-") or word == "-":
            line.words.append(word)
            if first_word_ends:
                line.words += queue
                break
            continue
        _option(line, word, queue, npx=first_word_ends)
    return line


def _option(line: CommandLine, word: str, queue: list[str], *, npx: bool) -> None:
    name, equals, value = word.lstrip("-").partition("=")
    long = word.startswith("--")
    if npx and name == "p" and not long:
        name, long = "package", True
    if not long or (name in _SHORT and name not in BOOLEANS):
        expanded = _expand(name)
        if expanded is not None:
            queue[:0] = [*expanded, *([value] if equals else [])]
            return
    negative = name.startswith("no-") and name not in BOOLEANS
    name = name.removeprefix("no-") if negative else name
    if name in BOOLEANS or negative or (name not in _VALUES and name not in _MANY):
        if name not in BOOLEANS and name not in _VALUES and name not in _MANY and not name.startswith(("@", "/")):
            line.unknown.append(name)
            line.settings[name] = value if equals else not negative
            return
        given = value if equals else queue.pop(0) if queue and queue[0] in ("true", "false") else "true"
        line.settings[name] = (given != "false") != negative
        return
    if not equals:
        value = queue.pop(0) if queue and not (queue[0].startswith("-") and len(queue[0]) > 1) else ""
    if name in _MANY:
        known = line.settings.get(name)
        line.settings[name] = [*(known if isinstance(known, list) else []), value]
    else:
        line.settings[name] = value


def _expand(name: str) -> list[str] | None:
    """Expand a short option, or several in one word."""
    if name in _SHORT:
        return list(_SHORT[name])
    if name and all(letter in _SHORT and len(_SHORT[letter]) == 1 for letter in name):
        return [_SHORT[letter][0] for letter in name]
    return None
