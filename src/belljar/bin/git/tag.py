"""`git tag`: tags listed, made and deleted."""

from __future__ import annotations

from dulwich.objects import Commit, ObjectID, Tag

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import flag, many, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.editor import edit_message
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.ref_list import ListOptions, Ref, attach_values, format_ref, limit_refs, sort_refs
from belljar.bin.git.repository.refs import check_name
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import resolve
from belljar.bin.git.repository.text import subject_of, text_of
from belljar.libc.pattern import compile_pattern


@dataclass(frozen=True, slots=True)
class Options(ListOptions):
    annotate: bool = flag("-a", "--annotate", "annotated tag, needs a message")
    message: tuple[str, ...] = many("-m", "--message", "tag message", metavar="MESSAGE")
    delete: bool = flag("-d", "--delete", "delete tags")
    list: bool = flag("-l", "--list", "list tag names")
    force: bool = flag("-f", "--force", "replace the tag if exists")
    lines: str | None = value("-n", "print lines of each message", metavar="N", bare="1")
    file: str | None = value("-F", "--file", "read the message from a file", metavar="FILE")
    sign: bool = flag("-s", "--sign", "sign the tag")


def tag(repo: Repository, args: list[str]) -> int:
    options, names = read_options(Options, attach_values(args))
    if options.delete:
        status = 0
        for name in names:
            sha = repo.refs.get(f"refs/tags/{name}")
            if sha is None:
                repo.process.error(f"error: tag '{name}' not found.\n")
                status = 1
                continue
            repo.refs.delete(f"refs/tags/{name}")
            repo.process.print(f"Deleted tag '{name}' (was {sha[:7].decode()})")
        return status
    if not names or options.list or options.lines or options.limits():
        refs = [Ref(name, sha) for name, sha in repo.refs.under("refs/tags/").items()]
        if names:
            refs = [
                r for r in refs if any(compile_pattern(p).matches(r.name.removeprefix("refs/tags/")) for p in names)
            ]
        refs = limit_refs(repo, refs, options)
        return _list_tags(repo, sort_refs(repo, refs, options.sort), options.lines, options.form)
    if options.sign:
        raise GitError("there are no keys here to sign with: gpg failed to sign the data", 128, "error: ")
    name = names[0]
    if not check_name(name):
        raise GitError(f"'{name}' is not a valid tag name.")
    if repo.refs.get(f"refs/tags/{name}") is not None and not options.force:
        raise GitError(f"tag '{name}' already exists")
    try:
        sha = resolve(repo, names[1] if len(names) > 1 else "HEAD")
    except KeyError:
        raise GitError(f"Failed to resolve '{names[1] if len(names) > 1 else 'HEAD'}' as a valid ref.") from None
    if options.annotate or options.message or options.file is not None:
        if options.file is not None:
            text = text_of(repo.process.read_file(options.file))
        else:
            text = "\n\n".join(options.message) if options.message else edit_message(repo)
        item = Tag()
        item.name = fsencode(name)
        item.object = (type(repo.store.get(sha)), ObjectID(sha))
        item.tagger = repo.identity("COMMITTER")
        item.tag_time, item.tag_timezone = repo.now("COMMITTER")
        item.message = fsencode(text.strip("\n") + "\n")
        sha = repo.store.add(item)
    before = repo.refs.get(f"refs/tags/{name}")
    repo.refs.write(f"refs/tags/{name}", sha.decode())
    if before is not None and before != sha:
        repo.process.print(f"Updated tag '{name}' (was {before[:7].decode()})")
    return 0


def _list_tags(repo: Repository, refs: list[Ref], lines: str | None, form: str | None) -> int:
    for ref in refs:
        name = ref.name.removeprefix("refs/tags/")
        if form is not None:
            repo.process.print(format_ref(repo, ref, form))
            continue
        if lines is None:
            repo.process.print(name)
            continue
        item = repo.store.get(ref.sha)
        message = text_of((item.message if isinstance(item, (Tag, Commit)) else b"") or b"")
        wanted = int(lines[:9]) if lines.isdecimal() else 1
        first, *rest = message.rstrip("\n").split("\n")[: max(1, wanted)] if wanted > 1 else [subject_of(message)]
        repo.process.print("\n".join([f"{name:<15} {first}", *(f"    {line}" for line in rest)]))
    return 0
