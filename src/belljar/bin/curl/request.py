"""One request of a transfer: its method and headers, from what the command line says and what redirects leave of it."""

from __future__ import annotations

from email.utils import formatdate
from urllib.parse import unquote

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.abi.records import NANO
from belljar.bin._contentcoding import accepted
from belljar.bin._cookies import Jar
from belljar.bin._httpauth import Credentials, from_netrc
from belljar.bin._kit.dates import BadDate, parse_date
from belljar.bin._url import Url
from belljar.bin.curl.body import FORM, Body, joined_data, multipart, plain, upload
from belljar.bin.curl.options import Operation, Target
from belljar.kernel.process import Process

AGENT = "curl/8.14.1"
_SECRET = ("authorization", "cookie")


@dataclass(slots=True)
class Draft:
    """The current request; a redirect changes it."""

    url: Url
    method: str
    body: Body | None
    credentials: Credentials | None
    trusted: bool = True
    """Whether credentials may go along: not to another origin."""
    authorization: str | None = None
    """An answer to a challenge."""
    start: int = 0
    """The first byte wanted."""
    referer: str | None = None
    given: list[tuple[str, str]] = field(default_factory=list)
    """Headers from -H; an empty value suppresses a header of ours."""


def draft(process: Process, operation: Operation, target: Target, url: Url) -> Draft:
    """Raises CurlError for a file that can't be sent."""
    body: Body | None = None
    method = "GET"
    if operation.forms:
        body, method = multipart(process, operation, _boundary(process)), "POST"
    elif operation.data and not operation.flag("get"):
        data = joined_data(operation)
        body, method = Body((plain(data),), _data_type(operation)), "POST"
    if target.upload:
        body, method = upload(process, target.upload), "PUT"
    if operation.flag("head"):
        method = "HEAD"
    referer = operation.values.get("referer")
    return Draft(
        url,
        operation.values.get("request", method),
        body,
        _credentials(process, operation, url),
        referer=referer.removesuffix(";auto") or None if referer is not None else None,
        given=[_field(line) for line in operation.all("header")],
    )


def _boundary(process: Process) -> str:
    return "-" * 24 + process.kernel.machine.entropy.random_bytes(11).hex()


def _data_type(operation: Operation) -> str:
    return "application/json" if any(name == "json" for name, _ in operation.data) else FORM


def _field(line: str) -> tuple[str, str]:
    """`Name: value`; `Name;` has an empty value, `Name:` takes a header away."""
    name, colon, value = line.partition(":")
    if not colon:
        return (line.rstrip().removesuffix(";"), " ") if line.rstrip().endswith(";") else (line.strip(), "")
    return name.strip(), value.strip()


def _credentials(process: Process, operation: Operation, url: Url) -> Credentials | None:
    given = operation.values.get("user")
    if given is not None:
        user, _, password = given.partition(":")
        return Credentials(user, password)
    if url.user is not None and url.password is not None:
        return Credentials(unquote(url.user), unquote(url.password))
    path = operation.values.get("netrc-file")
    if path is None and (operation.flag("netrc") or operation.flag("netrc-optional")):
        path = process.env.get("HOME", "") + "/.netrc"
    if path is not None:
        text = fsdecode(process.try_read(path) or b"")
        found = from_netrc(text, url.host, url.user)
        if found is not None:
            return found
    return Credentials(unquote(url.user), "") if url.user is not None else None


def headers(
    process: Process, operation: Operation, now: Draft, jar: Jar, literal_cookies: str
) -> list[tuple[str, str]]:
    """All headers, in curl's order; those of -H replace ours."""
    url = now.url
    ours: list[tuple[str, str]] = [("Host", url.host_header)]
    if now.authorization is not None:
        ours.append(("Authorization", now.authorization))
    elif now.trusted and (token := operation.values.get("oauth2-bearer")) is not None:
        ours.append(("Authorization", f"Bearer {token}"))
    elif now.trusted and now.credentials is not None and not operation.flag("digest") and not operation.flag("anyauth"):
        ours.append(("Authorization", now.credentials.basic()))
    if now.start:
        ours.append(("Range", f"bytes={now.start}-"))
    elif (wanted := operation.values.get("range")) is not None:
        ours.append(("Range", f"bytes={wanted}"))
    agent = operation.values.get("user-agent", AGENT)
    if agent:
        ours.append(("User-Agent", agent))
    json = any(name == "json" for name, _ in operation.data)
    given = {name.lower() for name, _ in now.given}
    if not json:
        ours.append(("Accept", "*/*"))
    if operation.flag("compressed"):
        ours.append(("Accept-Encoding", accepted()))
    if now.referer:
        ours.append(("Referer", now.referer))
    if cookies := _cookies(process, now, jar, literal_cookies):
        ours.append(("Cookie", cookies))
    ours += _conditions(process, operation)
    custom = [
        (name, value.strip())
        for name, value in now.given
        if value and (now.trusted or name.lower() not in _SECRET or operation.flag("location-trusted"))
    ]
    result = [field for field in ours if field[0].lower() not in given] + custom
    if any(name.lower() == "host" for name, _ in custom):
        result.sort(key=lambda field: field[0].lower() != "host")
    if json:
        result += [("Content-Type", "application/json")] if "content-type" not in given else []
        result += [("Accept", "application/json")] if "accept" not in given else []
    if now.body is not None:
        if now.body.size is not None and "content-length" not in given and "transfer-encoding" not in given:
            result.append(("Content-Length", str(now.body.size)))
        if now.body.content_type and "content-type" not in given and not json:
            result.append(("Content-Type", now.body.content_type))
    return result


def _cookies(process: Process, now: Draft, jar: Jar, literal: str) -> str:
    stored = jar.header(now.url, process.kernel.hub.clock.time_ns() / NANO)
    return "; ".join(text for text in (stored, literal if now.trusted else "") if text)


def _conditions(process: Process, operation: Operation) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if (text := operation.values.get("time-cond")) is not None:
        name = "If-Unmodified-Since" if text.startswith("-") else "If-Modified-Since"
        seconds = _moment(process, text.lstrip("-+="))
        if seconds is not None:
            found.append((name, formatdate(seconds, usegmt=True)))
    if (path := operation.values.get("etag-compare")) is not None:
        tag = fsdecode(process.try_read(path) or b"").strip()
        found.append(("If-None-Match", tag or '""'))
    return found


def _moment(process: Process, text: str) -> float | None:
    """A date, or the time of a file."""
    try:
        return parse_date(text, process.kernel.hub.clock.time_ns(), process.env) / NANO
    except BadDate:
        pass
    try:
        return process.fs.stat(text).mtime / NANO
    except SysError:
        return None
