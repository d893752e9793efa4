"""Who we say we are: Basic, Bearer and Digest, from -u, the URL, or a .netrc file."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable

from belljar.abi.dataclass import dataclass

_ITEM = re.compile(r'([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))')


@dataclass(frozen=True, slots=True)
class Credentials:
    user: str
    password: str

    def basic(self) -> str:
        text = f"{self.user}:{self.password}".encode("utf-8", "surrogateescape")
        return "Basic " + base64.b64encode(text).decode("ascii")


def digest(
    credentials: Credentials, challenge: str, method: str, target: str, entropy: Callable[[int], bytes]
) -> str | None:
    """The answer to a Digest challenge (RFC 7616, without -sess and auth-int); None if it can't be answered."""
    items = {m[1].lower(): m[2] if m[2] is not None else m[3] for m in _ITEM.finditer(challenge)}
    algorithm = items.get("algorithm", "MD5")
    makers = {"MD5": "md5", "SHA-256": "sha256", "SHA-512-256": "sha512_256"}
    if algorithm.upper() not in makers or "nonce" not in items:
        return None
    offered = [word.strip() for word in items.get("qop", "").split(",") if word.strip()]
    if offered and "auth" not in offered:
        return None

    def hashed(text: str) -> str:
        return hashlib.new(makers[algorithm.upper()], text.encode("utf-8", "surrogateescape")).hexdigest()

    realm, nonce = items.get("realm", ""), items["nonce"]
    first = hashed(f"{credentials.user}:{realm}:{credentials.password}")
    second = hashed(f"{method}:{target}")
    fields = [f'username="{credentials.user}"', f'realm="{realm}"', f'nonce="{nonce}"', f'uri="{target}"']
    if offered:
        once = base64.b64encode(entropy(24)).decode("ascii")
        response = hashed(f"{first}:{nonce}:00000001:{once}:auth:{second}")
        fields += [f'cnonce="{once}"', "nc=00000001", "qop=auth"]
    else:
        response = hashed(f"{first}:{nonce}:{second}")
    fields.append(f'response="{response}"')
    if "opaque" in items:
        fields.append(f'opaque="{items["opaque"]}"')
    if "algorithm" in items:
        fields.append(f"algorithm={algorithm}")
    return "Digest " + ", ".join(fields)


def from_netrc(text: str, host: str, user: str | None) -> Credentials | None:
    """The entry for a host, or the default one."""
    words = text.split()
    login, password, matches = "", "", False
    index = 0
    while index < len(words):
        word = words[index]
        following = words[index + 1] if index + 1 < len(words) else ""
        if word in ("machine", "default"):
            if matches and (user is None or login == user):
                break
            matches = word == "default" or following.lower() == host.lower()
            login = password = ""
            index += 1 if word == "default" else 2
            continue
        if word == "login":
            login = following
        elif word == "password":
            password = following
        index += 2
    if not matches or (user is not None and login != user):
        return None
    return Credentials(login, password)
