"""Walking and showing commits: order, limits, formats, and the graph beside them."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator

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


def topological(repo: Repository, commits: list[bytes], *, by_date: bool = False) -> list[bytes]:
    """No commit before its children; lines of development stay together, or the newest comes first."""
    known = set(commits)
    children = dict.fromkeys(commits, 0)
    for sha in commits:
        for parent in repo.store.commit(sha).parents:
            if parent in known:
                children[bytes(parent)] += 1
    out: list[bytes] = []
    ready: list[tuple[int, int, bytes]] = []
    """A stack for lines of development, a heap for dates: what comes next is the smallest."""
    count = len(commits)
    for number, sha in enumerate(commits):
        if not children[sha]:
            ready.append((-repo.store.commit(sha).commit_time if by_date else 0, number, sha))
    heapq.heapify(ready)
    while ready:
        repo.process.budget.charge()
        sha = heapq.heappop(ready)[2]
        out.append(sha)
        for parent in repo.store.commit(sha).parents:
            if parent in known:
                children[bytes(parent)] -= 1
                if not children[bytes(parent)]:
                    count += 1
                    time = repo.store.commit(parent).commit_time
                    heapq.heappush(ready, (-time, count, bytes(parent)) if by_date else (0, -count, bytes(parent)))
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
            return strftime("%Y-%m-%dT%H:%M:%S", when) + f"{zone[:3]}:{zone[3:]}"
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
    """What follows the subject, with the newline at its end."""
    return message.lstrip("\n").partition("\n\n")[2].lstrip("\n")


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def who(data: bytes) -> tuple[str, str]:
    match = re.fullmatch(r"(.*?) ?<(.*)>", text_of(data), re.S)
    return (match[1], match[2]) if match else (text_of(data), "")
