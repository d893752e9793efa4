"""Differences on the screen: the options of `git diff` and its relatives, and each of the forms they ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import choice, flag, value
from belljar.bin.git.repository.diffs import Key, Look, Pair, changes, counts, mode_lines, patch, quote_path, stat_text
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.word_diff import word_hunks

RESET = b"\x1b[m"
_BOLD, _CYAN, _RED, _GREEN, _BAD_SPACE = b"\x1b[1m", b"\x1b[36m", b"\x1b[31m", b"\x1b[32m", b"\x1b[41m"


@dataclass(frozen=True, slots=True)
class DiffOptions:
    patch: bool = flag("-p", "-u", "--patch", "generate patch")
    no_patch: bool = flag("-s", "--no-patch", "suppress diff output")
    stat: str | None = value("--stat", "show a diffstat", metavar="WIDTH", bare="")
    patch_with_stat: bool = flag("--patch-with-stat", "a diffstat and the patch")
    shortstat: bool = flag("--shortstat", "only the last line of --stat")
    numstat: bool = flag("--numstat", "lines added and removed in numbers")
    summary: bool = flag("--summary", "creations, renames and mode changes")
    name_only: bool = flag("--name-only", "show only names of changed files")
    name_status: bool = flag("--name-status", "show only names and status of changed files")
    raw: bool = flag("--raw", "modes, objects and status")
    cached: bool = flag("--cached", "--staged", "compare the index with a commit")
    quiet: bool = flag("--quiet", "no output, only a status")
    exit_code: bool = flag("--exit-code", "exit with 1 if there were differences")
    unified: str | None = value("-U", "--unified", "lines of context", metavar="N")
    no_renames: bool = flag("--no-renames", "turn off rename detection")
    find_renames: str | None = value("-M", "--find-renames", "(always on)", metavar="N", bare="")
    color: str | None = value("--color", "show colours", metavar="WHEN", bare="always")
    no_color: bool = flag("--no-color", "show no colours")
    null: bool = flag("-z", "separate names with NUL")
    check: bool = flag("--check", "warn about whitespace errors")
    no_ext: bool = flag("--no-ext-diff", "(there are none)")
    no_textconv: bool = flag("--no-textconv", "(there are none)")
    filter: str | None = value("--diff-filter", "select by status letters", metavar="LETTERS")
    all_space: bool = flag("-w", "--ignore-all-space", "ignore white space")
    space_change: bool = flag("-b", "--ignore-space-change", "ignore changes in the amount of white space")
    space_at_end: bool = flag("--ignore-space-at-eol", "ignore white space at the end of lines")
    return_at_end: bool = flag("--ignore-cr-at-eol", "ignore a carriage return at the end of lines")
    blank_lines: bool = flag("--ignore-blank-lines", "ignore changes of blank lines")
    reverse_sides: bool = flag("-R", "swap the two sides")
    no_prefix: bool = flag("--no-prefix", "show no a/ and b/")
    src_prefix: str | None = value("--src-prefix", "instead of a/", metavar="PREFIX")
    dst_prefix: str | None = value("--dst-prefix", "instead of b/", metavar="PREFIX")
    relative: str | None = value("--relative", "only what is below a directory", metavar="PATH", bare=".")
    text: bool = flag("-a", "--text", "treat all files as text")
    full_index: bool = flag("--full-index", "whole names of objects")
    minimal: bool = flag("--minimal", "--patience", "--histogram", "(one algorithm serves all)")
    algorithm: str | None = value("--diff-algorithm", "(one algorithm serves all)", metavar="NAME")
    word_diff: str | None = value("--word-diff", "show words that changed", metavar="MODE", bare="plain")
    color_words: bool = flag("--color-words", "--word-diff=color")
    output: str | None = value("--output", "write to a file", metavar="FILE")
    side: str | None = choice(
        {"--base": "base", "--ours": "ours", "--theirs": "theirs"},
        "the side of a conflict to compare with",
    )
    no_index: bool = flag("--no-index", "compare two paths of the file system")


def wants_form(options: DiffOptions) -> bool:
    """Whether the options ask for differences where none are shown by default (`git log`)."""
    return (
        options.patch or options.patch_with_stat or options.stat is not None or options.name_only
        or options.name_status or options.numstat or options.shortstat or options.summary or options.raw
        or options.check or options.word_diff is not None or options.color_words or options.unified is not None
    )  # fmt: skip


def colored(repo: Repository, when: str | None, *, never: bool) -> bool:
    """Whether colours are shown: as `--color`, then color.ui, then what stdout is, say."""
    wanted = "never" if never else when or repo.config("color.ui") or "auto"
    if wanted in ("always", "never", "false"):
        return wanted == "always"
    return repo.process.isatty(1) and repo.process.env.get("TERM", "dumb") != "dumb"


def look_of(options: DiffOptions) -> Look:
    context = 3
    if options.unified is not None:
        if not options.unified.isdecimal():
            raise GitError("--unified expects a numerical value", 129, "error: ")
        context = int(options.unified[:9])
    old, new = ("", "") if options.no_prefix else ("a/", "b/")
    if options.src_prefix is not None:
        old = options.src_prefix
    if options.dst_prefix is not None:
        new = options.dst_prefix
    if options.reverse_sides:
        old, new = new, old
    digits = 40 if options.full_index else 7
    return Look(context, _key(options), options.blank_lines, old, new, digits, options.text)


def _key(options: DiffOptions) -> Key | None:
    if options.all_space:
        return lambda line: re.sub(rb"\s+", b"", line)
    if options.space_change:
        return lambda line: re.sub(rb"[ \t\r\f\v]+", b" ", line.rstrip())
    if options.space_at_end:
        return lambda line: line.rstrip()
    if options.return_at_end:
        return lambda line: line.removesuffix(b"\n").removesuffix(b"\r")
    return None


def filter_pairs(pairs: list[Pair], letters: str | None) -> list[Pair]:
    """Apply `--diff-filter`: capitals select, small letters exclude."""
    if not letters:
        return pairs
    wanted, refused = {c for c in letters if c.isupper()}, {c.upper() for c in letters if c.islower()}
    return [p for p in pairs if p.letter[0] not in refused and (not wanted or p.letter[0] in wanted)]


def show_pairs(
    repo: Repository,
    pairs: list[Pair],
    options: DiffOptions,
    *,
    default: bool = True,
    unstored: frozenset[str] = frozenset(),
) -> None:
    """Differences in the form that options ask for; a patch if none does and `default`.

    `unstored` are paths whose new side is a file that is no object yet.
    """
    parts = render_pairs(repo, pairs, options, default=default, unstored=unstored)
    if options.output is not None:
        repo.process.write_file(options.output, b"".join(parts))
        return
    for part in parts:
        repo.process.stdout.write(part)


def render_pairs(
    repo: Repository,
    pairs: list[Pair],
    options: DiffOptions,
    *,
    default: bool = True,
    unstored: frozenset[str] = frozenset(),
) -> Iterator[bytes]:
    process = repo.process
    pairs = filter_pairs(pairs, options.filter)
    if options.quiet or options.no_patch:
        return
    look = look_of(options)
    if options.name_only or options.name_status:
        yield from (_names(pair, options) for pair in pairs)
        return
    any_form = False
    if options.raw:
        any_form = True
        yield from (_raw(pair, options, look, pair.path in unstored) for pair in pairs)
    if options.numstat:
        any_form = True
        for pair in pairs:
            added, removed = counts(process, pair, look)
            numbers = "-\t-" if pair.binary else f"{added}\t{removed}"
            yield _bytes(f"{numbers}\t{quote_path(pair.path)}\n")
    if options.stat is not None or options.shortstat or options.patch_with_stat:
        any_form = True
        width = (options.stat or "").partition(",")[0][:9]
        columns = int(width) if width.isdecimal() else 80
        only = options.shortstat and options.stat is None
        yield _bytes(stat_text(process, pairs, columns, summary_only=only, look=look))
    if options.summary:
        any_form = True
        yield _bytes(mode_lines(pairs))
    words = "color" if options.color_words else options.word_diff
    asked = options.patch or options.patch_with_stat or words is not None or options.unified is not None
    if asked or (default and not any_form):
        if any_form and pairs:
            yield b"\n"
        color = colored(repo, options.color, never=options.no_color) or words == "color"
        for pair in pairs:
            text = word_hunks(process, pair, look, words) if words else patch(process, pair, look)
            yield paint(text, words=words is not None) if color else text


def _bytes(text: str) -> bytes:
    return fsencode(text)


def _names(pair: Pair, options: DiffOptions) -> bytes:
    words = [pair.path]
    if options.name_status:
        words = [pair.letter, str(pair.old), pair.path] if pair.letter[0] == "R" else [pair.letter, pair.path]
    if options.null:
        return _bytes("".join(word + "\0" for word in words))
    return _bytes("\t".join(quote_path(word) for word in words) + "\n")


def _raw(pair: Pair, options: DiffOptions, look: Look, unstored: bool) -> bytes:
    shas = (pair.old_sha, b"0" * 40 if unstored else pair.new_sha)
    objects = " ".join(sha[: look.digits].decode() for sha in shas)
    head = f":{pair.old_mode:06o} {pair.new_mode:06o} {objects} {pair.letter}"
    names = [str(pair.old), pair.path] if pair.letter.startswith("R") else [pair.path]
    if options.null:
        return _bytes("".join(word + "\0" for word in (head, *names)))
    return _bytes("\t".join([head, *(quote_path(name) for name in names)]) + "\n")


def paint(text: bytes, *, words: bool = False) -> bytes:
    """A patch in git's colours; what `word_hunks` made has its own behind the heads of hunks."""
    out: list[bytes] = []
    inside = False
    for line in text.split(b"\n")[:-1]:
        if line.startswith(b"diff --git "):
            inside = False
        if line.startswith(b"@@ ") and (match := re.match(rb"(@@ .*? @@)( ?)(.*)", line)):
            inside = True
            tail = b" " + RESET + match[3] + RESET if match[2] else b""
            out.append(_CYAN + match[1] + RESET + tail)
        elif not inside:
            out.append(_BOLD + line + RESET)
        elif words:
            out.append(line)
        elif line.startswith(b"-"):
            out.append(_RED + line + RESET)
        elif line.startswith(b"+"):
            kept = line[1:].rstrip(b" \t")
            spaces = line[1 + len(kept) :]
            shown = _GREEN + b"+" + RESET + (_GREEN + kept + RESET if kept else b"")
            out.append(shown + (_BAD_SPACE + spaces + RESET if spaces else b""))
        else:
            out.append(line + RESET)
    return b"".join(line + b"\n" for line in out)


def check_space(repo: Repository, pairs: list[Pair], look: Look) -> bool:
    """Say what is wrong with the white space of new lines; True if anything is."""
    found = False
    for pair in pairs:
        _, lines, changed = changes(repo.process, pair.before, pair.after, look)
        for number in (n for c in changed for n in range(c.low_b, c.high_b)):
            line = lines[number].removesuffix(b"\n")
            problems = []
            if re.search(rb"[ \t\r\f\v]$", line):
                problems.append("trailing whitespace")
            if re.match(rb"[ \t]* \t", line):
                problems.append("space before tab in indent")
            if re.match(rb"(<{7}|>{7}|\|{7}) |={7}$", line):
                repo.process.print(f"{pair.path}:{number + 1}: leftover conflict marker")
                found = True
            if problems:
                found = True
                repo.process.print(f"{pair.path}:{number + 1}: {', '.join(problems)}.")
                repo.process.stdout.write(b"+" + line + b"\n")
        last = len(lines)
        while last and not lines[last - 1].strip():
            last -= 1
        if last < len(lines) and changed and changed[-1].high_b == len(lines) and changed[-1].low_b <= last:
            found = True
            repo.process.print(f"{pair.path}:{last + 1}: new blank line at EOF.")
    return found
