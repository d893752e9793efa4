"""Network errors, in the words the guest is told."""

from __future__ import annotations

from typing import Final

KINDS: Final = frozenset("denied dns connect tls timeout protocol too-large reset".split())


class NetError(Exception):
    """A kind of `KINDS` and a sentence. The sentence is shown to the guest: nothing of the host is in it.

    It is one line, and nothing in it moves a cursor, whoever's words it repeats.
    """

    def __init__(self, kind: str, text: str, *, recorded: str | None = None, temporary: bool = False) -> None:
        """`recorded` stands in the owner's record where the text repeats what somebody else wrote.

        `temporary`: the same may be granted later.
        """
        text = "".join(character if character.isprintable() else "?" for character in text)
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text
        self.recorded = text if recorded is None else recorded
        self.temporary = temporary
