"""The graph beside a log: lines that join commits to their parents."""

from __future__ import annotations


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
