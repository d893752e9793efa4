"""One URL fetched: requests until there are no more redirects, the response written where it belongs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from email.utils import formatdate, parsedate_to_datetime
from typing import Final

from belljar.abi.dataclass import replace
from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_TRUNC, O_WRONLY
from belljar.abi.records import NANO
from belljar.bin._contentcoding import BadEncoding, decoded
from belljar.bin._cookies import Jar
from belljar.bin._httpauth import digest
from belljar.bin._url import BadUrl, Url, join
from belljar.bin._web import Exchange, Head, WebError, name_from_header
from belljar.bin.curl.errors import (
    BAD_CERTIFICATE,
    BAD_ENCODING,
    BAD_URL,
    EMPTY_REPLY,
    FILE_ERROR,
    FILE_TOO_LARGE,
    HTTP_ERROR,
    PARTIAL_FILE,
    RANGE_ERROR,
    TIMED_OUT,
    TOO_MANY_REDIRECTS,
    UNSUPPORTED_PROTOCOL,
    WRITE_ERROR,
    CurlError,
    explain,
)
from belljar.bin.curl.options import Operation, Target
from belljar.bin.curl.output import Sink
from belljar.bin.curl.pace import Pace
from belljar.bin.curl.progress import Meter
from belljar.bin.curl.request import Draft, draft, headers
from belljar.bin.curl.writeout import Report
from belljar.kernel.process import Process

REDIRECTS: Final = (301, 302, 303, 307, 308)
REDIRECTS_MAX: Final = 50


class Transfer:
    """The tries of one URL share this; each `run` is one try."""

    def __init__(
        self,
        process: Process,
        operation: Operation,
        target: Target,
        url: Url,
        sink: Sink,
        jar: Jar,
        cookies: str,
        report: Report,
        meter: Meter | None,
        say: Callable[[str], None],
    ) -> None:
        self._process = process
        self._clock = process.kernel.hub.clock
        self._operation = operation
        self._target = target
        self._url = url
        self._sink = sink
        self._jar = jar
        self._cookies = cookies
        self.report = report
        self._meter = meter
        self._say = say
        """Lines of --verbose."""
        self._deadline: float | None = None
        self._dumped = False

    def run(self) -> None:
        """Raises CurlError."""
        report, operation = self.report, self._operation
        report.started = self._clock.monotonic()
        report.error = None
        limit = operation.numbers.get("max-time")
        self._deadline = report.started + limit if limit else None
        if self._meter is not None:
            self._meter.start()
        try:
            if self._url.scheme == "file":
                self._local()
            else:
                self._follow()
            self._sink.finish()
        except CurlError as error:
            report.error = error
            if operation.flag("remove-on-error"):
                self._sink.remove()
            raise
        finally:
            self._sink.close()
            report.seconds = self._clock.monotonic() - report.started
            report.file = self._sink.name
            if self._meter is not None:
                self._meter.finish(failed_early=report.error is not None and report.connects == 0)

    # Requests.

    def _follow(self) -> None:
        operation, report = self._operation, self.report
        self._check_scheme(self._url, redirected=False)
        now = draft(self._process, operation, self._target, self._url)
        now.start = self._resume()
        report.redirects = 0
        while True:
            report.effective, report.method, report.referer = now.url, now.method, now.referer
            self._check_scheme(now.url, redirected=report.redirects > 0)
            following = self._request(now)
            if following is None:
                return
            report.redirects += 1
            report.redirect_seconds = self._clock.monotonic() - report.started
            now = following

    def _resume(self) -> int:
        text = self._operation.values.get("continue-at")
        if text is None:
            return 0
        if text == "-":
            return self._sink.resume()
        if not re.fullmatch(r"\d{1,18}", text):
            raise CurlError(RANGE_ERROR, f"{text}: not an offset to continue at")
        self._sink.append()
        return int(text)

    def _check_scheme(self, url: Url, *, redirected: bool) -> None:
        if url.scheme not in ("http", "https"):
            raise CurlError(UNSUPPORTED_PROTOCOL, f'Protocol "{url.scheme}" not supported')
        chosen = self._operation.values.get("proto-redir" if redirected else "proto")
        if chosen is not None and not _allows(chosen, url.scheme):
            where = " (in redirect)" if redirected else ""
            raise CurlError(UNSUPPORTED_PROTOCOL, f'Protocol "{url.scheme}" disabled{where}')

    def _request(self, now: Draft) -> Draft | None:
        """One exchange; the request that has to follow it, if one has."""
        operation, report = self._operation, self.report
        fields = headers(self._process, operation, now, self._jar, self._cookies)
        started = self._clock.monotonic()
        try:
            with Exchange(self._process) as exchange:
                try:
                    head = self._ask(exchange, now, fields)
                    self._connected(exchange, now, fields)
                    return self._answered(exchange, now, head)
                except WebError:
                    report.info = exchange.info()
                    raise
        except WebError as error:
            failure = explain(error, now.url, self._clock.monotonic() - report.started, report.downloaded)
            if failure.code == BAD_CERTIFICATE and operation.flag("insecure"):
                failure.message += "\n\n-k has no effect: TLS is verified outside the sandbox, always."
            self._say_failure(failure, now.url, started)
            raise failure from None

    def _ask(self, exchange: Exchange, now: Draft, fields: list[tuple[str, str]]) -> Head:
        operation = self._operation
        version = None
        if operation.flag("http1.1") or operation.flag("http1.0"):
            version = "1.1"
        elif operation.flag("http2-prior-knowledge"):
            version = "2"
        body = self._sent(now) if now.body is not None else None
        return exchange.ask(
            now.method,
            now.url.request_url(),
            fields,
            body,
            timeout=self._left(),
            connect_timeout=operation.numbers.get("connect-timeout"),
            version=version,
        )

    def _left(self) -> float | None:
        if self._deadline is None:
            return None
        return max(0.001, self._deadline - self._clock.monotonic())

    def _sent(self, now: Draft) -> Iterator[bytes]:
        """The body, counted."""
        assert now.body is not None
        if self._meter is not None:
            self._meter.to_send = now.body.size
        for chunk in now.body.chunks(self._process):
            self.report.uploaded += len(chunk)
            yield chunk
            if self._meter is not None:
                self._meter.sent += len(chunk)
                self._meter.moved()

    def _connected(self, exchange: Exchange, now: Draft, fields: list[tuple[str, str]]) -> None:
        report = self.report
        report.info = exchange.info()
        report.connects += 1
        lines = [f"{now.method} {now.url.target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
        report.request_bytes += sum(len(line) + 2 for line in lines) + 2
        if not report.first_byte_seconds:
            report.first_byte_seconds = self._clock.monotonic() - report.started
        if self._say is _silent:
            return
        ip, port = report.info.get("remote-ip", ""), report.info.get("remote-port", str(now.url.port))
        shown = f"[{ip}]" if ":" in ip else ip
        if report.connects > 1 and report.info.get("reused") == "1":
            self._say(f"* Re-using existing {now.url.scheme}: connection with host {now.url.host}\n")
        else:
            self._say(f"*   Trying {shown}:{port}...\n")
            self._say(f"* Connected to {now.url.host} ({ip}) port {port}\n")
            self._say("* using HTTP/2\n" if report.info.get("http-version") == "2" else "* using HTTP/1.x\n")
        if now.authorization is not None or (now.credentials is not None and now.trusted):
            kind = "Digest" if self._operation.flag("digest") else "Basic"
            user = now.credentials.user if now.credentials is not None else ""
            self._say(f"* Server auth using {kind} with user '{user}'\n")
        for line in lines:
            self._say(f"> {line}\r\n")
        self._say("> \r\n")
        if now.body is None:
            self._say("* Request completely sent off\n")
        else:
            if report.uploaded:
                self._say(f"}} [{report.uploaded} bytes data]\n")
            self._say(f"* upload completely sent off: {report.uploaded} bytes\n")

    def _say_failure(self, failure: CurlError, url: Url, started: float) -> None:
        if self.report.info.get("remote-ip"):
            self._say(f"*   Trying {self.report.info['remote-ip']}:{url.port}...\n")
        self._say(f"* {failure.message.partition(chr(10))[0]}\n* closing connection #0\n")

    # Responses.

    def _answered(self, exchange: Exchange, now: Draft, head: Head) -> Draft | None:
        operation, report = self._operation, self.report
        if head.status == 0:
            raise CurlError(EMPTY_REPLY, "Empty reply from server")
        report.head = head
        report.header_bytes += len(head.text)
        now_seconds = self._clock.time_ns() / NANO
        for value in head.all("set-cookie"):
            self._jar.receive(value, now.url, now_seconds)
        following = self._redirected(now, head) or self._challenged(now, head)
        for line in head.text.decode("utf-8", "surrogateescape").splitlines(keepends=True):
            self._say(f"< {line}" if line.strip() else "< \r\n")
        failing = head.status >= 400 and operation.flag("fail")
        self._show_head(head, quiet=failing)
        if following is not None:
            self._drain(exchange)
            if report.redirects >= self._redirects_max() and following.authorization is None:
                limit = self._redirects_max()
                raise CurlError(TOO_MANY_REDIRECTS, f"Maximum ({limit}) redirects followed")
            self._say(f"* Connection #0 to host {now.url.host} left intact\n")
            self._say(f"* Issue another request to this URL: '{following.url}'\n")
            return following
        if failing:
            raise CurlError(HTTP_ERROR, f"The requested URL returned error: {head.status}")
        self._save_etag(head)
        if now.start and head.status == 416:
            return None
        if now.start and head.status < 400 and head.status != 206 and not operation.flag("head"):
            raise CurlError(RANGE_ERROR, "HTTP server does not seem to support byte ranges. Cannot resume.")
        if now.method != "HEAD" and not operation.flag("head"):
            self._receive(exchange, head)
        self._say(f"* Connection #0 to host {now.url.host} left intact\n")
        if operation.flag("remote-time"):
            self._set_time(head)
        if head.status >= 400 and operation.flag("fail-with-body"):
            self._sink.finish()
            raise CurlError(HTTP_ERROR, f"The requested URL returned error: {head.status}")
        return None

    def _redirects_max(self) -> int:
        text = self._operation.values.get("max-redirs", str(REDIRECTS_MAX))
        return int(text) if re.fullmatch(r"\d{1,9}", text) else 1 << 30

    def _redirected(self, now: Draft, head: Head) -> Draft | None:
        """Return where a redirect leads, if it is followed; noted for -w if not."""
        operation, report = self._operation, self.report
        report.redirect = None
        location = head.get("location")
        if head.status not in REDIRECTS or location is None:
            return None
        try:
            url = join(now.url, location, as_is=operation.flag("path-as-is"))
        except BadUrl as error:
            raise CurlError(BAD_URL, f"The redirect target URL could not be parsed: {error}") from None
        if not operation.flag("location") and not operation.flag("location-trusted"):
            report.redirect = str(url)
            return None
        following = replace(now, url=url, authorization=None)
        if "referer" in operation.values and operation.values["referer"].endswith(";auto"):
            following.referer = now.url.request_url()
        if url.origin != self._url.origin and not operation.flag("location-trusted"):
            following.trusted = False
        elif url.origin == self._url.origin:
            following.trusted = True
        posting = now.body is not None and self._target.upload is None
        becomes_get = head.status == 303 and not operation.flag("post303")
        becomes_get |= head.status in (301, 302) and posting and not operation.flag(f"post{head.status}")
        if becomes_get and now.method != "HEAD":
            following.body = None
            if "request" not in operation.values:
                following.method = "GET"
        return following

    def _challenged(self, now: Draft, head: Head) -> Draft | None:
        """The same request again, with the answer to a challenge."""
        operation = self._operation
        if head.status != 401 or now.credentials is None or now.authorization is not None or not now.trusted:
            return None
        for challenge in head.all("www-authenticate"):
            scheme, _, rest = challenge.strip().partition(" ")
            if scheme.lower() == "digest" and (operation.flag("digest") or operation.flag("anyauth")):
                entropy = self._process.kernel.machine.entropy.random_bytes
                answer = digest(now.credentials, rest, now.method, now.url.target, entropy)
                if answer is not None:
                    return replace(now, authorization=answer)
            elif scheme.lower() == "basic" and operation.flag("anyauth"):
                return replace(now, authorization=now.credentials.basic())
        return None

    def _show_head(self, head: Head, *, quiet: bool) -> None:
        operation = self._operation
        if (name := operation.values.get("dump-header")) is not None:
            self._dump(name, head.text)
        if self._sink.may_rename and (given := name_from_header(head.get("content-disposition"))) is not None:
            directory = operation.values.get("output-dir")
            self._sink.name = f"{directory}/{given}" if directory else given
            if self._process.fs.exists(self._sink.name, follow=False):
                line = f"Content-Disposition: {head.get('content-disposition')}\r\n"
                raise CurlError(WRITE_ERROR, f"client returned ERROR on write of {len(line)} bytes")
            self._sink.may_rename = False
        if operation.flag("show-headers") or operation.flag("include") or operation.flag("head"):
            self._sink.write(head.text)
            self._sink.written -= len(head.text)

    def _dump(self, name: str, text: bytes) -> None:
        if name == "-":
            self._process.write_all(1, text)
            return
        flags = O_WRONLY | O_CREAT | (O_APPEND if self._dumped else O_TRUNC)
        try:
            self._process.write_file(name, text, flags=flags)
        except SysError:
            raise CurlError(WRITE_ERROR, f"Failed to open {name}") from None
        self._dumped = True

    def _drain(self, exchange: Exchange) -> None:
        """The body of a redirect, which nobody wants; a large one is left."""
        size = 0
        while size < 1 << 20 and (data := exchange.read()):
            size += len(data)

    def _receive(self, exchange: Exchange, head: Head) -> None:
        operation, report, meter = self._operation, self.report, self._meter
        length = head.get("content-length")
        expected = int(length) if length is not None and re.fullmatch(r"\d{1,18}", length) else None
        largest = operation.numbers.get("max-filesize")
        if largest and expected is not None and expected > largest:
            raise CurlError(FILE_TOO_LARGE, "Maximum file size exceeded")
        if meter is not None:
            meter.total = expected
        before = report.downloaded
        chunks = self._counted(exchange, largest)
        try:
            if operation.flag("compressed"):
                chunks = decoded(head.get("content-encoding"), chunks, self._process.budget.charge)
            for piece in chunks:
                self._sink.write(piece)
        except BadEncoding as error:
            raise CurlError(BAD_ENCODING, str(error)) from None
        except WebError as error:
            received = report.downloaded - before
            if error.kind != "timeout" and expected is not None and received < expected:
                raise CurlError(PARTIAL_FILE, f"end of response with {expected - received} bytes missing") from None
            raise

    def _counted(self, exchange: Exchange, largest: float | None) -> Iterator[bytes]:
        """The body as it comes, within what the command line allows."""
        report, meter = self.report, self._meter
        before = report.downloaded
        pace = Pace(self._process, self._operation)
        while data := exchange.read():
            if report.downloaded == before:
                self._say(f"{{ [{len(data)} bytes data]\n")
            report.downloaded += len(data)
            if largest and report.downloaded - before > largest:
                raise CurlError(FILE_TOO_LARGE, "Exceeded the maximum allowed file size")
            yield data
            if meter is not None:
                meter.received += len(data)
                meter.moved()
            self._check_time()
            pace.passed(len(data))

    def _check_time(self) -> None:
        if self._deadline is not None and self._clock.monotonic() >= self._deadline:
            elapsed = int((self._clock.monotonic() - self.report.started) * 1000)
            message = f"Operation timed out after {elapsed} milliseconds with {self.report.downloaded} bytes received"
            raise CurlError(TIMED_OUT, message)

    def _save_etag(self, head: Head) -> None:
        name = self._operation.values.get("etag-save")
        if name is not None:
            self._process.write_file(name, (head.get("etag") or "").encode("utf-8", "surrogateescape") + b"\n")

    def _set_time(self, head: Head) -> None:
        text = head.get("last-modified")
        if text is None or self._sink.name is None:
            return
        self._sink.finish()
        try:
            when = int(parsedate_to_datetime(text).timestamp()) * NANO
            self._process.fs.utimens(self._sink.name, when, when)
        except (ValueError, TypeError, OverflowError, SysError):
            return

    # Files of the sandbox.

    def _local(self) -> None:
        """A file:// URL."""
        path = self._url.path
        try:
            stat = self._process.fs.stat(path)
            if self._operation.flag("head"):
                when = _http_date(stat.mtime)
                self._sink.write(
                    f"Content-Length: {stat.size}\r\nAccept-ranges: bytes\r\nLast-Modified: {when}\r\n\r\n".encode()
                )
                return
            for data in self._process.chunks(path):
                self._sink.write(data)
                self.report.downloaded += len(data)
        except SysError:
            raise CurlError(FILE_ERROR, f"Couldn't open file {path}") from None


def _silent(text: str) -> None:
    """Do nothing: there is no --verbose."""


SILENT: Final = _silent


def _http_date(ns: int) -> str:
    return formatdate(ns // NANO, usegmt=True)


def _allows(chosen: str, scheme: str) -> bool:
    """--proto: `=https`, `-http`, `https,http`."""
    allowed = True
    for word in chosen.split(","):
        mark, name = (word[0], word[1:]) if word[:1] in ("=", "+", "-") else ("+", word)
        matches = name in ("all", scheme)
        if mark == "=":
            allowed = matches
        elif matches:
            allowed = mark == "+"
    return allowed
