"""`git log` and `git whatchanged`: commits and what they changed."""

from __future__ import annotations

from belljar.bin.git.reflog import reflog
from belljar.bin.git.repository.changes import commit_pairs
from belljar.bin.git.repository.combined import merge_patches
from belljar.bin.git.repository.diff_output import colored, filter_pairs, render_pairs, show_pairs, wants_form
from belljar.bin.git.repository.diffs import Pair
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.formats import NAMED, Formatter
from belljar.bin.git.repository.graph import Graph
from belljar.bin.git.repository.log_options import LogOptions
from belljar.bin.git.repository.notes import Notes, default_ref, full_ref
from belljar.bin.git.repository.pathspec import match_paths
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.selection import Selection, choose, count_text
from belljar.bin.git.repository.text import text_of


def log(repo: Repository, args: list[str]) -> int:
    if "-g" in args or "--walk-reflogs" in args:
        return reflog(repo, [arg for arg in args if arg not in ("-g", "--walk-reflogs", "--oneline")])
    chosen = choose(repo, args)
    if chosen.options.count:
        repo.process.print(count_text(chosen))
        return 0
    _print_log(repo, chosen)
    return 0


def whatchanged(repo: Repository, args: list[str]) -> int:
    """`git whatchanged`: a log with what each commit changed, merges left out."""
    return log(repo, ["--raw", "--no-merges", *args])


def make_formatter(
    repo: Repository, options: LogOptions, marks: dict[bytes, str] | None = None
) -> tuple[Formatter, bool, bool]:
    """The formatter, whether a newline ends each commit (or stands between), and whether it is a one-line form."""
    form = (repo.config("format.pretty") or "medium") if options.form is None else options.form
    short = options.abbrev_commit
    ends = True
    for _ in range(8):  # an alias may stand for another
        if form in NAMED or (alias := repo.config(f"pretty.{form}")) is None:
            break
        form = alias
    if form == "oneline":
        short = options.abbrev_commit
    elif form.startswith("format:"):
        form, ends = form[7:], False
    elif form.startswith("tformat:"):
        form = form[8:]
    elif form not in NAMED and form != "reference" and "%" not in form and form:
        raise GitError(f"invalid --pretty format: {form}")
    decorate = options.decorate not in (None, "no", "false", "auto") and not options.no_decorate
    if options.decorate is None and repo.process.isatty(1) and not options.no_decorate:
        decorate = True
    full = not short or options.no_abbrev
    digits = 7
    if options.abbrev is not None and options.abbrev.isdecimal():
        digits = min(40, max(4, int(options.abbrev[:3])))
    color = colored(repo, options.color, never=options.no_color)
    formatter = Formatter(
        repo,
        form,
        options.date,
        decorate=decorate,
        full=full,
        digits=digits,
        color=color,
        marks=marks,
        notes=_chosen_notes(repo, options),
    )
    return formatter, ends, form not in NAMED or form == "oneline"


def _chosen_notes(repo: Repository, options: LogOptions) -> list[Notes]:
    """Without a word about them, and a format, those that `git notes` makes."""
    if options.no_notes:
        return []
    refs = [
        full_ref(name) if name else default_ref(repo)
        for name in (options.notes, options.show_notes)
        if name is not None
    ]
    if options.notes is None and (options.show_notes or options.form is None):
        refs.insert(0, default_ref(repo))
    return [Notes(repo, ref) for ref in refs]


def _print_log(repo: Repository, chosen: Selection) -> None:
    process, options, commits = repo.process, chosen.options, chosen.commits
    formatter, ends, compact = make_formatter(repo, options, chosen.marks if options.left else None)
    wants_diff = wants_form(options)
    graph = Graph() if options.graph else None
    end = "\0" if options.null else "\n"
    for number, sha in enumerate(commits):
        commit = repo.store.commit(sha)
        process.budget.charge(10)
        text = formatter.show(sha)
        pairs: list[Pair] = []
        if (
            wants_diff
            and not options.lines
            and (len(commit.parents) < 2 or options.merge_form not in (None, "off") or options.first_parent)
        ):
            found = chosen.followed[sha] if options.follow else commit_pairs(repo, commit, chosen.paths)
            pairs = filter_pairs(found, options.filter)
        traced = chosen.traced.get(sha) if not options.no_patch else None
        dense = len(commit.parents) > 1 and options.merge_form in ("dense", "combined") and not options.first_parent
        if dense and (options.patch or not wants_diff) and not options.no_patch:
            names = set(match_paths(repo, chosen.paths, list(repo.tree_of(sha)))) if chosen.paths else None
            traced, pairs = merge_patches(repo, sha, names, dense=options.merge_form == "dense"), []
        if graph is not None:
            parents = [bytes(parent) for parent in commit.parents if parent in chosen.known]
            star, lines, rest = graph.step(sha, parents)
            first, *others = text.split("\n")
            process.print((star + first).rstrip() if not first else star + first)
            last = number == len(commits) - 1
            pending = list(lines)
            if pairs or traced is not None:
                patches = (
                    traced
                    if traced is not None
                    else b"".join(render_pairs(repo, pairs, options, default=options.patch))
                )
                rows = text_of(patches).split("\n")[:-1]
                others += ["", *rows] if not compact or traced is not None else rows
            for other in others:
                prefix = pending.pop(0) if pending and (not compact or pairs or traced is not None) else rest
                process.print(prefix + other)
            for line in pending:
                process.print(line)
            if not compact and not last:
                process.print(graph.between())
            continue
        if number and (not compact or not ends):
            process.print("", end=end)
        process.print(
            text, end=end if compact and ends and text else "" if compact and (not ends or not text) else "\n"
        )
        if traced is not None:
            process.print("")
            process.stdout.write(traced)
        elif pairs:
            if not compact:
                process.print("")
            elif formatter.form != "oneline" and text:
                process.print("" if ends else "\n", end="\n" if ends else "")
            show_pairs(repo, pairs, options, default=options.patch)
    if commits and compact and not ends and process.isatty(1):
        process.print("")
