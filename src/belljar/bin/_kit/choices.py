"""Words an option accepts as its value: abbreviations, synonyms, and GNU's message when it is none of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from belljar.bin._kit.options import UsageError
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process


class BadChoice(UsageError):
    """A value that is none of the words."""


def pick(
    process: Process, option: str, text: str, words: Mapping[str, Sequence[str]], *, abbreviated: bool = True
) -> str:
    """The word that `text` is, or begins, or is a synonym of. BadChoice if there is none, or more than one."""
    spelled = {name: word for word, synonyms in words.items() for name in (word, *synonyms)}
    if text in spelled:
        return spelled[text]
    found = {word for name, word in spelled.items() if name.startswith(text)} if abbreviated else set()
    if len(found) == 1:
        return found.pop()
    what = "ambiguous" if found else "invalid"
    lines = [f"{what} argument {quote(text, process.env)} for {quote(option, process.env)}", "Valid arguments are:"]
    lines += ["  - " + ", ".join(quote(n, process.env) for n in (word, *also)) for word, also in words.items()]
    raise BadChoice("\n".join(lines))


def update_mode(process: Process, text: str | None, *, newer: bool) -> str:
    """Parse which existing files cp and mv replace: all, older ones, none, or none with an error."""
    if text is None:
        return "older" if newer else "all"
    return pick(process, "--update", text, {"all": (), "none": (), "none-fail": (), "older": ()})
