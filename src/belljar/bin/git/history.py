"""Walking and showing commits: order, limits, formats, and the graph beside them."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator

from dulwich.objects import Commit

from belljar.bin.git.repo import Repository
from belljar.shell.strftime import Moment, Zone, local, strftime


def walk(repo: Repository, starts: list[bytes], excluded: list[bytes]) -> Iterator[bytes]:
    """Commits, the newest first; those the excluded ones reach are left out."""
    hidden: set[bytes] = set()
    stack = list(excluded)
    while stack:
        sha = stack.pop()
        if sha not in hidden:
            repo.process.budget.charge()
            hidden.add(sha)
            stack += [bytes(parent) for parent in repo.store.commit(sha).parents]
    seen: set[bytes] = set()
    queue: list[tuple[int, int, bytes]] = []
    count = 0
    for sha in starts:
        if sha not in seen and sha not in hidden:
            seen.add(sha)
            heapq.heappush(queue, (-repo.store.commit(sha).commit_time, count, sha))
            count += 1
    while queue:
        repo.process.budget.charge()
        _, _, sha = heapq.heappop(queue)
        yield sha
        for parent in repo.store.commit(sha).parents:
            if parent not in seen and parent not in hidden:
                seen.add(bytes(parent))
                heapq.heappush(queue, (-repo.store.commit(parent).commit_time, count, bytes(parent)))
                count += 1


def topological(repo: Repository, commits: list[bytes]) -> list[bytes]:
    """No commit before its children; lines of development stay together."""
    known = set(commits)
    children = dict.fromkeys(commits, 0)
    for sha in commits:
        for parent in repo.store.commit(sha).parents:
            if parent in known:
                children[bytes(parent)] += 1
    stack = [sha for sha in reversed(commits) if not children[sha]]
    out: list[bytes] = []
    while stack:
        sha = stack.pop()
        out.append(sha)
        for parent in repo.store.commit(sha).parents:
            if parent in known:
                children[bytes(parent)] -= 1
                if not children[bytes(parent)]:
                    stack.append(bytes(parent))
    return out


class Graph:
    """The lines beside commits: `step` gives the commit's own prefix, the following ones, and lines between."""

    def __init__(self) -> None:
        self._columns: list[bytes] = []

    def step(self, sha: bytes, parents: list[bytes]) -> tuple[str, list[str], str]:
        """The prefix of the commit's line, lines after it, and the prefix of further text of the commit."""
        columns = self._columns
        if sha not in columns:
            columns.append(sha)
        at = columns.index(sha)
        width = 2 * (len(columns) + max(0, len(parents) - 1))
        star = "".join("* " if i == at else "| " for i in range(len(columns))).ljust(width)
        lines: list[str] = []
        after = columns[:at] + parents + columns[at + 1 :]
        if len(parents) > 1:
            merge = "| " * at + "|" + "\\ " * (len(parents) - 1) + "\\ " * (len(columns) - at - 1)
            lines.append(
                ("| " * at + "|\\" + " \\" * (len(columns) - at - 1)).ljust(width) if len(parents) == 2 else merge
            )
        columns = after
        if not parents:
            # A root ends its line: those to the right move over.
            if at < len(columns):
                lines.append(("| " * at + " " + "/ " * (len(columns) - at)).rstrip().ljust(2 * (len(columns) + 1)))
            self._columns = columns
            rest = "".join("  " if i == at else "| " for i in range(len(columns) + 1)).ljust(width)
            return star, lines, rest
        while (double := _duplicate(columns)) is not None:
            target, source = double
            wide = 2 * len(columns)
            for edge in range(source, target, -1):
                chars = [" "] * wide
                first = edge == source
                for i in range(len(columns)):
                    if i == source:
                        continue
                    if i > source:
                        chars[2 * i - 1 if first else 2 * i - 2] = "/" if first else "|"
                    else:
                        chars[2 * i] = "|"
                chars[2 * edge - 1] = "/"
                lines.append("".join(chars))
            columns = columns[:source] + columns[source + 1 :]
        self._columns = columns
        return star, lines, ("| " * len(columns)).ljust(width)

    def between(self) -> str:
        """The line between two commits."""
        return "| " * len(self._columns)


def _duplicate(columns: list[bytes]) -> tuple[int, int] | None:
    for index, sha in enumerate(columns):
        first = columns.index(sha)
        if first < index:
            return first, index
    return None


# Formats.


def _at(seconds: int, offset: int) -> Moment:
    return local(seconds, Zone("", offset))


def date(seconds: int, offset: int, style: str = "default") -> str:
    """A time as --date shows it."""
    sign = "-" if offset < 0 else "+"
    zone = f"{sign}{abs(offset) // 3600:02d}{abs(offset) % 3600 // 60:02d}"
    when = _at(seconds, offset)
    if style.startswith("format:"):
        return strftime(style[7:].replace("%z", zone), when)
    match style:
        case "iso" | "iso8601":
            return strftime("%Y-%m-%d %H:%M:%S ", when) + zone
        case "iso-strict" | "iso8601-strict":
            mark = "Z" if not offset else f"{zone[:3]}:{zone[3:]}"
            return strftime("%Y-%m-%dT%H:%M:%S", when) + mark
        case "short":
            return strftime("%Y-%m-%d", when)
        case "unix":
            return str(seconds)
        case "raw":
            return f"{seconds} {zone}"
        case "rfc" | "rfc2822":
            return strftime("%a, %-d %b %Y %H:%M:%S ", when) + zone
    return strftime("%a %b %-d %H:%M:%S %Y ", when) + zone


def relative_date(seconds: int, now: int) -> str:
    diff = max(0, now - seconds)
    for limit, size, word in (
        (90, 1, "second"), (5400, 60, "minute"), (129600, 3600, "hour"), (1209600, 86400, "day"),
        (6048000, 604800, "week"), (31536000, 2629800, "month"),
    ):  # fmt: skip
        if diff < limit:
            count = (diff + size // 2) // size
            return f"{count} {word}{'' if count == 1 else 's'} ago"
    count = (diff + 15778800) // 31557600
    return f"{count} year{'' if count == 1 else 's'} ago"


def subject_of(message: str) -> str:
    return " ".join(message.strip("\n").partition("\n\n")[0].split("\n")).strip()


def body_of(message: str) -> str:
    return message.strip("\n").partition("\n\n")[2].lstrip("\n")


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def who(data: bytes) -> tuple[str, str]:
    match = re.fullmatch(r"(.*?) ?<(.*)>", text_of(data), re.S)
    return (match[1], match[2]) if match else (text_of(data), "")


class Formatter:
    """Shows commits in one of git's formats, or one that the user wrote with %-codes."""

    def __init__(
        self,
        repo: Repository,
        form: str = "medium",
        date_style: str = "default",
        *,
        decorate: bool = False,
        full: bool = False,
    ) -> None:
        self._repo = repo
        self.form = form
        self._date = date_style
        self._full = full
        self._names = decorations(repo) if decorate or "%d" in form or "%D" in form else {}
        self._decorate = decorate

    def abbreviated(self, sha: bytes) -> str:
        return sha.decode() if self._full else sha.decode()[:7]

    def when(self, seconds: int, offset: int) -> str:
        if self._date == "relative":
            return relative_date(seconds, self._repo.process.kernel.now() // 1_000_000_000)
        if self._date == "local":
            return date(seconds, 0).rpartition(" ")[0]
        return date(seconds, offset, self._date)

    def show(self, sha: bytes) -> str:
        """A commit's text, without a newline at its end."""
        commit = self._repo.store.commit(sha)
        message = text_of(commit.message)
        labels = self._names.get(sha) if self._decorate else None
        mark = f" ({labels})" if labels else ""
        if self.form == "oneline":
            return f"{self.abbreviated(sha)}{mark} {subject_of(message)}"
        if self.form in ("medium", "short", "full", "fuller"):
            return self._headed(sha, commit, message, mark)
        if self.form == "raw":
            return self._raw(sha, commit, message)
        return self._coded(sha, commit, message)

    def _headed(self, sha: bytes, commit: Commit, message: str, mark: str) -> str:
        out = [f"commit {sha.decode()}{mark}"]
        if len(commit.parents) > 1:
            out.append("Merge: " + " ".join(parent[:7].decode() for parent in commit.parents))
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
        return "\n".join([*out, "", *[f"    {line}" for line in shown.split("\n")]]) if shown else "\n".join([*out, ""])

    def _raw(self, sha: bytes, commit: Commit, message: str) -> str:
        head = text_of(commit.as_raw_string()).partition("\n\n")[0]
        return f"commit {sha.decode()}\n{head}\n\n" + "\n".join(
            f"    {line}" for line in message.rstrip("\n").split("\n")
        )

    def _coded(self, sha: bytes, commit: Commit, message: str) -> str:
        author, committer = who(commit.author), who(commit.committer)
        a, c = (commit.author_time, commit.author_timezone), (commit.commit_time, commit.commit_timezone)
        now = self._repo.process.kernel.now() // 1_000_000_000
        labels = self._names.get(sha, "")
        codes: dict[str, Callable[[], str]] = {
            "H": sha.decode, "h": lambda: sha.decode()[:7],
            "T": lambda: bytes(commit.tree).decode(), "t": lambda: bytes(commit.tree).decode()[:7],
            "P": lambda: " ".join(p.decode() for p in commit.parents),
            "p": lambda: " ".join(p[:7].decode() for p in commit.parents),
            "an": lambda: author[0], "ae": lambda: author[1], "aN": lambda: author[0], "aE": lambda: author[1],
            "cn": lambda: committer[0], "ce": lambda: committer[1], "cN": lambda: committer[0],
            "cE": lambda: committer[1], "ad": lambda: self.when(*a), "cd": lambda: self.when(*c),
            "ai": lambda: date(*a, "iso"), "ci": lambda: date(*c, "iso"), "aI": lambda: date(*a, "iso-strict"),
            "cI": lambda: date(*c, "iso-strict"), "at": lambda: str(a[0]), "ct": lambda: str(c[0]),
            "as": lambda: date(*a, "short"), "cs": lambda: date(*c, "short"), "aD": lambda: date(*a, "rfc"),
            "cD": lambda: date(*c, "rfc"), "ar": lambda: relative_date(a[0], now),
            "cr": lambda: relative_date(c[0], now), "s": lambda: subject_of(message),
            "b": lambda: body_of(message), "B": lambda: message.rstrip("\n") + "\n",
            "f": lambda: re.sub(r"[^A-Za-z0-9._]+", "-", subject_of(message)).strip("-."),
            "d": lambda: f" ({labels})" if labels else "", "D": lambda: labels, "n": lambda: "\n", "%": lambda: "%",
        }  # fmt: skip

        def replace(match: re.Match[str]) -> str:
            if match[1]:
                return chr(int(match[1], 16))
            if match[2] is not None or match[3]:
                return ""
            return codes[match[4]]() if match[4] in codes else match[0]

        pattern = r"%(?:x([0-9a-fA-F]{2})|C\(([^)]*)\)|C(red|green|blue|reset)|([HhTtPpsbBfdDn%]|[ac][nNeEdiIrtsD]))"
        return re.sub(pattern, replace, self.form)


def decorations(repo: Repository) -> dict[bytes, str]:
    """What HEAD, branches and tags say of commits: `HEAD -> main, tag: v1, origin/main`."""
    found: dict[bytes, list[str]] = {}
    head, branch = repo.head(), repo.refs.branch()
    if head is not None:
        found.setdefault(head, []).append(f"HEAD -> {branch.removeprefix('refs/heads/')}" if branch else "HEAD")
    for prefix, label in (("refs/tags/", "tag: "), ("refs/remotes/", ""), ("refs/heads/", "")):
        for name, sha in repo.refs.under(prefix).items():
            if name == branch:
                continue
            try:
                commit = bytes(repo.store.commit(sha).id)
            except KeyError:
                continue
            found.setdefault(commit, []).append(label + name.removeprefix(prefix))
    return {sha: ", ".join(names) for sha, names in found.items()}
