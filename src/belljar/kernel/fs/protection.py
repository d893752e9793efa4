"""Files that make the owner's machine run something by themselves: the rules for everything a guest leaves there.

Read-write mounts of host directories, `files.download` and `Changes.apply` ask here. The rules name what runs without
anybody running the project's own code: configuration that a program reads when a directory is entered, opened in an
editor, or looked at with git; what a login or another project reads; credentials. No list of this kind is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

Trust: TypeAlias = bool | str | Collection[str]
"""Exceptions from the rules: none (False), everything (True), or these rules and paths, with all below them."""
Has: TypeAlias = Callable[[Sequence[str], str], bool]
"""Whether a directory, given as its components below the top, has an entry of that name."""
Pattern: TypeAlias = tuple[str, ...]


class Rule(NamedTuple):
    """A rule's name, by which it can be trusted, and its reason, for messages."""

    name: str
    why: str


_PATTERNS: Final = {
    Rule("git", "git runs what its configuration and hooks name"): (
        ".git/hooks .git/config .git/config.worktree .git/info .git/modules .git/worktrees .git/commondir .gitconfig"
    ),
    Rule("repository", "a version control system runs what this repository's configuration names"): (
        ".hg .hgrc .bzr .jj .sl .svn .subversion .pijul _darcs .repo .p4config"
    ),
    Rule("hooks", "commit hooks run it"): (
        ".husky .githooks .lefthook .lefthook.* lefthook.* .lefthook-local.* lefthook-local.* .pre-commit-config.*"
        " .overcommit.yml .git-hooks .lintstagedrc .lintstagedrc.* lint-staged.config.*"
    ),
    Rule("shell", "shells and terminals run it when they start"): (
        ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .profile .inputrc .zshrc"
        " .zshenv .zprofile .zlogin .zlogout .oh-my-zsh .kshrc .mkshrc .shrc .cshrc .tcshrc .login .logout .xonshrc"
        " .pam_environment .tmux.conf .screenrc profile.ps1 microsoft.powershell_profile.ps1"
    ),
    Rule("environment", "it is run, or decides what a command's name means, when the directory is entered"): (
        ".envrc .direnv .mise .mise.toml .mise.*.toml mise.toml mise.*.toml .rtx.toml .tool-versions .asdfrc"
        " .shadowenv.d .autoenv .autoenv.* rust-toolchain rust-toolchain.toml"
    ),
    Rule("editor", "editors and debuggers run it when the directory is opened"): (
        ".vscode .idea .fleet .zed .vs .theia .nova .helix .devcontainer .devcontainer.json *.code-workspace"
        " .externaltoolbuilders .vimrc _vimrc .gvimrc .vim .exrc .nvimrc .nvim.lua .lvimrc .local.vimrc .emacs"
        " .emacs.d .dir-locals.el .dir-locals-2.el .ycm_extra_conf.py .gdbinit .gdbearlyinit .lldbinit .pdbrc"
        " .pylintrc .ipython .jupyter .rprofile .renviron .rdata .irbrc .pryrc"
    ),
    Rule("agent", "coding agents run the commands, hooks and MCP servers it names"): (
        ".claude .claude.json .mcp.json mcp.json .cursor .codex .gemini .qwen .aider* .continue .cline .roo .windsurf"
        " .kiro .opencode opencode.json opencode.jsonc .crush .crush.json crush.json .goose .amp .factory .augment"
        " .junie .amazonq .zencoder .copilot"
    ),
    Rule("build", "build tools run it whatever they are asked for"): (
        ".cargo .mvn .bazelrc .bazeliskrc .buckconfig .gradle/init.gradle .gradle/init.gradle.kts .gradle/init.d"
        " .gradle/gradle.properties .m2 .sbtopts .jvmopts .bundle .gemrc .yarn/releases .yarn/plugins .yarnrc"
        " .yarnrc.yml .npmrc .pnp.js .pnp.cjs .pnp.loader.mjs .pnpmfile.cjs .pnpmfile.mjs ansible.cfg .ansible.cfg"
        " .ansible"
    ),
    Rule("python", "every Python program runs it, or installs from where it says"): (
        "sitecustomize.py usercustomize.py site-packages/*.pth dist-packages/*.pth .pythonrc .pythonrc.py"
        " .pythonstartup .pip pip.conf pip.ini .pydistutils.cfg .condarc .mambarc"
    ),
    Rule("login", "it is run when somebody logs in, or it is on the way to programs"): (
        ".config .local .xinitrc .xsession .xsessionrc .xprofile .xbindkeysrc library/launchagents"
        " library/application?support appdata/roaming appdata/local autorun.inf desktop.ini .crontab .forward"
        " .procmailrc .mailcap .rustup .pyenv .rbenv .nvm .asdf .sdkman .nix-profile"
    ),
    Rule("credentials", "it holds credentials, or names the programs that get them"): (
        ".ssh .gnupg .netrc _netrc .aws .azure .gcloud .kube .docker/config.json .docker/cli-plugins .docker/contexts"
        " .dockercfg .oci .boto .s3cfg .terraformrc .terraform.d .vault-token .git-credentials .pypirc .pgpass .psqlrc"
        " .my.cnf .mylogin.cnf .sqliterc .curlrc .wgetrc .password-store .nuget"
    ),
}
"""Patterns by rule: one or more names in a row, at any depth. `.git/hooks` also protects sub/.git/hooks/x."""

BARE: Final = Rule("bare-repository", "git would take this directory for a repository, and run what its config names")
SECOND_NAME: Final = Rule("second-name", "the file has another name (a hard link), which would be changed too")
CROWDED: Final = Rule("crowded", "the directory has too many entries to look for protected ones in it")
SYMLINK: Final = Rule("symlink", "the symlink leads out of the directory, or to a protected file")
CONFLICT: Final = Rule("conflict", "the original was changed after the sandbox had taken its copy")
RULES: Final = (*_PATTERNS, BARE, SECOND_NAME, CROWDED, SYMLINK, CONFLICT)

_INSIDE_BARE: Final = frozenset("config config.worktree hooks info modules worktrees commondir".split())
_SHAPES: Final = (frozenset({"head", "objects", "refs"}), frozenset({"head", "commondir"}))
"""Entries by which git recognises a repository that is not in a `.git`."""
_SHAPE_NAMES: Final = {"head": "HEAD", "objects": "objects", "refs": "refs", "commondir": "commondir"}
_SHORT_NAMES: Final = {
    name.replace(".", "")[:6]: name
    for text in _PATTERNS.values()
    for word in text.split()
    for name in word.split("/")
    if name.startswith(".") and "*" not in name
}
"""Names by the first part of what NTFS has for them beside: GIT~1 is .git there, VSCODE~1 is .vscode."""


@lru_cache(maxsize=8192)
def fold(name: str) -> str:
    """One spelling for all the names a file system or a program may take for the same.

    Without case, without code points that show nothing, without what Windows drops from the end of a name.
    """
    if name.isascii():
        folded = name.lower()
    else:
        from unicodedata import normalize  # most names are ASCII

        shown = "".join(c for c in normalize("NFKC", name) if not _is_ignorable(c))
        folded = "".join(c for c in normalize("NFKC", shown.casefold()) if not _is_ignorable(c))
    folded = folded.partition(":")[0].rstrip(". ") or folded
    stem, tilde, number = folded.partition(".")[0].partition("~")
    return _SHORT_NAMES.get(stem, folded) if tilde and number.isdecimal() else folded


def _is_ignorable(char: str) -> bool:
    """Default_Ignorable_Code_Point, near enough: format characters, variation selectors, fillers."""
    from unicodedata import category

    code = ord(char)
    return (
        category(char) == "Cf"
        or 0xFE00 <= code <= 0xFE0F
        or 0xE0000 <= code <= 0xE0FFF
        or 0x180B <= code <= 0x180F
        or code in (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0)
    )


def _fold_path(path: Sequence[str]) -> list[str]:
    """Folded components; a backslash parts them too, as it does on Windows."""
    return [fold(name) for part in path for name in part.split("\\") if name]


@lru_cache(maxsize=8192)
def _beginning_with(name: str) -> tuple[tuple[Pattern, Rule], ...]:
    return tuple(
        (pattern, rule)
        for rule, text in _PATTERNS.items()
        for pattern in (tuple(word.split("/")) for word in text.split())
        if fnmatchcase(name, pattern[0])
    )


class Protection:
    """The rules for what is put below one directory, without those that its owner trusts.

    `above` is where that directory is: a match may begin there, but has to end below. So `hooks` in a mounted `.git` is
    protected, and a project that is kept somewhere below `.claude` is not.
    """

    def __init__(self, trust: Trust = False, above: Sequence[str] = ()) -> None:
        check_trust(trust)
        words = [] if isinstance(trust, bool) else [trust] if isinstance(trust, str) else list(trust)
        self.off = trust is True
        self._rules = {word for word in words if any(word == rule.name for rule in RULES)}
        self._paths = {tuple(part for part in word.split("/") if part not in ("", ".")) for word in words} - {()}
        self._above = _fold_path(above)

    def trusts(self, rule: Rule, path: Sequence[str]) -> bool:
        return (
            self.off
            or rule.name in self._rules
            or any(tuple(path[: len(trusted)]) == trusted for trusted in self._paths)
        )

    def refusal(self, path: Sequence[str], has: Has, *, fixed: bool = False) -> Rule | None:
        """The rule that forbids to write, make, move or remove this, if any.

        `fixed`: the act also decides where everything below this path is. A symlink or a file called `.git`, or a
        directory renamed to that, would bring its own hooks; a new directory of that name is fine.
        """
        rule = self._by_name(path, fixed) or self._by_shape(path, has)
        return None if rule is None or self.trusts(rule, path) else rule

    def completes_repository(self, path: Sequence[str], has: Has) -> Rule | None:
        """The rule that forbids to make this entry, because a bare repository would be complete with it."""
        names = _fold_path(path)
        if not names or names[-1] not in _SHAPE_NAMES or [*self._above, *names][-2:-1] == [".git"]:
            return None
        if not _is_repository(path[:-1], has, names[-1]) or self.trusts(BARE, path):
            return None
        return BARE

    def link_refusal(self, path: Sequence[str], target: str, has: Has) -> Rule | None:
        """The rule that forbids to make a symlink with this target: it leads out, or to something protected.

        Dots are taken literally, which is right only as long as they come first.
        """
        place = list(path[:-1])
        parts = [part for part in target.split("/") if part not in ("", ".")]
        while place and parts and parts[0] == "..":
            place.pop()
            del parts[0]
        if target.startswith("/") or ".." in parts or "\\" in target or self.refusal([*place, *parts], has, fixed=True):
            return None if self.trusts(SYMLINK, path) else SYMLINK
        return None

    def _by_name(self, path: Sequence[str], fixed: bool) -> Rule | None:
        names = [*self._above, *_fold_path(path)]
        for start, name in enumerate(names):
            for pattern, rule in _beginning_with(name):
                end = start + len(pattern)
                if all(map(fnmatchcase, names[start:end], pattern)):  # as far as the path goes
                    if end > len(names):
                        if fixed:
                            return rule
                    elif end > len(self._above):
                        return rule
        return None

    @staticmethod
    def _by_shape(path: Sequence[str], has: Has) -> Rule | None:
        """Files in a bare repository that git runs, or that say what it runs."""
        for index, name in enumerate(path):
            if fold(name) in _INSIDE_BARE and _is_repository(path[:index], has):
                return BARE
        return None


def _is_repository(directory: Sequence[str], has: Has, made: str = "") -> bool:
    """Whether git recognises this directory as a repository, once `made` is in it."""
    return any(
        (not made or made in shape)
        and all(name == made or has(directory, _SHAPE_NAMES[name]) for name in sorted(shape))
        for shape in _SHAPES
    )


def check_trust(trust: object) -> None:
    """TypeError for what is neither a bool nor names."""
    words = () if isinstance(trust, bool | str) else trust
    if not isinstance(words, list | tuple | set | frozenset) or not all(isinstance(word, str) for word in words):
        raise TypeError(f"trust is True, or a list of rules and paths, not {trust!r}")
