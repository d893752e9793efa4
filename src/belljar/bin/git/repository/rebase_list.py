"""The list of a rebase: what is done with which commit, as its editor shows it."""

from __future__ import annotations

import re
from contextlib import suppress

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin.git.repository.editor import run_editor
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.merge_state import remove_state
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import resolve
from belljar.bin.git.repository.text import text_of

_VERBS = {
    "p": "pick", "r": "reword", "e": "edit", "s": "squash", "f": "fixup", "x": "exec", "d": "drop", "b": "break",
}  # fmt: skip
_HELP = """
# Rebase {span} onto {onto} ({count} command{s})
#
# Commands:
# p, pick <commit> = use commit
# r, reword <commit> = use commit, but edit the commit message
# e, edit <commit> = use commit, but stop for amending
# s, squash <commit> = use commit, but meld into previous commit
# f, fixup <commit> = like "squash" but keep only the previous commit's log message
# x, exec <command> = run command (the rest of the line) using shell
# b, break = stop here (continue rebase later with 'git rebase --continue')
# d, drop <commit> = remove commit
#
# These lines can be re-ordered; they are executed from top to bottom.
#
# If you remove a line here THAT COMMIT WILL BE LOST.
#
# However, if you remove everything, the rebase will be aborted.
#
"""


@dataclass(frozen=True, slots=True)
class Step:
    """A line of the list."""

    verb: str
    text: str
    """The commit and its subject, or the command."""

    def line(self) -> str:
        return f"{self.verb} {self.text}".rstrip()


def move_fixups(steps: list[Step]) -> list[Step]:
    """Commits called `fixup! X` or `squash! X` go behind X."""
    out: list[Step] = []
    for step in steps:
        subject = step.text.partition(" ")[2]
        match = re.match(r"(?:(fixup|squash|amend)! )+", subject)
        if match is not None:
            target = subject[match.end() :]
            verb = "squash" if match[1] == "squash" else "fixup"
            places = [
                n for n, other in enumerate(out)
                if other.text.partition(" ")[2].startswith(target) or other.text.startswith(target[:7] + " ")
            ]  # fmt: skip
            if places:
                at = places[0] + 1
                while at < len(out) and out[at].verb in ("fixup", "squash"):
                    at += 1
                out.insert(at, Step(verb, step.text))
                continue
        out.append(step)
    return out


def edit_steps(
    repo: Repository, state: str, steps: list[Step], head: bytes, upstream: bytes, onto: bytes
) -> list[Step]:
    """The list as the user's editor leaves it."""
    with suppress(SysError):
        repo.process.fs.mkdir(state)
    path = f"{state}/git-rebase-todo"
    span = f"{upstream[:7].decode()}..{head[:7].decode()}"
    notes = _HELP.format(span=span, onto=onto[:7].decode(), count=len(steps), s="" if len(steps) == 1 else "s")
    text = "".join(step.line() + "\n" for step in steps) + notes
    repo.process.write_file(path, fsencode(text))
    editor = repo.process.env.get("GIT_SEQUENCE_EDITOR") or repo.config("sequence.editor")
    try:
        run_editor(repo, path, editor)
        return parse_steps(repo, text_of(repo.process.read_file(path)))
    finally:
        remove_state(repo, state)


def parse_steps(repo: Repository, text: str) -> list[Step]:
    """Lines of a list; raises GitError for one that means nothing."""
    steps: list[Step] = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        verb, _, rest = words.partition(" ")
        verb, rest = _VERBS.get(verb, verb), rest.strip()
        if verb == "noop":
            continue
        if verb not in _VERBS.values():
            raise GitError(f"invalid command '{verb}'\nerror: invalid line {number}: {line}", 1, "error: ")
        if verb == "fixup" and rest[:3] in ("-C ", "-c "):
            rest = rest[3:].strip()
        if verb not in ("exec", "break"):
            try:
                repo.store.commit(resolve(repo, rest.partition(" ")[0]))
            except KeyError:
                raise GitError(f"could not parse '{rest.partition(' ')[0]}'", 1, "error: ") from None
        if verb in ("fixup", "squash") and not any(step.verb not in ("exec", "break", "drop") for step in steps):
            raise GitError(f"cannot '{verb}' without a previous commit", 1, "error: ")
        steps.append(Step(verb, rest))
    return steps


def write_steps(repo: Repository, state: str, steps: list[Step]) -> None:
    text = "".join(step.line() + "\n" for step in steps)
    repo.process.write_file(f"{state}/git-rebase-todo", fsencode(text))


def parse_lines(text: str) -> list[Step]:
    """A list that was checked when it was made."""
    return [Step(verb, rest) for verb, _, rest in (line.partition(" ") for line in text.split("\n") if line)]
