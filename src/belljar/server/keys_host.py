"""API keys, and the ids and tokens of sandboxes."""

from __future__ import annotations

import hmac
import secrets
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Final
from uuid import uuid4

from belljar.abi.clock import Clock
from belljar.abi.clock_host import HostClock
from belljar.server.database_host import Database, Key

PREFIX: Final = "bj_"
_ID: Final = 10
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
_KEY_MAX: Final = 200
READ_ONLY: Final = "read"
"""A scope, beside "tenant" and "operator". An operator's key may read /metrics from elsewhere, too; one that only reads
changes nothing, and gets no tokens."""


def _letters(count: int, randbelow: Callable[[int], int]) -> str:
    number, found = randbelow(len(_LETTERS) ** count), ""  # one system call, not one for each letter
    for _ in range(count):
        number, place = divmod(number, len(_LETTERS))
        found += _LETTERS[place]
    return found


def new_id(randbelow: Callable[[int], int] = secrets.randbelow) -> str:
    """A name for a sandbox or a snapshot that nobody can guess."""
    return "i" + _letters(24, randbelow)


def build_id() -> str:
    """The protocol wants these to be UUIDs."""
    return str(uuid4())


def request_id() -> str:
    return secrets.token_hex(8)


def session_token() -> str:
    """What a browser shows once it has signed in; kept as `hash_of` it."""
    return secrets.token_urlsafe(32)


def create_key(
    database: Database,
    tenant: str,
    name: str,
    scope: str = "tenant",
    *,
    clock: Clock | None = None,
    randbelow: Callable[[int], int] = secrets.randbelow,
) -> str:
    """Make a key, and its tenant if there is none; gives the key, which is kept nowhere."""
    number, now = _letters(_ID, randbelow), (clock or HostClock()).time()
    text = PREFIX + number + _letters(32, randbelow)
    database.add_tenant(tenant, now)
    database.add_key(Key(number, tenant, hash_of(text), name, scope, now, None))
    return text


def find_key(database: Database, text: str) -> Key | None:
    """The valid key that `text` is."""
    if not text.startswith(PREFIX) or len(text) > _KEY_MAX or not text.isascii():
        return None
    found = database.key(text[len(PREFIX) :][:_ID])
    known = hash_of(text) if found is None else found.hash  # the comparison is made in any case
    same = hmac.compare_digest(known, hash_of(text))
    return found if same and found is not None and found.revoked is None else None


def hash_of(text: str) -> bytes:
    """Keys are long and random: a plain hash can't be turned back."""
    return sha256(text.encode()).digest()


class Tokens:
    """Tokens of sandboxes, computed from a secret of the server's: they can be checked without knowing the sandbox."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def envd(self, sandbox: str) -> str:
        """The token for a sandbox's files and processes (`X-Access-Token`)."""
        return self._make("envd", sandbox)

    def traffic(self, sandbox: str) -> str:
        """The token for a sandbox's ports (`E2B-Traffic-Access-Token`)."""
        return self._make("traffic", sandbox)

    def _make(self, use: str, sandbox: str) -> str:
        digest = hmac.digest(self._secret, f"{use}:{sandbox}".encode("utf-8", "surrogatepass"), "sha256")
        return urlsafe_b64encode(digest).rstrip(b"=").decode()

    def preview(self, sandbox: str, port: int, until: str) -> str:
        """The signature of a link to a port of a sandbox."""
        return self.link("preview", sandbox, str(port), until)

    def link(self, use: str, *parts: str) -> str:
        """The signature of a URL of ours."""
        return self._make(use, "\0".join(parts))

    def signature(self, sandbox: str, path: str, operation: str, user: str, expiration: str | None) -> str:
        """The signature of a URL for one file, as the SDKs compute it from the token."""
        parts = [path, operation, user, self.envd(sandbox)]
        if expiration is not None:
            parts.append(expiration)
        digest = sha256(":".join(parts).encode("utf-8", "surrogatepass")).digest()
        return "v1_" + b64encode(digest).rstrip(b"=").decode()


def same(given: str, expected: str) -> bool:
    """Compare in a time that tells nothing."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def new_token() -> str:
    """A secret by which a client's session is found again."""
    return secrets.token_urlsafe(32)
