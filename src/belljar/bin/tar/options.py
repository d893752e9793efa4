"""tar's command line: the old style without a dash, bundles, long options, and operands among them."""

from __future__ import annotations

from typing import Final

from belljar.abi.dataclass import dataclass, field
from belljar.bin._kit import UsageError
from belljar.bin.tar.names import Exclusion, NameRules, Transform, parse_transform
from belljar.libc.tar_header import Format

_MODES: Final = {
    "c": "create", "x": "extract", "t": "list", "r": "append", "u": "update", "d": "diff", "A": "concatenate",
}  # fmt: skip
_LONG_MODES: Final = {
    "create": "c", "extract": "x", "get": "x", "list": "t", "append": "r", "update": "u", "diff": "d", "compare": "d",
    "concatenate": "A", "catenate": "A", "delete": "delete",
}  # fmt: skip
_SHORT_WITH_VALUE: Final = frozenset("fCTXIbNHVLKgF")
_SHORT: Final = {
    "f": "file", "C": "directory", "T": "files-from", "X": "exclude-from", "I": "use-compress-program",
    "b": "blocking-factor", "H": "format", "N": "newer", "v": "verbose", "z": "gzip", "j": "bzip2", "J": "xz",
    "a": "auto-compress", "h": "dereference", "k": "keep-old-files", "m": "touch", "O": "to-stdout",
    "p": "preserve-permissions", "P": "absolute-names", "S": "sparse", "s": "preserve-order", "U": "unlink-first",
    "i": "ignore-zeros", "R": "block-number", "o": "no-same-owner", "W": "verify", "l": "check-links", "n": "seek",
    "B": "read-full-records", "w": "interactive", "Z": "compress", "G": "incremental", "V": "label",
    "K": "starting-file", "g": "listed-incremental", "F": "info-script", "L": "tape-length",
}  # fmt: skip
_LONG_WITH_VALUE: Final = frozenset(
    "file directory files-from exclude-from use-compress-program blocking-factor format newer newer-mtime after-date "
    "exclude owner group mtime mode sort strip-components transform xform label one-top-level record-size "
    "starting-file checkpoint-action warning quoting-style totals listed-incremental pax-option to-command suffix "
    "backup exclude-tag exclude-tag-all add-file checkpoint".split()
)
_OPTIONAL: Final = frozenset("one-top-level totals checkpoint backup".split())
_LONG_FLAGS: Final = frozenset(
    "verbose gzip gunzip ungzip bzip2 xz lzma zstd auto-compress no-auto-compress dereference keep-old-files touch "
    "to-stdout preserve-permissions same-permissions absolute-names sparse preserve-order same-order unlink-first "
    "ignore-zeros block-number no-same-owner same-owner no-same-permissions verify check-links seek "
    "read-full-records numeric-owner no-recursion recursion overwrite overwrite-dir no-overwrite-dir "
    "skip-old-files keep-newer-files keep-directory-symlink recursive-unlink remove-files one-file-system "
    "wildcards no-wildcards wildcards-match-slash no-wildcards-match-slash anchored no-anchored ignore-case "
    "no-ignore-case exclude-vcs exclude-backups exclude-caches null no-null hard-dereference show-transformed-names "
    "show-stored-names full-time utc old-archive posix portability help usage version force-local "
    "ignore-failed-read delay-directory-restore no-delay-directory-restore atime-preserve verbatim-files-from "
    "no-verbatim-files-from occurrence interactive compress incremental clamp-mtime no-seek acls no-acls xattrs "
    "no-xattrs selinux no-selinux no-quote-chars test-label".split()
)
_COMPRESSIONS: Final = {
    "gzip": "gzip", "gunzip": "gzip", "ungzip": "gzip", "bzip2": "bzip2", "xz": "xz", "lzma": "lzma", "zstd": "zstd",
}  # fmt: skip
VCS: Final = (
    "CVS .git .gitignore .gitattributes .gitmodules .svn .arch-ids {arch} =RELEASE-ID =meta-update =update .bzr "
    ".bzrignore .bzrtags .hg .hgignore .hgtags _darcs RCS SCCS .cvsignore"
).split()
BACKUPS: Final = (".#*", "*~", "#*#")
_FORMATS: Final[dict[str, Format]] = {
    "gnu": "gnu", "oldgnu": "oldgnu", "ustar": "ustar", "pax": "posix", "posix": "posix", "v7": "v7",
}  # fmt: skip


@dataclass(slots=True)
class Operand:
    """A name to work on; or, at its place among them, a directory to change to or a file of names."""

    kind: str
    text: str


@dataclass(slots=True)
class Settings:
    """A parsed command line."""

    mode: str = ""
    file: str = "-"
    compression: str = ""
    auto_compress: bool = False
    program: str = ""
    verbose: int = 0
    operands: list[Operand] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    format: Format = "gnu"
    exclusions: list[Exclusion] = field(default_factory=list)
    exclude_files: list[tuple[str, NameRules]] = field(default_factory=list)
    select: NameRules = field(default_factory=lambda: NameRules(wildcards=False, anchored=True))
    transforms: list[Transform] = field(default_factory=list)
    strip: int = 0
    null: bool = False
    recursive: bool = True
    asked: str = ""
    wildcards_said: bool = False

    def on(self, *names: str) -> bool:
        return any(name in self.flags for name in names)


class Parser:
    def __init__(self) -> None:
        self.settings = Settings()
        self._explicit: dict[str, bool] = {}

    def parse(self, args: list[str]) -> Settings:
        """Raises UsageError."""
        args = _modernise(args)
        index = 0
        while index < len(args):
            arg = args[index]
            index += 1
            if arg == "--":
                self.settings.operands += [Operand("name", text) for text in args[index:]]
                break
            if arg.startswith("--"):
                index = self._long(arg[2:], args, index)
            elif arg.startswith("-") and arg != "-":
                index = self._short(arg, args, index)
            else:
                self.settings.operands.append(Operand("name", arg))
        return self.settings

    def _short(self, arg: str, args: list[str], index: int) -> int:
        position = 1
        while position < len(arg):
            letter = arg[position]
            position += 1
            if letter in _MODES:
                self._mode(letter)
                continue
            if letter == "?":
                self.settings.asked = "help"
                continue
            if letter not in _SHORT:
                raise UsageError(f"invalid option -- '{letter}'")
            if letter not in _SHORT_WITH_VALUE:
                self._set(_SHORT[letter], "")
                continue
            if position < len(arg):
                self._set(_SHORT[letter], arg[position:])
            elif index < len(args):
                self._set(_SHORT[letter], args[index])
                index += 1
            else:
                raise UsageError(f"option requires an argument -- '{letter}'")
            break
        return index

    def _long(self, text: str, args: list[str], index: int) -> int:
        name, equals, value = text.partition("=")
        known = _LONG_WITH_VALUE | _LONG_FLAGS | _LONG_MODES.keys()
        if name not in known:
            matches = sorted(full for full in known if full.startswith(name))
            if not matches:
                raise UsageError(f"unrecognized option '--{name}'")
            if len(matches) > 1:
                listed = "".join(f" '--{full}'" for full in matches)
                raise UsageError(f"option '--{name}' is ambiguous; possibilities:{listed}")
            name = matches[0]
        if name in _LONG_WITH_VALUE:
            if not equals and name not in _OPTIONAL:
                if index >= len(args):
                    raise UsageError(f"option '--{name}' requires an argument")
                value = args[index]
                index += 1
            self._set(name, value)
            return index
        if equals and name not in ("atime-preserve", "occurrence"):
            raise UsageError(f"option '--{name}' doesn't allow an argument")
        if name in _LONG_MODES:
            self._mode(_LONG_MODES[name])
        else:
            self._set(name, value)
        return index

    def _mode(self, letter: str) -> None:
        mode = _MODES.get(letter, letter)
        if self.settings.mode not in ("", mode):
            raise UsageError("You may not specify more than one '-Acdtrux', '--delete' or  '--test-label' option")
        self.settings.mode = mode

    def _set(self, name: str, value: str) -> None:
        settings = self.settings
        match name:
            case "file":
                settings.file = value
            case "verbose":
                settings.verbose += 1
            case "directory" | "files-from" | "add-file":
                settings.operands.append(Operand({"add-file": "name"}.get(name, name), value))
            case "exclude":
                settings.exclusions.append(Exclusion(value, self._rules(exclude=True)))
            case "exclude-from":
                settings.exclude_files.append((value, self._rules(exclude=True)))
            case "exclude-vcs":
                settings.exclusions += [Exclusion(name, self._rules(exclude=True)) for name in VCS]
            case "exclude-backups":
                settings.exclusions += [Exclusion(name, self._rules(exclude=True)) for name in BACKUPS]
            case (
                "wildcards"
                | "no-wildcards"
                | "anchored"
                | "no-anchored"
                | "ignore-case"
                | "no-ignore-case"
                | ("wildcards-match-slash")
                | "no-wildcards-match-slash"
            ):
                self._explicit[name.removeprefix("no-")] = not name.startswith("no-")
                settings.select = self._rules(exclude=False)
                settings.wildcards_said = "wildcards" in self._explicit
            case "transform" | "xform":
                settings.transforms += parse_transform(value)
            case "strip-components":
                if not value.isdecimal():
                    raise UsageError(f"{value}: Invalid number of elements", hint=False)
                settings.strip = int(value[:18])
            case "use-compress-program":
                settings.program = value
            case "auto-compress":
                settings.auto_compress = True
            case "null":
                settings.null = True
            case "no-null":
                settings.null = False
            case "no-recursion":
                settings.recursive = False
            case "recursion":
                settings.recursive = True
            case "format":
                if value not in _FORMATS:
                    raise UsageError(f"{value}: Invalid archive format")
                settings.format = _FORMATS[value]
            case "posix":
                settings.format = "posix"
            case "old-archive" | "portability":
                settings.format = "v7"
            case "help" | "usage" | "version":
                settings.asked = name
            case _ if name in _COMPRESSIONS:
                if settings.compression not in ("", _COMPRESSIONS[name]):
                    raise UsageError("Conflicting compression options")
                settings.compression = _COMPRESSIONS[name]
            case _ if name in _LONG_WITH_VALUE:
                settings.values[name] = value
            case _:
                settings.flags.add(name)

    def _rules(self, *, exclude: bool) -> NameRules:
        said = self._explicit
        return NameRules(
            wildcards=said.get("wildcards", exclude),
            anchored=said.get("anchored", not exclude),
            ignore_case=said.get("ignore-case", False),
            match_slash=said.get("wildcards-match-slash", True),
        )


def _modernise(args: list[str]) -> list[str]:
    """`tar czf X ...` as `tar -c -z -f X ...`: the letters' values follow in their order."""
    if not args or args[0].startswith("-") or not args[0]:
        return args
    rest = args[1:]
    made: list[str] = []
    for letter in args[0]:
        made.append("-" + letter)
        if letter in _SHORT_WITH_VALUE:
            if not rest:
                raise UsageError(f"Old option '{letter}' requires an argument.")
            made.append(rest.pop(0))
    return made + rest
