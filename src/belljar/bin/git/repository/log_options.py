"""The options of `git log` and its relatives."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import choice, flag, many, value
from belljar.bin.git.repository.diff_output import DiffOptions


@dataclass(frozen=True, slots=True)
class LogOptions(DiffOptions):
    number: str | None = value("-n", "--max-count", "limit the number of commits", metavar="N")
    skip: str | None = value("--skip", "skip commits", metavar="N")
    graph: bool = flag("--graph", "draw a graph")
    all: bool = flag("--all", "all refs")
    branches: bool = flag("--branches", "all branches")
    form: str | None = value("--format", "--pretty", "how to show commits", metavar="FORMAT", bare="medium")
    date: str = value("--date", "how to show dates", metavar="STYLE", default="default")
    author: tuple[str, ...] = many("--author", "limit by author", metavar="PATTERN")
    grep: tuple[str, ...] = many("--grep", "limit by message", metavar="PATTERN")
    ignore_case: bool = flag("-i", "--regexp-ignore-case", "ignore case in patterns")
    since: str | None = value("--since", "--after", "newer than a date", metavar="DATE")
    until: str | None = value("--until", "--before", "older than a date", metavar="DATE")
    decorate: str | None = value("--decorate", "show names of refs", metavar="STYLE", bare="short")
    no_decorate: bool = flag("--no-decorate", "don't show names of refs")
    reverse: bool = flag("--reverse", "oldest first")
    no_merges: bool = flag("--no-merges", "leave merges out")
    merges: bool = flag("--merges", "only merges")
    first_parent: bool = flag("--first-parent", "follow only the first parent")
    topo: bool = flag("--topo-order", "no parents before their children; lines of development together")
    date_order: bool = flag("--date-order", "--author-date-order", "no parents before their children")
    abbrev_commit: bool = flag("--abbrev-commit", "abbreviate names")
    no_abbrev: bool = flag("--no-abbrev-commit", "don't")
    abbrev: str | None = value("--abbrev", "digits of an abbreviated name", metavar="N", bare="7")
    lines: tuple[str, ...] = many("-L", "the history of lines", metavar="START,END:FILE")
    follow: bool = flag("--follow", "follow a file through renames")
    pickaxe: str | None = value("-S", "changes in the number of a string", metavar="STRING")
    pickaxe_regex: str | None = value("-G", "changes that match", metavar="PATTERN")
    left: bool = flag("--left-right", "mark the side of a...b that a commit is on")
    count: bool = flag("--count", "only the number of commits")
    tags: bool = flag("--tags", "all tags")
    remotes: bool = flag("--remotes", "all remote branches")
    committer: tuple[str, ...] = many("--committer", "limit by committer", metavar="PATTERN")
    invert_grep: bool = flag("--invert-grep", "messages that do not match --grep")
    all_match: bool = flag("--all-match", "messages that match every --grep")
    extended: bool = flag("-E", "--extended-regexp", "patterns are extended ones")
    fixed: bool = flag("-F", "--fixed-strings", "patterns are plain text")
    perl: bool = flag("-P", "--perl-regexp", "patterns are Perl's")
    encoding: str | None = value("--encoding", "(UTF-8)", metavar="NAME")
    full_history: bool = flag("--full-history", "--sparse", "--dense", "(nothing is simplified away here)")
    by_decoration: bool = flag("--simplify-by-decoration", "only commits that refs point to")
    ancestry_path: bool = flag("--ancestry-path", "only what is between the ends of a range")
    cherry_pick: bool = flag("--cherry-pick", "leave out commits whose change is on the other side too")
    parents: bool = flag("--parents", "show the parents too")
    min_parents: str | None = value("--min-parents", "limit by the number of parents", metavar="N")
    max_parents: str | None = value("--max-parents", "limit by the number of parents", metavar="N")
    objects: bool = flag("--objects", "trees and files, too")
    no_walk: str | None = value("--no-walk", "only the commits that are named", metavar="ORDER", bare="sorted")
    conflicting: bool = flag("--merge", "commits that touch files in conflict")
    notes: str | None = value("--notes", "show these notes", metavar="REF", bare="")
    show_notes: str | None = value("--show-notes", "show these notes, too", metavar="REF", bare="")
    no_notes: bool = flag("--no-notes", "don't show notes")
    show_signature: bool = flag("--show-signature", "(there are no keys here)")
    merge_form: str | None = choice(
        {"-m": "separate", "-c": "combined", "--cc": "dense", "--no-diff-merges": "off"},
        "how merges are shown",
    )  # fmt: skip
