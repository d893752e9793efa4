"""A repository behind a web server: git's smart HTTP protocol by dulwich, over the sandbox's web files."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from dulwich.client import AbstractHttpGitClient
from dulwich.errors import (
    ApplyDeltaError,
    ChecksumMismatch,
    GitProtocolError,
    HangupException,
    ObjectFormatException,
    SendPackError,
)
from dulwich.object_store import ObjectStoreGraphWalker
from dulwich.objects import ObjectID
from dulwich.pack import UnpackedObject, pack_objects_to_data
from dulwich.refs import Ref

from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._url import BadUrl, Url, join, parse_url
from belljar.bin._web import Exchange, Head, WebError
from belljar.bin.git.repository.credentials import Settings, find_credentials
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.remote import NOTHING, Remote, Update, missing_objects
from belljar.bin.git.repository.repo import Repository
from belljar.kernel.process import Process

AGENT: Final = "git/2.39.5"
_REDIRECTS_MAX: Final = 20
_BROKEN: Final = (
    GitProtocolError, ApplyDeltaError, ChecksumMismatch, ObjectFormatException, ValueError, KeyError, IndexError,
    TypeError, AssertionError, EOFError, struct.error, zlib.error, NotImplementedError,
)  # fmt: skip
"""Exceptions that dulwich raises for a malformed answer."""

T = TypeVar("T")


class _Response:
    """A response with the attributes that dulwich reads."""

    def __init__(self, exchange: Exchange, content_type: str, location: str | None, status: int) -> None:
        self._exchange = exchange
        self.content_type = content_type
        self.redirect_location = location
        self.status = status
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        """As a file: as much as is asked for, unless there is no more."""
        parts = [self._rest]
        have = len(self._rest)
        while (size < 0 or have < size) and (data := self._exchange.read()):
            parts.append(data)
            have += len(data)
        whole = b"".join(parts)
        if size < 0:
            self._rest = b""
            return whole
        self._rest = whole[size:]
        return whole[:size]

    def close(self) -> None:
        self._exchange.close()


class WebClient(AbstractHttpGitClient):
    """dulwich's client over our files."""

    def __init__(self, process: Process, url: Url, settings: Settings) -> None:
        super().__init__(url.request_url(), quiet=True)
        self._process = process
        self._url = url
        self._settings = settings
        self._credentials = find_credentials(process, url, settings)
        self._started = process.kernel.hub.clock.monotonic()

    def _http_request(
        self,
        url: str,
        headers: dict[str, str] | None = None,
        data: bytes | Iterator[bytes] | None = None,
        raise_for_status: bool = True,
    ) -> Any:
        now = parse_url(url)
        fields = [("User-Agent", AGENT), *(headers or {}).items()]
        body = None if data is None else [data] if isinstance(data, bytes) else data
        moved: str | None = None
        for _ in range(_REDIRECTS_MAX):
            exchange = Exchange(self._process)
            try:
                head = exchange.ask(
                    "GET" if data is None else "POST", now.request_url(), self._fields(now, fields), body
                )
                location = head.get("location")
                if head.status not in (301, 302, 303, 307, 308) or location is None or data is not None:
                    break
                now = join(now, location)
                moved = now.request_url()
            except (WebError, BadUrl):
                exchange.close()
                raise
            exchange.close()
        else:
            raise GitError(f"unable to access '{self._shown()}': Maximum ({_REDIRECTS_MAX}) redirects followed")
        if raise_for_status and head.status != 200:
            self._relay(exchange, head)
            exchange.close()
            raise self._refused(head.status)
        response = _Response(exchange, head.get("content-type") or "", moved, head.status)
        return response, response.read

    def _post_buffer_size(self, url: str) -> int:
        """A pack up to this is sent with its length."""
        return 1 << 20

    def _relay(self, exchange: Exchange, head: Head) -> None:
        """A server may say in plain text why it refuses."""
        if (head.get("content-type") or "").partition(";")[0].strip() == "text/plain" and head.status != 401:
            for line in exchange.read(1 << 12).decode("utf-8", "replace").splitlines()[:20]:
                self._process.error(f"remote: {printable(line)}\n")

    def _fields(self, url: Url, fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
        sent = [("Host", url.host_header), *fields]
        if url.origin == self._url.origin:  # a redirect elsewhere gets no secrets
            for line in self._settings("http.extraheader"):
                name, _, value = line.partition(":")
                sent.append((name.strip(), value.strip()))
            if self._credentials is not None and not any(name.lower() == "authorization" for name, _ in sent):
                sent.append(("Authorization", self._credentials.basic()))
        return sent

    def _shown(self) -> str:
        return f"{self._url.scheme}://{self._url.host_header}{self._url.path.rstrip('/')}/"

    def _refused(self, status: int) -> GitError:
        if status == 401 and self._credentials is None:
            place = f"{self._url.scheme}://{self._url.host_header}"
            return GitError(f"could not read Username for '{place}': No such device or address")
        if status == 401:
            return GitError(f"Authentication failed for '{self._shown()}'")
        if status == 404:
            return GitError(f"repository '{self._shown()}' not found")
        return GitError(f"unable to access '{self._shown()}': The requested URL returned error: {status}")

    def unreachable(self, error: WebError) -> GitError:
        """git's words are curl's."""
        host = self._url.host
        match error.kind:
            case "dns":
                reason = f"Could not resolve host: {host}"
            case "denied":
                reason = f"Failed to connect to {host} port {self._url.port}: denied by policy: {error.text}"
            case "connect":
                took = int((self._process.kernel.hub.clock.monotonic() - self._started) * 1000)
                reason = (
                    f"Failed to connect to {host} port {self._url.port} after {took} ms: Could not connect to server"
                )
            case "tls":
                reason = f"SSL certificate problem: {error.text.partition(' is not valid: ')[2] or error.text}"
            case _:
                reason = error.text
        return GitError(f"unable to access '{self._shown()}': {reason}")


class WebRemote(Remote):
    """A remote at an http or https URL."""

    def __init__(self, process: Process, url: str, settings: Settings) -> None:
        self.where = url
        self._process = process
        try:
            parsed = parse_url(url)
        except BadUrl as error:
            raise GitError(f"unable to access '{url}': URL rejected: {error}") from None
        self._client = WebClient(process, parsed, settings)
        self._refs: dict[str, bytes] | None = None
        self._symbolic: dict[bytes, bytes] = {}

    def _attempt(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except WebError as error:
            raise self._client.unreachable(error) from None
        except HangupException:
            raise GitError("the remote end hung up unexpectedly") from None
        except BadUrl as error:
            raise GitError(f"unable to access '{self.where}': {error}") from None
        except _BROKEN as error:
            raise GitError(f"protocol error: {self.where}: {type(error).__name__}: {error}") from None

    def _discover(self) -> dict[str, bytes]:
        if self._refs is None:
            found = self._attempt(lambda: self._client.get_refs(b""))
            self._symbolic = {bytes(name): bytes(target) for name, target in found.symrefs.items()}
            self._refs = {
                fsdecode(bytes(name)): bytes(sha)
                for name, sha in found.refs.items()
                if sha is not None and not name.endswith(b"^{}") and _is_safe(bytes(name), bytes(sha))
            }
        return self._refs

    def all_refs(self) -> dict[str, bytes]:
        """HEAD and everything else, as `ls-remote` shows it."""
        return self._discover()

    def refs(self) -> dict[str, bytes]:
        return {ref: sha for ref, sha in self._discover().items() if ref.startswith(("refs/heads/", "refs/tags/"))}

    def branch(self) -> str | None:
        refs = self._discover()
        target = self._symbolic.get(b"HEAD")
        if target is not None:
            return fsdecode(target)
        at = refs.get("HEAD")
        names = [ref for ref, sha in refs.items() if sha == at and ref.startswith("refs/heads/")]
        return next(
            (name for name in ("refs/heads/main", "refs/heads/master") if name in names), next(iter(names), None)
        )

    def bring(self, repo: Repository, tips: list[bytes], depth: int | None = None) -> None:
        # To another depth, what we have may be cut off too early.
        wanted = [ObjectID(sha) for sha in dict.fromkeys(tips) if depth is not None or sha not in repo.store]
        if not wanted:
            return
        parts: list[bytes] = []
        size = 0

        def take(data: bytes) -> int:
            nonlocal size
            size += len(data)
            self._process.budget.charge(1 + (len(data) >> 10))
            self._process.budget.charge_size(size)
            parts.append(data)
            return len(data)

        def parents(sha: ObjectID) -> list[ObjectID]:
            try:
                return list(repo.store.commit(bytes(sha)).parents)
            except KeyError:
                return []

        local = [ObjectID(sha) for sha in repo.refs.under("refs/").values()]
        walker = ObjectStoreGraphWalker(local, parents, shallow={ObjectID(sha) for sha in repo.store.shallow})
        result = self._attempt(
            lambda: self._client.fetch_pack(b"", lambda refs, depth=None: wanted, walker, take, depth=depth)
        )
        self._attempt(lambda: repo.store.add_pack(b"".join(parts)))
        repo.store.change_shallow(
            {bytes(sha) for sha in result.new_shallow or ()}, {bytes(sha) for sha in result.new_unshallow or ()}
        )

    def send(self, repo: Repository, updates: list[Update]) -> dict[str, str]:
        refs = self._discover()
        tips = [update.new for update in updates if update.new is not None]
        known = {sha for sha in refs.values() if sha in repo.store}

        def changed(old: dict[Ref, ObjectID]) -> dict[Ref, ObjectID]:
            return {
                **old,
                **{Ref(fsencode(u.ref)): ObjectID(u.new or NOTHING) for u in updates},
            }

        def objects(have: Any, want: Any, **_: Any) -> tuple[int, Iterator[UnpackedObject]]:
            shas = missing_objects(repo, tips, _reached(repo, known), None)
            return pack_objects_to_data([(repo.store.get(sha), None) for sha in shas], deltify=False)

        def push() -> dict[str, str]:
            try:
                result = self._client.send_pack(b"", changed, objects)
            except SendPackError as error:
                return {update.ref: fsdecode(bytes(error.args[0])) for update in updates}
            status = result.ref_status or {}
            return {fsdecode(bytes(ref)): str(why) for ref, why in status.items() if why is not None}

        return self._attempt(push)

    def close(self) -> None:
        """Every request was closed when it was done."""


def _reached(repo: Repository, tips: Iterable[bytes]) -> set[bytes]:
    """All that the other side has, as far as we know it."""
    return set(missing_objects(repo, list(tips), set(), None))


def without_secrets(url: str) -> str:
    """A URL as it may be shown: no user, no password."""
    return re.sub(r"^(https?://)[^/@]*@", r"\1", url, flags=re.I)


def printable(line: str) -> str:
    """A server's words, without what would move a terminal's cursor."""
    return "".join(char if char.isprintable() else "?" for char in line)


def _is_safe(name: bytes, sha: bytes) -> bool:
    """A server's names become our files: none may lead elsewhere."""
    parts = name.split(b"/")
    good = all(part and not part.startswith(b".") and not part.endswith(b".lock") for part in parts)
    return good and b"\0" not in name and len(sha) == 40 and (name == b"HEAD" or name.startswith(b"refs/"))
