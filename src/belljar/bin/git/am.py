"""`git am`: mails of format-patch as commits."""

from __future__ import annotations

import re
from contextlib import suppress
from email.utils import parsedate_tz

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import choice, flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.apply import ApplyOptions, plan_changes, write_changes
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.merge_state import remove_state
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import subject_of, text_of
from belljar.bin.git.repository.work import check_out


@dataclass(frozen=True, slots=True)
class AmOptions:
    action: str | None = choice(
        {"--continue": "continue", "-r": "continue", "--resolved": "continue", "--abort": "abort", "--skip": "skip",
         "--quit": "quit"}, "go on",
    )  # fmt: skip
    signoff: bool = flag("-s", "--signoff", "sign off")
    keep: bool = flag("-k", "--keep", "subjects as they are")
    three_way: bool = flag("-3", "--3way", "(hunks are looked for where they fit)")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    strip: str = value("-p", "leading parts of names to remove", metavar="N", default="1")
    loose: bool = flag("--ignore-whitespace", "--ignore-space-change", "white space in context may differ")
    whitespace: str | None = value("--whitespace", "(white space is left as it is)", metavar="ACTION")
    committer_date: bool = flag("--committer-date-is-author-date", "one time for both")


@dataclass(frozen=True, slots=True)
class Letter:
    author: bytes
    time: tuple[int, int]
    message: str
    data: bytes


def am(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(AmOptions, args)
    state = f"{repo.git}/rebase-apply"
    if options.action is not None:
        return _resume(repo, state, options)
    with suppress(SysError):
        repo.process.fs.stat(state)
        raise GitError(f"previous rebase directory {state} still exists but mbox given.")
    letters: list[bytes] = []
    for name in operands or ["-"]:
        try:
            data = repo.process.read_file(name)
        except SysError as error:
            raise GitError(f"could not open '{name}' for reading: {error.reason}") from None
        letters += [part for part in re.split(rb"(?m)^(?=From [0-9a-f]{40} )", data) if part.strip()]
    if repo.staged() != repo.head_tree():
        raise GitError("Dirty index: cannot apply patches", 128, "error: ")
    repo.process.fs.mkdir(state)
    for number, data in enumerate(letters, 1):
        repo.process.write_file(f"{state}/{number:04d}", data)
    repo.process.write_file(f"{state}/next", b"1\n")
    repo.process.write_file(f"{state}/last", f"{len(letters)}\n".encode())
    repo.process.write_file(f"{state}/orig-head", (repo.head() or b"") + b"\n")
    return _run(repo, state, options)


def _run(repo: Repository, state: str, options: AmOptions) -> int:
    process = repo.process
    try:
        number, last = (int(process.read_file(f"{state}/{name}")[:9]) for name in ("next", "last"))
    except ValueError:
        raise GitError(f"{state} is corrupt: remove it") from None
    while number <= last:
        letter = read_letter(repo, process.read_file(f"{state}/{number:04d}"), options)
        subject = subject_of(letter.message)
        if not options.quiet:
            process.print(f"Applying: {subject}")
        applying = ApplyOptions(index=True, strip=options.strip, loose=options.loose)
        try:
            write_changes(repo, plan_changes(repo, letter.data, applying), applying)
        except GitError as error:
            process.stdout.flush()
            process.error(f"{error.prefix}{error.message}\n" if error.status != 128 else f"error: {error.message}\n")
            process.print(f"Patch failed at {number:04d} {subject}")
            process.stdout.flush()
            process.error("hint: Use 'git am --show-current-patch=diff' to see the failed patch\n")
            process.print(
                'When you have resolved this problem, run "git am --continue".\n'
                'If you prefer to skip this patch, run "git am --skip" instead.\n'
                'To restore the original branch and stop patching, run "git am --abort".'
            )
            return 128
        _commit(repo, letter, options)
        number += 1
        process.write_file(f"{state}/next", f"{number}\n".encode())
    remove_state(repo, state)
    return 0


def _commit(repo: Repository, letter: Letter, options: AmOptions) -> None:
    message = letter.message
    if options.signoff:
        message = message.rstrip("\n") + f"\n\nSigned-off-by: {text_of(repo.identity('COMMITTER'))}\n"
    head = repo.head()
    parents = [head] if head is not None else []
    sha = repo.make_commit(repo.store.unflatten(repo.staged()), parents, message, letter.author, letter.time)
    repo.refs.set("HEAD", sha, f"am: {subject_of(message)}", repo.signature())


def _resume(repo: Repository, state: str, options: AmOptions) -> int:
    process = repo.process
    try:
        number = int(process.read_file(f"{state}/next")[:9])
    except (SysError, ValueError):
        raise GitError("Resolve operation not in progress, we are not resuming.") from None
    if options.action in ("abort", "quit"):
        if options.action == "abort":
            head = process.read_file(f"{state}/orig-head").strip()
            check_out(repo, repo.head_tree(), repo.tree_of(head), force=True)
            repo.refs.set("HEAD", head, "am --abort", repo.signature())
        remove_state(repo, state)
        return 0
    if options.action == "skip":
        check_out(repo, repo.head_tree(), repo.head_tree(), force=True)
    else:
        letter = read_letter(repo, process.read_file(f"{state}/{number:04d}"), options)
        process.print(f"Applying: {subject_of(letter.message)}")
        if repo.staged() == repo.head_tree():
            process.stdout.flush()
            raise GitError(
                "No changes - did you forget to use 'git add'?\n"
                "If there is nothing left to stage, chances are that something else\n"
                "already introduced the same changes; you might want to skip this patch.",
                128,
                "",
            )
        _commit(repo, letter, options)
    process.write_file(f"{state}/next", f"{number + 1}\n".encode())
    return _run(repo, state, options)


def read_letter(repo: Repository, data: bytes, options: AmOptions) -> Letter:
    """A mail of format-patch: who, when, the message and the patch."""
    head, _, rest = data.partition(b"\n\n")
    fields: dict[str, str] = {}
    for line in re.sub(r"\n[ \t]+", " ", text_of(head)).split("\n"):
        name, colon, content = line.partition(": ")
        if colon:
            fields.setdefault(name.lower(), content)
    if "from" not in fields or "subject" not in fields:
        raise GitError("Patch format detection failed.", 128, "")
    subject = fields["subject"]
    if not options.keep:
        subject = re.sub(r"^(\s*(\[[^]]*\]|[Rr][Ee]:)\s*)+", "", subject)
    body, _, after = rest.partition(b"\n---\n") if not rest.startswith(b"---\n") else (b"", b"", rest[4:])
    if not after:
        at = rest.find(b"diff --git ")
        body, after = (rest[:at], rest[at:]) if at >= 0 else (rest, b"")
    message = "\n\n".join(part for part in (subject.strip(), text_of(body).strip("\n")) if part) + "\n"
    parsed = parsedate_tz(fields.get("date", ""))
    when = repo.parse_date(fields["date"]) if parsed else repo.now("AUTHOR")
    author = fsencode(fields["from"])
    return Letter(author, when, message, re.sub(rb"(?m)^-- \n.*\n?\s*\Z", b"", after))
