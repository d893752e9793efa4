"""Commits as text: git's named formats, and those that users write with %-codes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dulwich.objects import Commit

from belljar.bin._kit.clock import zone_of
from belljar.bin.git.repository.notes import Notes, default_ref
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import body_of, date, relative_date, subject_of, text_of, trailer_lines, who

NAMED = frozenset({"oneline", "short", "medium", "full", "fuller", "raw", "email"})
_RESET = "\x1b[m"
_COLORS = {name: number for number, name in enumerate("black red green yellow blue magenta cyan white".split())}
_ATTRIBUTES = {"bold": 1, "dim": 2, "italic": 3, "ul": 4, "blink": 5, "reverse": 7, "strike": 9}
_LABEL_COLORS = {
    "HEAD": "\x1b[1;36m",
    "tag": "\x1b[1;33m",
    "remote": "\x1b[1;31m",
    "branch": "\x1b[1;32m",
    "stash": "\x1b[1;35m",
}
_CODE = re.compile(
    r"%(?:x(?P<hex>[0-9a-fA-F]{2})|C\((?P<color>[^)]*)\)|C(?P<plain>red|green|blue|reset)"
    r"|(?P<pad>[<>]{1,2})(?P<column>\|?)\((?P<width>[^)]*)\)|w\([^)]*\)"
    r"|\(trailers(?::(?P<trailers>(?:%\)|[^)])*))?\)"
    r"|(?P<magic>[-+ ]?)(?P<code>G[?SKFPT]|[HhTtPpsbBfdDnmNSe%]|[ac][nNeElLdiIrtsDh]))"
)

Label = tuple[str, str]
"""A kind (HEAD, tag, remote, branch) and a name."""


class Formatter:
    """Shows commits in one form."""

    def __init__(
        self,
        repo: Repository,
        form: str = "medium",
        date_style: str = "default",
        *,
        decorate: bool = False,
        full: bool = True,
        digits: int = 7,
        color: bool = False,
        marks: dict[bytes, str] | None = None,
        notes: Sequence[Notes] = (),
    ) -> None:
        self._repo = repo
        self.form = "%h (%s, %as)" if form == "reference" else form
        self._date = date_style
        self._digits = 40 if full else digits
        self._short = digits
        self._color = color
        self._marks = marks
        """The side of `a...b` that each commit is on."""
        self._labels = decorations(repo) if decorate or re.search(r"%[-+ ]?[dD]", form) else {}
        self._decorate = decorate
        self._notes = notes
        if not notes and re.search(r"%[-+ ]?N", form):
            self._notes = [Notes(repo, default_ref(repo))]

    def when(self, seconds: int, offset: int) -> str:
        if self._date == "relative":
            return relative_date(seconds, self._repo.process.kernel.now() // 1_000_000_000)
        kind, colon, form = self._date.partition(":")
        if kind != "local" and not kind.endswith("-local"):
            return date(seconds, offset, self._date)
        here = zone_of(self._repo.process.env).at(seconds)
        style = kind.removesuffix("local").removesuffix("-")
        text = date(seconds, here.seconds, style + colon + form, here.name)
        return text if style not in ("", "default") else text.rpartition(" ")[0]

    def show(self, sha: bytes) -> str:
        """A commit's text, without a newline at its end."""
        commit = self._repo.store.commit(sha)
        message = text_of(commit.message)
        if self.form in NAMED:
            labels = self._labels.get(sha) if self._decorate else None
            mark = f" {self._wrapped(labels, self._color)}" if labels and not self._color else ""
            if labels and self._color:
                mark = self._wrapped(labels, True)
            side = self._marks.get(sha, "") + " " if self._marks is not None else ""
            if self.form == "oneline":
                return f"{side}{self._yellow(sha.decode()[: self._digits])}{mark} {subject_of(message)}"
            if self.form == "raw":
                return self._raw(sha, commit, message, side)
            if self.form == "email":
                return mail(sha, commit)
            return self._headed(sha, commit, message, side, mark)
        return self._coded(sha, commit, message)

    def _yellow(self, text: str) -> str:
        return f"\x1b[33m{text}{_RESET}" if self._color else text

    def _wrapped(self, labels: list[Label], color: bool) -> str:
        """`(HEAD -> main, tag: v1)`, in colours with the space that stands before it."""
        if not color:
            return f"({label_text(labels)})"
        parts: list[str] = []
        for kind, name in labels:
            if kind == "HEAD" and name.startswith("HEAD -> "):
                parts.append(f"{_LABEL_COLORS['HEAD']}HEAD -> {_RESET}{_LABEL_COLORS['branch']}{name[8:]}{_RESET}")
            else:
                parts.append(f"{_LABEL_COLORS[kind]}{name}{_RESET}")
        comma = f"\x1b[33m, {_RESET}"
        return f"\x1b[33m ({_RESET}{comma.join(parts)}\x1b[33m){_RESET}"

    def _headed(self, sha: bytes, commit: Commit, message: str, side: str, mark: str) -> str:
        out = [f"{self._yellow(f'commit {side}{sha.decode()[: self._digits]}')}{mark}"]
        if len(commit.parents) > 1:
            out.append("Merge: " + " ".join(parent[: self._short].decode() for parent in commit.parents))
        author = text_of(commit.author)
        wide = self.form == "fuller"
        out.append(f"{'Author:     ' if wide else 'Author: '}{author}")
        if wide:
            out.append(f"AuthorDate: {self.when(commit.author_time, commit.author_timezone)}")
        if self.form in ("full", "fuller"):
            out.append(f"{'Commit:     ' if wide else 'Commit: '}{text_of(commit.committer)}")
        if wide:
            out.append(f"CommitDate: {self.when(commit.commit_time, commit.commit_timezone)}")
        if self.form == "medium":
            out.append(f"Date:   {self.when(commit.author_time, commit.author_timezone)}")
        shown = subject_of(message) if self.form == "short" else message.strip("\n")
        out += ["", *[f"    {line}" for line in shown.split("\n")]] if shown else [""]
        return "\n".join(out) + self._noted(sha)

    def _noted(self, sha: bytes) -> str:
        """Return the notes below a message."""
        out = ""
        for notes in self._notes:
            if (text := notes.text(sha)) is not None:
                out += f"\n\n{notes.title}\n" + "\n".join(f"    {line}" for line in text.rstrip("\n").split("\n"))
        return out

    def _raw(self, sha: bytes, commit: Commit, message: str, side: str) -> str:
        head = text_of(commit.as_raw_string()).partition("\n\n")[0]
        first = self._yellow(f"commit {side}{sha.decode()[: self._digits]}")
        lines = "\n".join(f"    {line}" for line in message.rstrip("\n").split("\n"))
        return f"{first}\n{head}\n\n{lines}{self._noted(sha)}"

    def _codes(self, sha: bytes, commit: Commit, message: str) -> dict[str, Callable[[], str]]:
        author, committer = who(commit.author), who(commit.committer)
        a, c = (commit.author_time, commit.author_timezone), (commit.commit_time, commit.commit_timezone)
        now = self._repo.process.kernel.now() // 1_000_000_000
        labels = self._labels.get(sha, [])
        short = self._short
        return {
            "H": sha.decode, "h": lambda: sha.decode()[:short],
            "T": lambda: bytes(commit.tree).decode(), "t": lambda: bytes(commit.tree).decode()[:short],
            "P": lambda: " ".join(p.decode() for p in commit.parents),
            "p": lambda: " ".join(p[:short].decode() for p in commit.parents),
            "an": lambda: author[0], "ae": lambda: author[1], "aN": lambda: author[0], "aE": lambda: author[1],
            "al": lambda: author[1].partition("@")[0], "aL": lambda: author[1].partition("@")[0],
            "cl": lambda: committer[1].partition("@")[0], "cL": lambda: committer[1].partition("@")[0],
            "cn": lambda: committer[0], "ce": lambda: committer[1], "cN": lambda: committer[0],
            "cE": lambda: committer[1], "ad": lambda: self.when(*a), "cd": lambda: self.when(*c),
            "ai": lambda: date(*a, "iso"), "ci": lambda: date(*c, "iso"), "aI": lambda: date(*a, "iso-strict"),
            "cI": lambda: date(*c, "iso-strict"), "at": lambda: str(a[0]), "ct": lambda: str(c[0]),
            "as": lambda: date(*a, "short"), "cs": lambda: date(*c, "short"), "aD": lambda: date(*a, "rfc"),
            "cD": lambda: date(*c, "rfc"), "ar": lambda: relative_date(a[0], now), "ah": lambda: date(*a),
            "ch": lambda: date(*c), "cr": lambda: relative_date(c[0], now), "s": lambda: subject_of(message),
            "b": lambda: body_of(message), "B": lambda: message.rstrip("\n") + "\n",
            "f": lambda: file_name(message),
            "d": lambda: f" ({label_text(labels)})" if labels else "", "D": lambda: label_text(labels),
            "n": lambda: "\n", "%": lambda: "%", "m": lambda: (self._marks or {}).get(sha, ">"),
            "N": lambda: "".join(notes.text(sha) or "" for notes in self._notes), "S": str, "e": str,
            "G?": lambda: "N",
        }  # fmt: skip

    def _coded(self, sha: bytes, commit: Commit, message: str) -> str:
        codes = self._codes(sha, commit, message)
        out: list[str] = []
        done = 0
        pad: tuple[str, int, str] | None = None
        auto = False
        for match in _CODE.finditer(self.form):
            out.append(self.form[done : match.start()])
            done = match.end()
            if match["hex"]:
                out.append(chr(int(match["hex"], 16)))
            elif match[0].startswith("%(trailers"):
                out.append(trailers_text(message, match["trailers"] or ""))
            elif match["color"] is not None or match["plain"]:
                auto = match["color"] == "auto"
                out.append(self._paint(match["color"] if match["color"] is not None else match["plain"]))
            elif match["pad"]:
                width, _, trim = match["width"].partition(",")
                if width.strip().isdecimal():
                    size = int(width[:6])
                    if match["column"]:
                        size -= len("".join(out).rpartition("\n")[2])
                    pad = (match["pad"], size, trim.strip())
            elif match["code"]:
                text = codes[match["code"]]() if match["code"] in codes else ""
                if auto and self._color and text:
                    if match["code"] in "Hh":
                        text = self._yellow(text)
                    elif match["code"] == "d":
                        text = self._wrapped(self._labels[sha], True)
                if pad is not None:
                    text, pad = padded(text, *pad), None
                if match["magic"] == "-":
                    if not text:
                        out = ["".join(out).rstrip("\n")]
                elif match["magic"] and text:
                    text = ("\n" if match["magic"] == "+" else " ") + text
                out.append(text)
        return "".join([*out, self.form[done:]])

    def _paint(self, words: str) -> str:
        """`red`, `bold blue`, `reset`, `auto`: the sequence, if colours are shown."""
        always = words.startswith("always,")
        words = words.removeprefix("always,").removeprefix("auto,")
        if not self._color and not always:
            return ""
        if words in ("reset", "auto"):
            return _RESET
        codes: list[int] = []
        ground = 30
        for word in words.split():
            bright = word.startswith("bright")
            name = word.removeprefix("bright")
            if name in _COLORS:
                codes.append(_COLORS[name] + ground + (60 if bright else 0))
                ground = 40
            elif word in _ATTRIBUTES:
                codes.insert(0, _ATTRIBUTES[word])
        return f"\x1b[{';'.join(map(str, codes))}m" if codes else ""


def trailers_text(message: str, options: str) -> str:
    """A message's trailers, by the options of `%(trailers:...)`."""
    keys: list[str] = []
    flags: set[str] = set()
    apart: dict[str, str] = {}
    for option in re.split(r",(?![ ])", options) if options else []:
        name, _, value = option.partition("=")
        if name == "key":
            keys.append(value.rstrip(":").lower())
        elif name in ("separator", "key_value_separator"):
            apart[name] = re.sub(r"%x([0-9a-fA-F]{2})", lambda m: chr(int(m[1], 16)), value).replace("%n", "\n")
        elif value not in ("false", "no", "off"):
            flags.add(name)
    rows: list[str] = []
    for line in trailer_lines(message):
        key, colon, value = line.partition(":")
        if keys and (not colon or key.strip().lower() not in keys):
            continue
        if "only" in flags and not colon:
            continue
        value = re.sub(r"\n\s+", " ", value.strip()) if "unfold" in flags else value.strip()
        if "valueonly" in flags and "keyonly" not in flags:
            rows.append(value)
        elif "keyonly" in flags:
            rows.append(key)
        elif not colon:
            rows.append(line)
        else:
            rows.append(f"{key.strip()}{apart.get('key_value_separator', ': ')}{value}")
    if "separator" in apart:
        return apart["separator"].join(rows)
    return "".join(f"{row}\n" for row in rows)


def padded(text: str, way: str, width: int, trim: str) -> str:
    """Text in a column of its own; `trim` says what is left out of one that is too long."""
    if len(text) > width:
        if trim == "trunc":
            return text[: width - 2] + ".."
        if trim == "ltrunc":
            return ".." + text[len(text) - width + 2 :]
        if trim == "mtrunc":
            return text[: (width - 2) // 2] + ".." + text[len(text) - (width - 2 - (width - 2) // 2) :]
        return text
    if way == "<":
        return text.ljust(width)
    if way == "><":
        left = (width - len(text)) // 2
        return " " * left + text + " " * (width - len(text) - left)
    return text.rjust(width)


def file_name(message: str) -> str:
    """A subject as part of a file's name."""
    return re.sub(r"\.+", ".", re.sub(r"[^A-Za-z0-9._]+", "-", subject_of(message))).strip("-.")


def mail(sha: bytes, commit: Commit, prefix: str = "PATCH") -> str:
    """A commit as the head and the text of a mail, as `format-patch` sends it."""
    message = text_of(commit.message)
    mark = f"[{prefix}] " if prefix else ""
    lines = [
        f"From {sha.decode()} Mon Sep 17 00:00:00 2001",
        f"From: {text_of(commit.author)}",
        f"Date: {date(commit.author_time, commit.author_timezone, 'rfc')}",
        f"Subject: {mark}{subject_of(message)}",
    ]
    if not message.isascii():
        lines += ["MIME-Version: 1.0", "Content-Type: text/plain; charset=UTF-8", "Content-Transfer-Encoding: 8bit"]
    body = body_of(message).rstrip("\n")
    return "\n".join([*lines, "", body] if body else [*lines, ""])


def label_text(labels: list[Label]) -> str:
    return ", ".join(name for _, name in labels)


def decorations(repo: Repository) -> dict[bytes, list[Label]]:
    """Return the decorations of commits: `HEAD -> main, tag: v1, origin/main`."""
    found: dict[bytes, list[Label]] = {}
    head, branch = repo.head(), repo.refs.branch()
    if head is not None:
        name = f"HEAD -> {branch.removeprefix('refs/heads/')}" if branch else "HEAD"
        found.setdefault(head, []).append(("HEAD", name))
    kinds = (("refs/tags/", "tag: ", "tag"), ("refs/remotes/", "", "remote"), ("refs/heads/", "", "branch"))
    for prefix, label, kind in kinds:
        for name, sha in repo.refs.under(prefix).items():
            if name == branch:
                continue
            try:
                commit = bytes(repo.store.commit(sha).id)
            except KeyError:
                continue
            found.setdefault(commit, []).append((kind, label + name.removeprefix(prefix)))
    if (stashed := repo.refs.get("refs/stash")) is not None:
        found.setdefault(stashed, []).append(("stash", "refs/stash"))
    return found
