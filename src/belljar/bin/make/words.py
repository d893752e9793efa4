"""Words and % patterns: the small text operations that make's functions and rules share."""

from __future__ import annotations


def find_percent(pattern: str) -> int:
    """Return where the first % that no backslash hides is; -1 if there is none."""
    at = pattern.find("%")
    while at > 0 and pattern[at - 1] == "\\":
        at = pattern.find("%", at + 1)
    return at


def split_percent(pattern: str) -> tuple[str, str] | None:
    """Split a pattern at its %; None if there is none."""
    at = find_percent(pattern)
    if at == -1:
        return None
    return pattern[:at].replace("\\%", "%"), pattern[at + 1 :]


def stem_of(pattern: str, word: str) -> str | None:
    """Return the text that % matches; None if the word does not match. A pattern without % must equal the word."""
    parts = split_percent(pattern)
    if parts is None:
        return "" if pattern.replace("\\%", "%") == word else None
    before, behind = parts
    if len(word) < len(before) + len(behind) or not (word.startswith(before) and word.endswith(behind)):
        return None
    return word[len(before) : len(word) - len(behind)]


def patsubst(pattern: str, replacement: str, words: list[str]) -> list[str]:
    parts = split_percent(pattern)
    into = split_percent(replacement)
    if parts is None:
        plain = pattern.replace("\\%", "%")
        return [replacement if word == plain else word for word in words]
    before, behind = parts
    least = len(before) + len(behind)
    out: list[str] = []
    for word in words:
        if len(word) >= least and word.startswith(before) and word.endswith(behind):
            stem = word[len(before) : len(word) - len(behind)]
            out.append(into[0] + stem + into[1] if into is not None else replacement)
        else:
            out.append(word)
    return out


def fill(pattern: str, stem: str) -> str:
    """A prerequisite pattern with its % replaced by the stem."""
    parts = split_percent(pattern)
    return pattern if parts is None else parts[0] + stem + parts[1]


def directory(word: str) -> str:
    """Return the directory part with its slash, or ./"""
    at = word.rfind("/")
    return word[: at + 1] if at != -1 else "./"


def not_directory(word: str) -> str:
    return word[word.rfind("/") + 1 :]


def suffix(word: str) -> str:
    base = not_directory(word)
    at = base.rfind(".")
    return base[at:] if at != -1 else ""


def without_suffix(word: str) -> str:
    tail = suffix(word)
    return word[: len(word) - len(tail)] if tail else word


def unique(words: list[str]) -> list[str]:
    return list(dict.fromkeys(words))


def closing(text: str, start: int) -> int:
    """Return where the bracket that opens at `start` closes; -1 if it never does."""
    opener = text[start]
    closer = ")" if opener == "(" else "}"
    depth = 0
    for at in range(start, len(text)):
        char = text[at]
        if char == opener:
            depth += 1
        elif char == closer:
            depth -= 1
            if depth == 0:
                return at
    return -1


def find_outside(text: str, chars: str, start: int = 0) -> int:
    """The first of some characters that is not inside a $(reference); -1 if there is none."""
    at = start
    while at < len(text):
        char = text[at]
        if char == "$" and at + 1 < len(text):
            if text[at + 1] in "({":
                end = closing(text, at + 1)
                if end == -1:
                    return -1
                at = end + 1
            else:
                at += 2
            continue
        if char in chars:
            return at
        at += 1
    return -1


def split_arguments(text: str, most: int) -> list[str]:
    """A function's arguments at its commas, those inside brackets left alone; at most so many."""
    if "," not in text:
        return [text]
    parts: list[str] = []
    depth = start = 0
    for at, char in enumerate(text):
        if char in "({":
            depth += 1
        elif char in ")}":
            depth -= 1
        elif char == "," and depth <= 0:
            if most and len(parts) == most - 1:
                break
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return parts
