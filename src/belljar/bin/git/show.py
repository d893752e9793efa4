"""`git show`: objects of any kind."""

from __future__ import annotations

from dulwich.objects import Blob, Tag, Tree

from belljar.bin._kit.options import parse
from belljar.bin.git.log import make_formatter
from belljar.bin.git.repository.arguments import attach_numbers, split_operands
from belljar.bin.git.repository.changes import commit_pairs
from belljar.bin.git.repository.diff_output import filter_pairs, show_pairs
from belljar.bin.git.repository.log_options import LogOptions
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, resolve
from belljar.bin.git.repository.text import date, text_of


def show(repo: Repository, args: list[str]) -> int:
    parsed = parse(LogOptions, attach_numbers(args))
    options = LogOptions(**parsed.values)
    revisions, paths = split_operands(repo, args, parsed.operands)
    process = repo.process
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
            if item.tagger:
                process.print(f"Tagger: {text_of(item.tagger)}")
                process.print(f"Date:   {date(item.tag_time or 0, item.tag_timezone or 0, options.date)}")
            process.print(f"\n{text_of(item.message or b'')}")
            sha = bytes(item.object[1])
        commit = repo.store.commit(sha)
        formatter, _, compact = make_formatter(repo, options)
        text = formatter.show(bytes(commit.id))
        process.print(text, end="\n" if text or not compact else "")
        merge = len(commit.parents) > 1
        if (not merge or options.stat is not None or options.first_parent_merges) and not options.no_patch:
            pairs = filter_pairs(commit_pairs(repo, commit, paths), options.filter)
            if pairs:
                if not compact or (formatter.form != "oneline" and text):
                    process.print("")
                show_pairs(repo, pairs, options)
    return 0
