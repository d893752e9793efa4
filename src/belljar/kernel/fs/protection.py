"""Protected files of a writable host mount: those that make the host run something can't be changed."""

from collections.abc import Iterable, Sequence
from typing import Final
from unicodedata import category, normalize

DEFAULT: Final = tuple(
    ".git/hooks .git/config .git/config.worktree .git/info .git/modules .git/worktrees .git/commondir .gitconfig"
    " .husky .vscode .idea .cursor .claude .mcp.json .envrc .direnv .devcontainer"
    " .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .inputrc"
    " .zshrc .zshenv .zprofile .zlogin .zlogout .config/fish .kshrc .cshrc .tcshrc .login"
    " .ssh .gnupg .netrc .npmrc .yarnrc .yarnrc.yml .pypirc .config/pip .config/git .vimrc .exrc .nvimrc .emacs"
    " .gdbinit .lldbinit .xinitrc .xprofile .config/autostart .config/systemd .local/bin".split()
)
"""A pattern is one or more names in a row, and matches at any depth: `.git/hooks` also protects sub/.git/hooks/x."""

_SHORT_NAMES: Final = {"git~1": ".git"}


def fold(name: str) -> str:
    """One spelling for all the names a file system or a program may take for the same.

    Without case, without code points that show nothing, without what Windows drops from the end of a name.
    """
    if name.isascii():
        folded = name.lower()
    else:
        shown = "".join(c for c in normalize("NFKC", name) if not _is_ignorable(c))
        folded = "".join(c for c in normalize("NFKC", shown.casefold()) if not _is_ignorable(c))
    folded = folded.partition(":")[0].rstrip(". ") or folded
    return _SHORT_NAMES.get(folded, folded)


def _is_ignorable(char: str) -> bool:
    """Default_Ignorable_Code_Point, near enough: format characters, variation selectors, fillers."""
    code = ord(char)
    return (
        category(char) == "Cf"
        or 0xFE00 <= code <= 0xFE0F
        or 0xE0000 <= code <= 0xE0FFF
        or 0x180B <= code <= 0x180F
        or code in (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0)
    )


class Protection:
    """A set of patterns, asked about paths given as their components below the mount."""

    def __init__(self, patterns: Iterable[str] = DEFAULT) -> None:
        self._patterns = [tuple(fold(name) for name in pattern.strip("/").split("/")) for pattern in patterns]

    def covers(self, path: Sequence[str]) -> bool:
        """Whether the path is a protected file, or inside a protected directory."""
        folded = tuple(map(fold, path))
        return any(
            folded[start : start + len(pattern)] == pattern
            for pattern in self._patterns
            for start in range(len(folded) - len(pattern) + 1)
        )

    def leads_to(self, path: Sequence[str]) -> bool:
        """Whether a protected file would be below this path: it may be a directory, but not moved or redirected.

        A symlink or a file called `.git`, or a directory renamed to that, would bring its own hooks.
        """
        folded = tuple(map(fold, path))
        return any(
            folded[-length:] == pattern[:length]
            for pattern in self._patterns
            for length in range(1, min(len(pattern), len(folded) + 1))
        )
