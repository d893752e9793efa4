"""wget at work: each URL fetched (and links of its page, with -r), saved, and reported in wget's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_TRUNC, O_WRONLY
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.records import NANO
from belljar.bin._contentcoding import BadEncoding, decoded
from belljar.bin._cookies import Jar
from belljar.bin._httpauth import Credentials
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.sizes import parse_size
from belljar.bin._url import BadUrl, Url, join, parse_url
from belljar.bin._web import Exchange, Head, WebError, name_from_header
from belljar.bin.wget.errors import AUTH_ERROR, FILE_ERROR, NETWORK_ERROR, SERVER_ERROR, TLS_ERROR, Failure, Saved
from belljar.bin.wget.gauge import Bar, Dots, long_rate, short_size
from belljar.bin.wget.names import accepted, free_name, save_name
from belljar.bin.wget.options import Options
from belljar.bin.wget.walk import Walk
from belljar.kernel.process import Process

AGENT: Final = "Wget/1.25.0"
_REDIRECTS: Final = (301, 302, 303, 307, 308)


class Download:
    """One command line."""

    def __init__(self, process: Process, options: Options) -> None:
        self.process = process
        self.options = options
        self._clock = process.kernel.hub.clock
        self._jar = Jar()
        self._log = 2
        self._terse = options.verbosity == "terse"
        self._loud = not options.quiet and not self._terse
        self._status = 0
        self._files = self._bytes = 0
        self._seconds = 0.0
        self.document: int | None = None
        self._post = self._body()
        self._first = True
        self._walk = Walk(self)
        self._connected: set[tuple[str, str, int]] = set()
        """Hosts that this command has connected to."""

    # Saying.

    def _say(self, text: str) -> None:
        try:
            self.process.write_all(self._log, fsencode(text))
        except SysError:
            return

    def tell(self, text: str) -> None:
        if self._loud:
            self._say(text)

    def now(self) -> str:
        return format_time("%Y-%m-%d %H:%M:%S", self._clock.time_ns(), zone_of(self.process.env))

    # The whole.

    def run(self, urls: list[str]) -> int:
        options, process = self.options, self.process
        log = options.log or options.append_log
        if log is not None:
            self._log = process.open(log, O_WRONLY | O_CREAT | (O_APPEND if options.append_log else O_TRUNC))
        if options.output is not None and not options.spider:
            try:
                flags = O_WRONLY | O_CREAT | (O_APPEND if options.resume else O_TRUNC)
                self.document = 1 if options.output == "-" else process.open(options.output, flags)
            except SysError as error:
                process.error(f"{options.output}: {error.reason}\n")
                return 1
        self._load_cookies()
        if options.no_check and not options.quiet:
            self._say("wget: --no-check-certificate has no effect: TLS is verified outside the sandbox, always\n")
        started = self._clock.monotonic()
        if options.spider:
            self.tell("Spider mode enabled. Check if remote file exists.\n")
        for text in urls:
            self._start(text)
        self._save_cookies()
        if (len(urls) > 1 or options.recursive or options.mirror) and self._files and not options.quiet:
            took = self._clock.monotonic() - started
            rate = long_rate(self._bytes, self._seconds)
            self._say(f"FINISHED --{self.now()}--\nTotal wall clock time: {_seconds(took)}\n")
            size = short_size(self._bytes) if self._bytes >= 1024 else str(self._bytes)
            self._say(f"Downloaded: {self._files} files, {size} in {_seconds(self._seconds)} ({rate})\n")
        return self._status

    def _start(self, text: str) -> None:
        try:
            url = parse_url(text)
            if url.scheme not in ("http", "https"):
                raise BadUrl(f"Unsupported scheme {url.scheme!r}".replace("'", "\u2018", 1).replace("'", "\u2019", 1))
        except BadUrl as error:
            self._say(f"{text}: {error}.\n")
            self._status = self._status or 1
            return
        if self.options.recursive or self.options.mirror or self.options.page_requisites:
            self._walk.run(url)
        else:
            self.fetch(url)

    def fetch(self, url: Url) -> Saved | None:
        """A URL, as many times as -t says."""
        options = self.options
        if options.wait and not self._first and (pause := _number(options.wait)):
            self.process.sleep(pause)
        self._first = False
        tries = int(options.tries) if options.tries.isdecimal() else 20
        attempt = 1
        while True:
            try:
                return self._get(url, attempt)
            except Failure as failure:
                if str(failure):
                    self._say(str(failure))
                if failure.again and (tries == 0 or attempt < tries):
                    self.tell("Retrying.\n\n")
                    self.process.sleep(min(attempt, _number(options.waitretry) or 10.0))
                    attempt += 1
                    continue
                if failure.again:
                    self.tell("Giving up.\n\n")
                self._status = self._status or failure.status
                return None

    # One document.

    def _get(self, url: Url, attempt: int) -> Saved | None:
        options, process = self.options, self.process
        start = 0
        name = options.output if options.output is not None else save_name(options, url)
        if options.output is None and not options.spider:
            if options.no_clobber and process.fs.exists(name):
                self.tell(f"File \u2018{name}\u2019 already there; not retrieving.\n\n")
                return None
            if (options.resume or attempt > 1) and process.fs.exists(name):
                start = process.fs.stat(name).size
            elif not (options.recursive or options.mirror):
                name = free_name(process, name)
            elif not accepted(options, name.rpartition("/")[2]):
                name += ".tmp"  # read for its links, then removed
        method = options.method or ("POST" if self._post is not None else "HEAD" if options.spider else "GET")
        body = self._post
        credentials = self._credentials(url)
        authorization = ""
        now, redirects, trusted = url, 0, True
        while True:
            if not authorization:
                mark = "" if attempt == 1 else f"  (try:{attempt:2d})"
                self.tell(f"--{self.now()}--{mark}  {now}\n")
            headers = self.headers(now, start, authorization if trusted else "", body, trusted=trusted)
            with Exchange(process) as exchange:
                head = self.ask(exchange, method, now, headers, body)
                self.status_line(head)
                for text in head.all("set-cookie"):
                    self._jar.receive(text, now, self._clock.time_ns() / NANO)
                location = head.get("location")
                if head.status in _REDIRECTS and location is not None:
                    redirects += 1
                    self.tell(f"Location: {location} [following]\n")
                    if redirects > (int(options.max_redirect) if options.max_redirect.isdecimal() else 20):
                        raise Failure(SERVER_ERROR, f"{redirects - 1} redirections exceeded.\n")
                    now = self._follow(now, location)
                    trusted = now.origin == url.origin
                    if head.status in (301, 302, 303) and method == "POST":
                        method, body = "GET", None
                    if options.trust_names and options.output is None:
                        name = free_name(process, save_name(options, now))
                    continue
                if head.status == 401 and credentials is not None and not authorization and trusted:
                    challenge = head.get("www-authenticate") or ""
                    if challenge.lower().startswith("basic"):
                        self.tell(f"Authentication selected: {challenge}\n")
                        authorization = credentials.basic()
                        continue
                return self._take(exchange, head, now, url, name, start)

    def _follow(self, now: Url, location: str) -> Url:
        try:
            following = join(now, location)
        except BadUrl as error:
            raise Failure(SERVER_ERROR, f"{location}: {error}.\n") from None
        if following.scheme not in ("http", "https"):
            raise Failure(1, f"{location}: Unsupported scheme.\n")
        if self.options.https_only and following.scheme != "https":
            raise Failure(1, f"{location}: not an https URL, as --https-only demands.\n")
        return following

    def headers(
        self, url: Url, start: int, authorization: str, body: bytes | None, *, trusted: bool
    ) -> list[tuple[str, str]]:
        options = self.options
        fields = [("Host", url.host_header), ("User-Agent", AGENT if options.agent is None else options.agent)]
        fields += [("Accept", "*/*")]
        fields.append(("Accept-Encoding", "gzip" if options.compression in ("auto", "gzip") else "identity"))
        if options.referer:
            fields.append(("Referer", options.referer))
        if start:
            fields.append(("Range", f"bytes={start}-"))
        if options.no_cache:
            fields += [("Cache-Control", "no-cache"), ("Pragma", "no-cache")]
        if authorization:
            fields.append(("Authorization", authorization))
        if not options.no_cookies and (cookies := self._jar.header(url, self._clock.time_ns() / NANO)):
            fields.append(("Cookie", cookies))
        if body is not None:
            fields += [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", str(len(body)))]
        for line in options.headers:
            name, _, value = line.partition(":")
            if not trusted and name.strip().lower() in ("authorization", "cookie"):
                continue
            fields = [field for field in fields if field[0].lower() != name.strip().lower()]
            if value.strip():
                fields.append((name.strip(), value.strip()))
        return [field for field in fields if field[1]]

    def ask(
        self, exchange: Exchange, method: str, url: Url, headers: list[tuple[str, str]], body: bytes | None
    ) -> Head:
        options = self.options
        whole = _number(options.timeout)
        try:
            head = exchange.ask(
                method,
                url.request_url(),
                headers,
                [body] if body else [] if body is not None else None,
                timeout=_number(options.read_timeout) or whole,
                connect_timeout=_number(options.connect_timeout) or whole,
            )
        except WebError as error:
            raise self._explain(error, url) from None
        info = exchange.info()
        port = info.get("remote-port", str(url.port))
        known, self._connected = url.origin in self._connected, self._connected | {url.origin}
        if known and info.get("reused") == "1":
            self.tell(f"Reusing existing connection to {url.host}:{url.port}.\n")
        elif url.is_address:
            self.tell(f"Connecting to {url.host}:{port}... connected.\n")
        else:
            address = info.get("remote-ip", "")
            self.tell(f"Resolving {url.host} ({url.host})... {address}\n")
            self.tell(f"Connecting to {url.host} ({url.host})|{address}|:{port}... connected.\n")
        return head

    def _explain(self, error: WebError, url: Url) -> Failure:
        """Turn an error into wget's message, and whether to retry."""
        place = f"{url.host}:{url.port}" if url.is_address else f"{url.host} ({url.host}):{url.port}"
        quoted = f"\u2018{url.host}\u2019"
        match error.kind:
            case "dns":
                self.tell(f"Resolving {url.host} ({url.host})... failed: Name or service not known.\n")
                return Failure(
                    NETWORK_ERROR, "" if self.options.quiet else f"wget: unable to resolve host address {quoted}\n"
                )
            case "denied":
                self.tell(f"Connecting to {place}... failed: denied by policy: {error.text}.\n")
                said = f"wget: {url.host}: denied by policy: {error.text}\n" if self._terse else ""
                return Failure(NETWORK_ERROR, said)
            case "connect":
                self.tell(f"Connecting to {place}... failed: Connection refused.\n")
                return Failure(NETWORK_ERROR, again=self.options.retry_refused)
            case "tls":
                self.tell(f"Connecting to {place}... connected.\n")
                said = "" if self.options.quiet else f"ERROR: cannot verify {url.host}'s certificate: {error.text}\n"
                return Failure(TLS_ERROR, said)
            case "timeout":
                self.tell(f"Connecting to {place}... connected.\nHTTP request sent, awaiting response... ")
                self.tell("Read error (Connection timed out) in headers.\n")
                return Failure(NETWORK_ERROR, again=True)
            case "url":
                return Failure(1, f"{url}: {error.text}\n")
            case _:
                self.tell(f"HTTP request sent, awaiting response... {error.text}.\n")
                return Failure(NETWORK_ERROR, again=error.kind == "reset")

    def status_line(self, head: Head) -> None:
        if self.options.server_response and not self.options.quiet:
            text = head.text.decode("utf-8", "replace").replace("\r\n", "\n").strip("\n")
            self.tell("HTTP request sent, awaiting response... \n")
            self._say("".join(f"  {line}\n" for line in text.split("\n")))
        else:
            self.tell(f"HTTP request sent, awaiting response... {head.status} {head.reason}\n")

    def _take(self, exchange: Exchange, head: Head, now: Url, url: Url, name: str, start: int) -> Saved | None:
        options = self.options
        if start and head.status == 416:
            self.tell("\n    The file is already fully retrieved; nothing to do.\n\n")
            return None
        if head.status == 401:
            raise Failure(AUTH_ERROR, "" if options.quiet else "\nUsername/Password Authentication Failed.\n")
        if not 200 <= head.status < 300 and not options.content_on_error:
            if options.spider:
                self.tell("Remote file does not exist -- broken link!!!\n\n")
                raise Failure(SERVER_ERROR)
            if self._terse and not options.quiet:
                self._say(f"{url}:\n")
            line = f"{self.now()} ERROR {head.status}: {head.reason or '(no description)'}.\n"
            self.say_error(line)
            raise Failure(SERVER_ERROR)
        length = head.get("content-length")
        size = int(length) if length is not None and re.fullmatch(r"\d{1,18}", length) else None
        kind = (head.get("content-type") or "").partition(";")[0].strip()
        if head.status != 206:
            start = 0
        total = None if size is None else size + start
        if options.content_disposition and options.output is None:
            given = name_from_header(head.get("content-disposition"))
            name = free_name(self.process, save_name(options, now, given)) if given else name
        self.tell(_length_line(total, start, kind))
        if options.spider:
            self.tell("Remote file exists.\n\n")
            return None
        return self._save(exchange, head, now, name, start, total, kind)

    def say_error(self, line: str) -> None:
        if not self.options.quiet:
            self._say(line if self._terse else line + "\n")

    def _save(
        self, exchange: Exchange, head: Head, url: Url, name: str, start: int, total: int | None, kind: str
    ) -> Saved:
        options, process = self.options, self.process
        shown = "STDOUT" if name == "-" else name
        self.tell(f"Saving to: \u2018{shown}\u2019\n")
        fd = self.document
        if fd is None:
            fd = self._create(name, append=start > 0)
        gauge = self._gauge(shown, total, start)
        began = self._clock.monotonic()
        size = 0
        rate = parse_size(options.limit_rate.upper()) if options.limit_rate else None
        try:
            for data in self._chunks(exchange, head):
                try:
                    process.write_all(fd, data)
                except SysError as error:
                    raise Failure(FILE_ERROR, f"\n\nCannot write to \u2018{name}\u2019 ({error.reason}).\n") from None
                size += len(data)
                if gauge is not None:
                    gauge.moved(len(data), self._clock.monotonic() - began)
                if rate and (ahead := size / rate - (self._clock.monotonic() - began)) > 0:
                    process.sleep(ahead)
        except WebError as error:
            if gauge is not None:
                gauge.finish(self._clock.monotonic() - began)
            took = self._clock.monotonic() - began
            what = "Connection closed" if error.kind in ("protocol", "reset") else "Read error"
            why = "" if error.kind in ("protocol", "reset") else f" ({error.text})"
            self.tell(f"{self.now()} ({long_rate(size, took)}) - {what} at byte {start + size}{why}. ")
            raise Failure(NETWORK_ERROR, again=True) from None
        except BadEncoding as error:
            raise Failure(1, f"{error}\n") from None
        finally:
            if self.document is None:
                process.close(fd)
        took = self._clock.monotonic() - began
        if gauge is not None:
            gauge.finish(took)
        self._report(url, name, size + start, total, took)
        self._files += 1
        self._bytes += size
        self._seconds += took
        return Saved(name, url, kind, size)

    def _chunks(self, exchange: Exchange, head: Head) -> Iterator[bytes]:
        coding = head.get("content-encoding") if self.options.compression in ("auto", "gzip") else None
        return decoded(coding, exchange.chunks(), self.process.budget.charge)

    def _create(self, name: str, *, append: bool) -> int:
        process = self.process
        try:
            process.fs.makedirs(name.rpartition("/")[0])
            return process.open(name, O_WRONLY | O_CREAT | (O_APPEND if append else O_TRUNC))
        except SysError as error:
            raise Failure(
                FILE_ERROR, f"{name}: {error.reason}\n\nCannot write to \u2018{name}\u2019 ({error.reason}).\n"
            ) from None

    def _gauge(self, name: str, total: int | None, start: int) -> Dots | Bar | None:
        options = self.options
        if not self._loud and not options.show_progress:
            return None
        style = (options.progress or "").partition(":")[0]
        if style == "bar" or (not style and self.process.isatty(self._log)):
            return Bar(self._say, name, total, start)
        return Dots(self._say, total, start)

    def _report(self, url: Url, name: str, size: int, total: int | None, took: float) -> None:
        counted = f"[{size}/{total}]" if total is not None else f"[{size}]"
        if self._terse and not self.options.quiet:
            self._say(f'{self.now()} URL:{url} {counted} -> "{name}" [1]\n')
            return
        where = "written to stdout" if name == "-" else f"\u2018{name}\u2019 saved"
        self.tell(f"{self.now()} ({long_rate(size, took)}) - {where} {counted}\n\n")

    # What is sent along.

    def _body(self) -> bytes | None:
        options = self.options
        if (path := options.post_file or options.body_file) is not None:
            return self.process.read_file(path)
        text = options.post_data if options.post_data is not None else options.body_data
        return None if text is None else fsencode(text)

    def _credentials(self, url: Url) -> Credentials | None:
        if self.options.user is not None:
            return Credentials(self.options.user, self.options.password or "")
        return Credentials(url.user, url.password or "") if url.user is not None else None

    def _load_cookies(self) -> None:
        if (name := self.options.load_cookies) is not None:
            text = fsdecode(self.process.read_file(name))
            self._jar.load(text, self._clock.time_ns() / NANO, keep_session=True)

    def _save_cookies(self) -> None:
        if (name := self.options.save_cookies) is not None:
            self.process.write_file(name, fsencode(self._jar.render()))


def _length_line(total: int | None, start: int, kind: str) -> str:
    if total is None:
        return f"Length: unspecified{f' [{kind}]' if kind else ''}\n"
    large = f" ({short_size(total)})" if total >= 1024 else ""
    left = (
        f", {total - start}{f' ({short_size(total - start)})' if total - start >= 1024 else ''} remaining"
        if start
        else ""
    )
    return f"Length: {total}{large}{left}{f' [{kind}]' if kind else ''}\n"


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < 1e6 else None


def _seconds(value: float) -> str:
    return "0s" if value < 0.0005 else f"{value:.2g}s" if value < 9.95 else f"{value:.0f}s"
