"""`git show`: objects of any kind."""

from __future__ import annotations

from dulwich.objects import Blob, Commit, Tag, Tree

from belljar.bin._kit.options import read_options
from belljar.bin.git.log import make_formatter
from belljar.bin.git.repository.arguments import attach_numbers, split_operands
from belljar.bin.git.repository.changes import commit_pairs
from belljar.bin.git.repository.combined import merge_patches
from belljar.bin.git.repository.diff_output import filter_pairs, show_pairs, wants_form
from belljar.bin.git.repository.diffs import compare
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.log_options import LogOptions
from belljar.bin.git.repository.pathspec import match_paths, restrict
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, resolve
from belljar.bin.git.repository.text import date, text_of


def _tagger(tag: Tag, options: LogOptions) -> str:
    """The lines that say who made a tag, as far as the format of commits has them."""
    if not tag.tagger or options.form == "oneline":
        return ""
    who, when = text_of(tag.tagger), date(tag.tag_time or 0, tag.tag_timezone or 0, options.date)
    if options.form == "fuller":
        return f"Tagger:     {who}\nTaggerDate: {when}\n"
    return f"Tagger: {who}\n" + (f"Date:   {when}\n" if options.form in (None, "medium") else "")


def show(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(LogOptions, attach_numbers(args))
    revisions, paths = split_operands(repo, args, operands)
    process = repo.process
    if not revisions and repo.head() is None:
        branch = (repo.refs.branch() or "HEAD").removeprefix("refs/heads/")
        raise GitError(f"your current branch '{branch}' does not have any commits yet")
    for number, revision in enumerate(revisions or ["HEAD"]):
        try:
            sha = resolve(repo, revision)
        except KeyError:
            find_commit(repo, revision)
            raise
        item = repo.store.get(sha)
        if isinstance(item, Blob):
            process.stdout.write(bytes(item.data))
            continue
        if isinstance(item, Tree):
            process.print(f"tree {revision}\n")
            for entry in item.iteritems():
                name = text_of(entry.path or b"")
                process.print(name + ("/" if entry.mode == 0o040000 else ""))
            continue
        if number:
            process.print("")
        if isinstance(item, Tag):
            process.print(f"tag {text_of(item.name)}")
            process.print(_tagger(item, options) + f"\n{text_of(item.message or b'')}")
            sha = bytes(item.object[1])
        commit = repo.store.commit(sha)
        merge = len(commit.parents) > 1
        if merge and options.merge_form == "separate":
            for number, parent in enumerate(commit.parents):
                if number:
                    process.print("")
                _show_against(repo, commit, bytes(parent), options, paths)
            continue
        formatter, _, compact = make_formatter(repo, options)
        text = formatter.show(bytes(commit.id))
        process.print(text, end="\n" if text or not compact else "")
        plain = wants_form(options) and not options.patch
        if merge and not plain and not options.no_patch and not options.first_parent:
            if options.merge_form == "off":
                continue
            names = set(match_paths(repo, paths, list(repo.tree_of(bytes(commit.id))))) if paths else None
            body = merge_patches(repo, bytes(commit.id), names, dense=options.merge_form != "combined")
            if not compact or text:
                process.print("")
            process.stdout.write(body)
            continue
        if not options.no_patch:
            pairs = filter_pairs(commit_pairs(repo, commit, paths), options.filter)
            if pairs:
                if not compact or (formatter.form != "oneline" and text):
                    process.print("")
                show_pairs(repo, pairs, options)
    return 0


def _show_against(repo: Repository, commit: Commit, parent: bytes, options: LogOptions, paths: list[str]) -> None:
    """A merge beside one of its parents (-m)."""
    formatter, _, compact = make_formatter(repo, options)
    text = formatter.show(bytes(commit.id))
    first, newline, rest = text.partition("\n")
    repo.process.print(f"{first} (from {parent.decode()}){newline}{rest}" if not compact else text)
    pairs = compare(repo, *restrict(repo, paths, repo.tree_of(parent), repo.tree_of(bytes(commit.id))))
    if pairs := filter_pairs(pairs, options.filter):
        if not compact:
            repo.process.print("")
        show_pairs(repo, pairs, options)
