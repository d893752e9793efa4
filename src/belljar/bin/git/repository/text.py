"""Words: messages, people and dates of commits, and lines of input."""

from __future__ import annotations

import re

from belljar.bin.git.repository.repo import Repository
from belljar.libc.calendar import moment_at
from belljar.libc.strftime import offset_digits, strftime


def date(seconds: int, offset: int, style: str = "default", name: str = "") -> str:
    """A time as --date shows it, on a clock so many seconds east of UTC; the zone may have a name."""
    zone = offset_digits(offset)
    when = moment_at(seconds, offset, name)
    if style.startswith("format:"):
        return strftime(style[7:], when)
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


def commit_subject(repo: Repository, sha: bytes) -> str:
    return subject_of(text_of(repo.store.commit(sha).message))


def body_of(message: str) -> str:
    """Return the text after the subject, with the newline at its end."""
    return message.lstrip("\n").partition("\n\n")[2].lstrip("\n")


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def who(data: bytes) -> tuple[str, str]:
    match = re.fullmatch(r"(.*?) ?<(.*)>", text_of(data), re.S)
    return (match[1], match[2]) if match else (text_of(data), "")


def strip_space(text: str, *, comments: bool = False) -> str:
    """Remove trailing blanks, repeated empty lines and those at both ends, and lines that begin with `#`."""
    lines = [line.rstrip() for line in text.split("\n") if not comments or not line.startswith("#")]
    out: list[str] = []
    for line in lines:
        if line or (out and out[-1]):
            out.append(line)
    while out and not out[-1]:
        out.pop()
    return "".join(f"{line}\n" for line in out)


TRAILER = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9-]*\s*:\s.*|\(cherry picked from commit .*)")


def trailer_lines(message: str) -> list[str]:
    """The lines of the block of trailers that ends a message; continued lines stay with what they continue."""
    paragraphs = re.split(r"\n[ \t]*\n", message.strip("\n"))
    if len(paragraphs) < 2:
        return []
    lines: list[str] = []
    strange = 0
    for line in paragraphs[-1].split("\n"):
        if line[:1] in (" ", "\t") and lines:
            lines[-1] += f"\n{line}"
        elif TRAILER.fullmatch(line):
            lines.append(line)
        elif line:
            strange += 1
    known = any(line.startswith(("Signed-off-by: ", "(cherry picked from commit ")) for line in lines)
    return lines if not strange or (known and len(lines) * 3 >= strange) else []


def add_trailer(message: str, line: str) -> str:
    """A message with one more trailer, unless it ends with just that."""
    lines = trailer_lines(message)
    if lines and lines[-1] == line:
        return message
    return message.rstrip("\n") + ("\n" if lines else "\n\n") + line + "\n"


def input_lines(repo: Repository) -> list[str]:
    """Lines of standard input, for commands that take names from it."""
    return text_of(repo.process.read_file("-")).split("\n")
