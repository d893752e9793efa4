"""`git notes`: texts about commits, and other objects, that don't change them."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import flag, many, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.editor import run_editor
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.notes import Notes, default_ref, full_ref
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import resolve
from belljar.bin.git.repository.text import strip_space, text_of

_REMARKS = """
#
# Write/edit the notes for the following object:
#
"""


@dataclass(frozen=True, slots=True)
class Options:
    force: bool = flag("-f", "--force", "replace existing notes")
    message: tuple[str, ...] = many("-m", "--message", "a paragraph of the note", metavar="TEXT")
    file: str | None = value("-F", "--file", "the note, from a file", metavar="FILE")
    reuse: str | None = value("-C", "--reuse-message", "an object's contents as the note", metavar="OBJECT")
    allow_empty: bool = flag("--allow-empty", "keep an empty note")
    missing: bool = flag("--ignore-missing", "no note is no mistake")
    stdin: bool = flag("--stdin", "names of objects from standard input")
    verbose: bool = flag("-v", "--verbose", "say more")
    dry_run: bool = flag("-n", "--dry-run", "only say what would be done")


def notes(repo: Repository, args: list[str]) -> int:
    ref, args = _take_ref(repo, args)
    verb, rest = (args[0], args[1:]) if args and not args[0].startswith("-") else ("list", args)
    options, words = read_options(Options, rest)
    if verb == "get-ref":
        repo.process.print(ref)
        return 0
    kept = Notes(repo, ref)
    match verb:
        case "list":
            return _list(repo, kept, words)
        case "show":
            text = kept.text(about := _object(repo, words))
            if text is None:
                raise _missing(about)
            repo.process.stdout.write(fsencode(text))
            return 0
        case "add" | "append" | "edit":
            return _write(repo, kept, verb, options, words)
        case "copy":
            return _copy(repo, kept, options, words)
        case "remove":
            return _remove(repo, kept, options, words)
        case "prune":
            return _prune(repo, kept, options)
        case "merge":
            raise GitError("git notes merge is not there: use git notes copy, or add -f", 1, "error: ")
    raise GitError(f"unknown subcommand: `{verb}'\nusage: git notes [--ref <notes-ref>] <command>", 129, "error: ")


def _take_ref(repo: Repository, args: list[str]) -> tuple[str, list[str]]:
    if args and args[0].startswith("--ref="):
        return full_ref(args[0][6:]), args[1:]
    if args[:1] == ["--ref"] and len(args) > 1:
        return full_ref(args[1]), args[2:]
    return default_ref(repo), args


def _object(repo: Repository, words: list[str]) -> bytes:
    name = words[0] if words else "HEAD"
    try:
        return resolve(repo, name)
    except KeyError:
        raise GitError(f"failed to resolve '{name}' as a valid ref.") from None


def _missing(about: bytes) -> GitError:
    return GitError(f"no note found for object {about.decode()}.", 1, "error: ")


def _list(repo: Repository, kept: Notes, words: list[str]) -> int:
    if words:
        about = _object(repo, words)
        if about not in kept.blobs:
            raise _missing(about)
        repo.process.print(kept.blobs[about].decode())
        return 0
    for about, blob in sorted(kept.blobs.items()):
        repo.process.print(f"{blob.decode()} {about.decode()}")
    return 0


def _refuse(verb: str, about: bytes) -> GitError:
    return GitError(
        f"Cannot {verb} notes. Found existing notes for object {about.decode()}. Use '-f' to overwrite existing notes",
        1,
        "error: ",
    )


def _write(repo: Repository, kept: Notes, verb: str, options: Options, words: list[str]) -> int:
    about = _object(repo, words)
    given = bool(options.message) or options.file is not None or options.reuse is not None
    old = kept.text(about)
    if verb == "add" and old is not None:
        if given and not options.force:
            raise _refuse("add", about)
        if given:
            repo.process.error(f"Overwriting existing notes for object {about.decode()}\n")
        else:
            verb = "edit"
    data = _given(repo, options) if given else _typed(repo, old if verb == "edit" else None)
    if verb == "append" and old:
        data = fsencode(old.rstrip("\n")) + b"\n\n" + data
    if data or options.allow_empty:
        kept.put(about, data)
    else:
        repo.process.error(f"Removing note for object {about.decode()}\n")
        kept.blobs.pop(about, None)
    kept.commit(f"Notes {'added' if data or options.allow_empty else 'removed'} by 'git notes {verb}'")
    return 0


def _given(repo: Repository, options: Options) -> bytes:
    if options.reuse is not None:
        return repo.store.blob(_object(repo, [options.reuse]))
    parts = list(options.message)
    if options.file is not None:
        parts.append(text_of(repo.process.read_file(options.file)))
    return fsencode(strip_space("\n\n".join(parts)))


def _typed(repo: Repository, old: str | None) -> bytes:
    path = f"{repo.git}/NOTES_EDITMSG"
    repo.process.write_file(path, fsencode((old or "") + _REMARKS))
    run_editor(repo, path)
    text = text_of(repo.process.read_file(path))
    repo.process.fs.unlink(path)
    return fsencode(strip_space(text, comments=True))


def _copy(repo: Repository, kept: Notes, options: Options, words: list[str]) -> int:
    if len(words) != 2:
        raise GitError("too few arguments", 129, "error: ")
    source, target = (_object(repo, [word]) for word in words)
    if target in kept.blobs:
        if not options.force:
            raise _refuse("copy", target)
        repo.process.error(f"Overwriting existing notes for object {target.decode()}\n")
    if source not in kept.blobs:
        raise GitError(f"missing notes on source object {source.decode()}. Cannot copy.", 1, "error: ")
    kept.blobs[target] = kept.blobs[source]
    kept.commit("Notes added by 'git notes copy'")
    return 0


def _remove(repo: Repository, kept: Notes, options: Options, words: list[str]) -> int:
    status = 0
    for word in words or ["HEAD"]:
        if kept.blobs.pop(_object(repo, [word]), None) is None:
            repo.process.error(f"Object {word} has no note\n")
            status = int(not options.missing)
        else:
            repo.process.error(f"Removing note for object {word}\n")
    if not status:
        kept.commit("Notes removed by 'git notes remove'")
    return status


def _prune(repo: Repository, kept: Notes, options: Options) -> int:
    """Notes about what is no longer there."""
    gone = [about for about in kept.blobs if about not in repo.store]
    for about in gone:
        del kept.blobs[about]
        if options.verbose or options.dry_run:
            repo.process.print(about.decode())
    if not options.dry_run and gone:
        kept.commit("Notes removed by 'git notes prune'")
    return 0
