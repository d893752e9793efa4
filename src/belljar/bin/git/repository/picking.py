"""Choosing hunks one by one, as `add -p`, `reset -p`, `checkout -p`, `restore -p` and `commit -p` do."""

from __future__ import annotations

import re

from dulwich.objects import Blob

from belljar.abi.dataclass import dataclass
from belljar.bin.git.repository.diffs import Pair, split_lines
from belljar.bin.git.repository.editor import run_editor
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.patch_hunks import Hunk, apply_hunks, parse_edited, read_hunks
from belljar.bin.git.repository.repo import Repository
from belljar.regex import RegexError
from belljar.regex import compile as compile_regex
from belljar.shell.input import read_line

_HELP = {
    "j": "leave this hunk undecided, see next undecided hunk", "J": "leave this hunk undecided, see next hunk",
    "k": "leave this hunk undecided, see previous undecided hunk", "K": "leave this hunk undecided, see previous hunk",
    "g": "select a hunk to go to", "/": "search for a hunk matching the given regex",
    "s": "split the current hunk into smaller hunks", "e": "manually edit the current hunk", "?": "print help",
}  # fmt: skip
_GUIDE = """\
# ---
# To remove '{gone}' lines, make them ' ' lines (context).
# To remove '{added}' lines, delete them.
# Lines starting with # will be removed.
# If the patch applies cleanly, the edited hunk will immediately be marked for {what}.
# If it does not apply cleanly, you will be given an opportunity to
# edit again.  If all lines of the hunk are removed, then the edit is
# aborted and the hunk is left unchanged.
"""


@dataclass(frozen=True, slots=True)
class Manner:
    """The action on the chosen hunks."""

    verb: str
    """stage, unstage, discard."""
    where: str = ""
    """` from worktree`."""
    reverse: bool = False
    """Whether hunks are removed from the new side, instead of being added to the old one."""


STAGE, UNSTAGE, DISCARD = Manner("stage"), Manner("unstage", reverse=True), Manner("discard", " from worktree", True)


@dataclass(slots=True)
class Part:
    """A hunk, or the file's mode, and what was said to it."""

    hunk: Hunk | None
    chosen: bool | None = None


def put_into_index(repo: Repository, picked: list[Picked]) -> int:
    """Give files the contents that were picked, in the index."""
    for file in picked:
        if file.data is None:
            del repo.index[file.path]
        else:
            sha = repo.store.add(Blob.from_string(file.data))
            repo.index[file.path] = repo.bare_entry(file.mode, sha)
    repo.write_index()
    return 0


@dataclass(slots=True)
class Picked:
    """A file's new contents; without contents it is deleted."""

    path: str
    mode: int
    data: bytes | None


class Quit(Exception):
    """The user has had enough."""


class Picker:
    """Asks about files, one after the other."""

    def __init__(self, repo: Repository, manner: Manner) -> None:
        self._repo = repo
        self._manner = manner
        self._head = b""
        self._parts: list[Part] = []
        self._pair: Pair
        self._kind = "this hunk"

    def pick(self, pairs: list[Pair]) -> list[Picked]:
        """The files that are to change."""
        found: list[Picked] = []
        pairs = [pair for pair in pairs if not pair.binary]
        if not pairs:
            self._repo.process.error("No changes.\n")
        for pair in pairs:
            try:
                self._ask_file(pair)
                quits = False
            except Quit:
                quits = True
            self._repo.process.print("")
            if any(part.chosen for part in self._parts):
                found.append(self._result(pair))
            if quits:
                break
        return found

    def _result(self, pair: Pair) -> Picked:
        taken = [part for part in self._parts if bool(part.chosen) is not self._manner.reverse]
        old_side, new_side = (pair.old is None, pair.new is None)
        whole = old_side or new_side
        if whole:
            gone = new_side if taken else old_side
            data, mode = (pair.after, pair.new_mode) if taken else (pair.before, pair.old_mode)
            return Picked(pair.path, mode, None if gone else data)
        mode = pair.new_mode if any(part.hunk is None for part in taken) else pair.old_mode
        if pair.old_mode == pair.new_mode:
            mode = pair.new_mode
        return Picked(pair.path, mode, apply_hunks(pair.before, [part.hunk for part in taken if part.hunk is not None]))

    # One file.

    def _ask_file(self, pair: Pair) -> None:
        process = self._repo.process
        self._pair = pair
        head, hunks = read_hunks(process, pair)
        whole = pair.old is None or pair.new is None
        self._kind = "deletion" if pair.new is None else "addition" if pair.old is None else "this hunk"
        self._parts = [Part(hunk) for hunk in hunks]
        rows = split_lines(head)
        modes = b""
        if whole:
            head, modes = rows[0], b"".join(rows[1:])
        elif pair.old_mode != pair.new_mode:
            modes = b"".join(row for row in rows if row.startswith((b"old mode", b"new mode")))
            head = b"".join(row for row in rows if not row.startswith((b"old mode", b"new mode")))
            self._parts.insert(0, Part(None))
        self._parts = self._parts or [Part(None)]
        self._head = modes
        process.stdout.write(head)
        at = 0
        while True:
            self._show(at)
            answer = self._ask(at)
            if answer is None:
                return
            following = self._obey(answer, at)
            if following is None:
                return
            at = following

    def _show(self, at: int) -> None:
        hunk = self._parts[at].hunk
        if hunk is None or (at == 0 and self._kind != "this hunk"):
            self._repo.process.stdout.write(self._head)
        if hunk is not None:
            self._repo.process.stdout.write(hunk.text())

    def _undecided(self, places: range) -> int | None:
        return next((place for place in places if self._parts[place].chosen is None), None)

    def _letters(self, at: int) -> list[str]:
        count = len(self._parts)
        hunk = self._parts[at].hunk
        plain = hunk is not None and self._kind != "deletion"
        allowed = {
            "k": self._undecided(range(at - 1, -1, -1)) is not None, "K": at > 0,
            "j": self._undecided(range(at + 1, count)) is not None, "J": at + 1 < count,
            "g": count > 1, "/": count > 1, "s": plain and hunk is not None and len(hunk.split()) > 1, "e": plain,
        }  # fmt: skip
        return [letter for letter, may in allowed.items() if may]

    def _ask(self, at: int) -> str | None:
        """Prompt the user; None at the end of input."""
        manner = self._manner
        what = "mode change" if self._parts[at].hunk is None and self._kind == "this hunk" else self._kind
        letters = ",".join(["y,n,q,a,d", *self._letters(at), "?"])
        question = f"({at + 1}/{len(self._parts)}) {manner.verb.capitalize()} {what}{manner.where} [{letters}]? "
        return self._read(question)

    def _read(self, question: str) -> str | None:
        process = self._repo.process
        process.print(question, end="")
        process.stdout.flush()
        data = read_line(process, 0)
        return data.decode("utf-8", "surrogateescape").rstrip("\n") if data else None

    def _complain(self, text: str) -> None:
        self._repo.process.stdout.flush()
        self._repo.process.error(f"{text}\n")

    def _obey(self, answer: str, at: int) -> int | None:
        """The place that is asked about next; None if the file is done."""
        parts = self._parts
        letter = answer[:1]
        after = range(at + 1, len(parts))
        if letter.lower() in ("y", "n"):
            parts[at].chosen = letter.lower() == "y"
            return self._undecided(after)
        if letter.lower() in ("a", "d"):
            for part in parts[at:]:
                if part.chosen is None:
                    part.chosen = letter.lower() == "a"
            return None
        if letter.lower() == "q":
            for part in parts:
                part.chosen = bool(part.chosen)
            raise Quit
        if letter in ("j", "J", "k", "K"):
            return self._move(letter, at)
        if letter == "g":
            return self._go(answer[1:].strip(), at)
        if letter == "/":
            return self._search(answer[1:], at)
        plain = parts[at].hunk is not None and self._kind != "deletion"
        if letter == "s" and plain:
            return self._split(at)
        if letter == "e" and plain:
            if self._edit(at):
                return self._undecided(after)
            return at
        self._help(at)
        return at

    def _move(self, letter: str, at: int) -> int:
        back = letter in "kK"
        if letter in "JK":
            place: int | None = at - 1 if back else (at + 1) % len(self._parts)
            place = None if (back and at == 0) or len(self._parts) == 1 else place
        else:
            place = self._undecided(range(at - 1, -1, -1) if back else range(at + 1, len(self._parts)))
        if place is None:
            self._complain(f"No {'previous' if back else 'next'} hunk")
            return at
        return place

    def _go(self, word: str, at: int) -> int:
        process, parts = self._repo.process, self._parts
        if len(parts) == 1:
            self._complain("No other hunks to goto")
            return at
        if not word:
            for number, part in enumerate(parts, 1):
                process.print(f"{_MARKS[part.chosen]}{number:2}: {self._summary(part)}".rstrip())
            word = (self._read("go to which hunk? ") or "").strip()
        if not word.isdecimal():
            self._complain(f"Invalid number: '{word}'")
        elif not 0 < int(word[:9]) <= len(parts):
            self._complain(f"Sorry, only {len(parts)} hunk{'' if len(parts) == 1 else 's'} available.")
        else:
            return int(word) - 1
        return at

    def _summary(self, part: Part) -> str:
        if part.hunk is None:
            return ""
        first = next((mark + line for mark, line in part.hunk.lines if mark != b" "), b"")
        return f" {part.hunk.span():<19}" + first.decode("utf-8", "surrogateescape").rstrip("\n")

    def _search(self, pattern: str, at: int) -> int:
        parts = self._parts
        if len(parts) == 1:
            self._complain("No other hunks to search")
            return at
        if not pattern and not (pattern := self._read("search for regex? ") or ""):
            return at
        try:
            regex = compile_regex(pattern, syntax="egrep")
        except RegexError as error:
            self._complain(f"Malformed search regexp {pattern}: {error}")
            return at
        for step in range(len(parts)):
            place = (at + step) % len(parts)
            hunk = parts[place].hunk
            if hunk is not None and any(
                regex.test(line) for line in hunk.text().decode("utf-8", "replace").split("\n")
            ):
                return place
        self._complain("No hunk matches the given pattern")
        return at

    def _split(self, at: int) -> int:
        hunk = self._parts[at].hunk
        assert hunk is not None
        found = hunk.split()
        self._repo.process.print(f"Split into {len(found)} hunks.")
        self._parts[at : at + 1] = [Part(part) for part in found]
        return at

    def _edit(self, at: int) -> bool:
        """Whether the editor left a hunk that fits; it is chosen then."""
        repo, hunk = self._repo, self._parts[at].hunk
        assert hunk is not None
        path = f"{repo.git}/addp-hunk-edit.diff"
        marks = {"gone": "+", "added": "-"} if self._manner.reverse else {"gone": "-", "added": "+"}
        guide = _GUIDE.format(**marks, what=f"{self._manner.verb.removesuffix('e')}ing")
        head = b"# Manual hunk edit mode -- see bottom for a quick guide.\n"
        while True:
            repo.process.write_file(path, head + hunk.text() + guide.encode())
            run_editor(repo, path)
            edited = parse_edited(hunk, repo.process.read_file(path))
            repo.process.fs.unlink(path)
            if edited is None:
                return False
            if self._manner.reverse:
                raise GitError("hunks are edited only to be staged here: split them with s", 1, "error: ")
            if edited.fits(self._pair.before):
                self._parts[at] = Part(edited, True)
                return True
            name = self._pair.path
            self._complain(f"error: patch failed: {name}:{edited.start}\nerror: {name}: patch does not apply")
            self._complain("error: 'git apply --cached' failed")
            again = self._read('Your edited hunk does not apply. Edit again (saying "no" discards!) [y/n]? ')
            if not re.match("[yY]", again or ""):
                return False

    def _help(self, at: int) -> None:
        verb, where = self._manner.verb, self._manner.where
        rows = [
            f"y - {verb} this hunk{where}", f"n - do not {verb} this hunk{where}",
            f"q - quit; do not {verb} this hunk or any of the remaining ones",
            f"a - {verb} this hunk and all later hunks in the file",
            f"d - do not {verb} this hunk or any of the later hunks in the file",
        ]  # fmt: skip
        allowed = {*self._letters(at), "?"}
        rows += [f"{letter} - {text}" for letter, text in _HELP.items() if letter in allowed]
        self._repo.process.print("\n".join(rows))


_MARKS = {None: " ", True: "+", False: "-"}
