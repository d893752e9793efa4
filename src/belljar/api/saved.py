"""The variables of an interpreter as bytes that can be kept anywhere, and trusted as far as their seal."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from belljar.api.errors import SnapshotError, printable
from belljar.api.runs import RunResult

MAX_BYTES: Final = 16 << 20
"""Bytes of variables that are saved unless said otherwise."""
CEILING: Final = 32 << 20
"""Bytes that can be sent at all."""

_MAGIC: Final = b"belljar-variables-1\n"
TAG_BYTES: Final = hashlib.sha256().digest_size
_REASONS_MAX: Final = 1000
Language = Literal["python", "javascript"]


@dataclass(frozen=True, slots=True)
class SavedVariables:
    """The variables of an interpreter. `data` is the guest's own writing: nothing outside a sandbox reads it."""

    language: Language
    data: bytes
    left_out: Mapping[str, str]
    """The variables that could not be saved, and why."""
    begins_with: str = ""
    """Imports that code with them begins with: so a new interpreter can start with the libraries it needs."""
    files: str = ""
    """The ref of a snapshot with the files beside them; "": none was kept."""

    def seal(self, key: bytes = b"", context: str = "") -> bytes:
        """As bytes to keep. With a key, `unseal` takes only what was sealed with it, and for the same `context`."""
        said = {"language": self.language, "left_out": dict(self.left_out), "begins_with": self.begins_with}
        head = json.dumps({**said, "files": self.files} if self.files else said).encode()
        body = len(head).to_bytes(4, "little") + head + self.data
        return _MAGIC + tag(key, context, body) + body

    @classmethod
    def unseal(cls, sealed: object, key: bytes = b"", context: str = "") -> SavedVariables:
        """Open sealed bytes. SnapshotError if it is something else, was changed, or was not sealed with this key."""
        if not isinstance(sealed, bytes) or not sealed.startswith(_MAGIC):
            raise SnapshotError("these are not variables that this version saved: run the programs again")
        told, body = sealed[len(_MAGIC) :][:TAG_BYTES], sealed[len(_MAGIC) + TAG_BYTES :]
        if not hmac.compare_digest(told, tag(key, context, body)):
            raise SnapshotError("the saved variables were changed, or sealed with another key: they are not used")
        try:
            length = int.from_bytes(body[:4], "little")
            head = json.loads(body[4 : 4 + length])
            reasons, files = _reasons(head["left_out"]), str(head.get("files", ""))
            return cls(head["language"], body[4 + length :], reasons, str(head["begins_with"]), files)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SnapshotError(f"the saved variables can't be read: {error}") from None


def tag(key: bytes, context: str, body: bytes) -> bytes:
    """The seal of some bytes: only who has the key can make it, for this context."""
    name = context.encode("utf-8", "surrogatepass")
    return hmac.digest(key, len(name).to_bytes(4, "little") + name + body, "sha256")


def check_size(max_bytes: object) -> int:
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int):
        raise TypeError(f"max_bytes is an int, not {type(max_bytes).__name__}")
    if not 0 < max_bytes <= CEILING:
        raise ValueError(f"max_bytes is between 1 and {CEILING}, not {max_bytes}")
    return max_bytes


def check_language(saved: SavedVariables, language: Language) -> None:
    if saved.language != language:
        raise SnapshotError(f"these are variables of {saved.language}, not of {language}")


def saved_from(result: RunResult, language: Language, max_bytes: int) -> SavedVariables:
    """Check the variables that a guest wrote. SnapshotError if it could not."""
    _check(result, "saved")
    match result.exports:
        case {"data": bytes() as data, "left_out": dict(left_out), "begins_with": str(begins_with)}:
            if len(data) <= 2 * max_bytes + 1024:
                return SavedVariables(language, data, _reasons(left_out), begins_with[:1000])
    raise SnapshotError("the variables could not be saved: the interpreter said what makes no sense")


def lost_from(result: RunResult) -> dict[str, str]:
    """Reasons by name for what a guest could not load. SnapshotError if it could take nothing."""
    _check(result, "restored")
    match result.exports:
        case {"lost": dict(lost)}:
            return _reasons(lost)
    raise SnapshotError("the variables could not be restored: the interpreter said what makes no sense")


def _check(result: RunResult, what: str) -> None:
    if result.error is not None:
        raise SnapshotError(f"the variables could not be {what}: {printable(str(result.error))}")


def _reasons(given: Any) -> dict[str, str]:
    """Names and reasons, as a guest tells them: hostile text."""
    if not isinstance(given, dict):
        raise TypeError("no names and reasons")
    return {printable(str(name))[:200]: printable(str(why))[:400] for name, why in list(given.items())[:_REASONS_MAX]}
