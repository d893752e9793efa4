"""`git grep`: lines of tracked files, of the index or of commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dulwich.index import IndexEntry

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import choice, flag, many, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.arguments import split_operands
from belljar.bin.git.repository.diff_output import colored
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.ignores import find_untracked
from belljar.bin.git.repository.pathspec import from_here, match_paths
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_object
from belljar.bin.git.repository.store import SUBMODULE
from belljar.bin.git.repository.work import stat_of
from belljar.regex import Regex, RegexError, compile_any

_JOINERS = ("--and", "--or", "--not", "(", ")")


@dataclass(frozen=True, slots=True)
class GrepOptions:
    number: bool = flag("-n", "--line-number", "show line numbers")
    ignore_case: bool = flag("-i", "--ignore-case", "ignore case")
    names: bool = flag("-l", "--files-with-matches", "--name-only", "show only names")
    without: bool = flag("-L", "--files-without-match", "show names of files that don't match")
    count: bool = flag("-c", "--count", "show the number of matches")
    invert: bool = flag("-v", "--invert-match", "show lines that don't match")
    word: bool = flag("-w", "--word-regexp", "match whole words")
    only: bool = flag("-o", "--only-matching", "show only what matches")
    after: str | None = value("-A", "--after-context", "lines after", metavar="N")
    before: str | None = value("-B", "--before-context", "lines before", metavar="N")
    context: str | None = value("-C", "--context", "lines before and after", metavar="N")
    syntax: str = choice(
        {"-E": "egrep", "--extended-regexp": "egrep", "-F": "fixed", "--fixed-strings": "fixed", "-G": "grep",
         "--basic-regexp": "grep", "-P": "perl", "--perl-regexp": "perl"}, "kind of pattern", default="grep",
    )  # fmt: skip
    patterns: tuple[str, ...] = many("-e", "pattern", metavar="PATTERN")
    files: tuple[str, ...] = many("-f", "patterns from a file", metavar="FILE")
    quiet: bool = flag("-q", "--quiet", "only a status")
    no_name: bool = flag("-h", "don't show names")
    with_name: bool = flag("-H", "show names (as by default)")
    cached: bool = flag("--cached", "search the index")
    untracked: bool = flag("--untracked", "search untracked files, too")
    all_match: bool = flag("--all-match", "files that match every pattern")
    heading: bool = flag("--heading", "names above matches")
    null: bool = flag("-z", "--null", "NUL after names")
    text: bool = flag("-a", "--text", "binary files are text")
    no_binary: bool = flag("-I", "leave binary files out")
    full: bool = flag("--full-name", "names from the top of the work tree")
    color: str | None = value("--color", "show colours", metavar="WHEN", bare="always")
    no_color: bool = flag("--no-color", "--break", "--recursive", "-r", "(accepted)")
    most: str | None = value("-m", "--max-count", "at most so many lines of a file", metavar="N")


Test = Callable[[bytes], bool]


def grep(repo: Repository, args: list[str]) -> int:
    joined, plain = _take_expression(args)
    options, operands = read_options(GrepOptions, plain)
    patterns = list(options.patterns)
    for name in options.files:
        patterns += repo.process.read_file(name).decode("utf-8", "surrogateescape").splitlines()
    if not patterns and not joined:
        if not operands:
            raise GitError("no pattern given")
        patterns, operands = [operands[0]], operands[1:]
    test = _expression(joined, options) if joined else _regex(patterns, options).test
    spans = _regex(patterns or [word for word in joined if word not in _JOINERS], options)
    revisions, paths = split_operands(repo, plain if "--" in plain else [], operands)
    found = False
    for prefix, path, data in _sources(repo, revisions, paths, options):
        lines = data.split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        repo.process.budget.charge(1 + len(lines) // 4)
        hits = [n for n, line in enumerate(lines) if test(line) is not options.invert]
        if options.all_match and not all(any(_regex([p], options).test(line) for line in lines) for p in patterns):
            hits = []
        if options.most is not None and options.most.isdecimal():
            hits = hits[: int(options.most[:9])]
        if bool(hits) is options.without:
            continue
        found = True
        if options.quiet:
            return 0
        shown = path if options.full else from_here(repo, path)
        _show(repo, prefix + shown, data, lines, hits, options, spans)
    return 0 if found else 1


def _take_expression(args: list[str]) -> tuple[list[str], list[str]]:
    """Patterns joined by --and, --or, --not and parentheses; and the other arguments. Nothing if none are joined."""
    if not any(arg in _JOINERS for arg in args):
        return [], args
    joined: list[str] = []
    plain: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            plain += [word, *words]
        elif word in _JOINERS:
            joined.append(word)
        elif word == "-e":
            joined.append(next(words, ""))
        else:
            plain.append(word)
    return joined, plain


def _regex(patterns: list[str], options: GrepOptions) -> Regex:
    try:
        return compile_any(patterns, syntax=options.syntax, ignore_case=options.ignore_case, whole_word=options.word)
    except RegexError as error:
        raise GitError(f"command line, '{patterns[0]}': {error}") from None


def _expression(words: list[str], options: GrepOptions) -> Test:
    """--not binds strongest, then --and; patterns side by side are alternatives."""
    at = 0

    def alternatives() -> Test:
        nonlocal at
        tests = [together()]
        while at < len(words) and words[at] != ")":
            if words[at] == "--or":
                at += 1
            tests.append(together())
        return lambda line: any(test(line) for test in tests)

    def together() -> Test:
        nonlocal at
        tests = [single()]
        while at < len(words) and words[at] == "--and":
            at += 1
            tests.append(single())
        return lambda line: all(test(line) for test in tests)

    def single() -> Test:
        nonlocal at
        if at >= len(words):
            raise GitError(
                "unmatched parenthesis" if "(" in words else f"{words[-1]} not followed by pattern expression"
            )
        word = words[at]
        at += 1
        if word == "--not":
            inner = single()
            return lambda line: not inner(line)
        if word == "(":
            inner = alternatives()
            if at >= len(words):
                raise GitError("unmatched parenthesis")
            at += 1
            return inner
        if word in _JOINERS:
            raise GitError(f"not a pattern expression {word}")
        return _regex([word], options).test

    if words.count("(") > 200:
        raise GitError("too many parentheses")
    return alternatives()


def _sources(
    repo: Repository, revisions: list[str], paths: list[str], options: GrepOptions
) -> Iterator[tuple[str, str, bytes]]:
    """Prefix, path and contents of each file that is searched."""
    for revision in revisions:
        for path, (mode, sha) in repo.tree_at(find_object(repo, revision)).items():
            if mode == SUBMODULE:
                continue
            if not paths or match_paths(repo, paths, [path]):
                yield f"{revision}:", path, repo.store.blob(sha)
    if revisions:
        return
    names: dict[str, bytes | None] = {
        path: bytes(e.sha) if options.cached and isinstance(e, IndexEntry) else None for path, e in repo.index.items()
    }
    if options.untracked:
        names |= dict.fromkeys(find_untracked(repo, everything=True, ignored=False)[0])
    for path in sorted(match_paths(repo, paths or ["."], list(names))):
        staged = names[path]
        stat = stat_of(repo, path) if staged is None else None
        if staged is not None:
            yield "", path, repo.store.blob(staged)
        elif stat is not None and not stat.is_dir:
            yield "", path, repo.read_work(path, stat)


def _show(
    repo: Repository,
    name: str,
    data: bytes,
    lines: list[bytes],
    hits: list[int],
    options: GrepOptions,
    spans: Regex,
) -> None:
    write = repo.process.stdout.write
    color = colored(repo, options.color, never=options.no_color)
    raw = fsencode(name)
    tinted = b"\x1b[35m" + raw + b"\x1b[m" if color else raw
    if options.names or options.without:
        write(tinted + (b"\0" if options.null else b"\n"))
        return
    binary = b"\0" in data[:8000] and not options.text
    if binary and options.no_binary:
        return
    if options.count:
        write((b"" if options.no_name else tinted + _colon(b":", color)) + b"%d\n" % len(hits))
        return
    if binary:
        write(b"Binary file " + raw + b" matches\n")
        return
    if options.heading:
        write(tinted + b"\n")
    before, after = (_count(own, options.context) for own in (options.before, options.after))
    wanted = set(hits)
    shown = sorted({n for hit in hits for n in range(max(0, hit - before), min(len(lines), hit + after + 1))})
    last: int | None = None
    for n in shown:
        if last is not None and n != last + 1 and (before or after):
            write(_colon(b"--", color) + b"\n")
        last = n
        mark = _colon(b":" if n in wanted else b"-", color)
        head = b"" if options.no_name or options.heading else tinted + mark
        if options.number:
            head += (b"\x1b[32m%d\x1b[m" if color else b"%d") % (n + 1) + mark
        line = lines[n]
        if options.only and n in wanted:
            for match in spans.finditer(line):
                if match.end() > match.start():
                    text = line[match.start() : match.end()]
                    write(head + (b"\x1b[1;31m" + text + b"\x1b[m" if color else text) + b"\n")
            continue
        if color and n in wanted and not options.invert:
            line = _painted(line, spans)
        write(head + line + b"\n")


def _painted(line: bytes, spans: Regex) -> bytes:
    out: list[bytes] = []
    done = 0
    for match in spans.finditer(line):
        if match.end() > match.start():
            out += [line[done : match.start()], b"\x1b[1;31m", line[match.start() : match.end()], b"\x1b[m"]
            done = match.end()
    return b"".join([*out, line[done:]])


def _colon(mark: bytes, color: bool) -> bytes:
    return b"\x1b[36m" + mark + b"\x1b[m" if color else mark


def _count(own: str | None, both: str | None) -> int:
    text = own if own is not None else both
    return int(text[:6]) if text is not None and text.isdecimal() else 0
