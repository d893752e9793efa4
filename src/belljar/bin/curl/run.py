"""curl as a whole: its operations one after the other, retries, warnings, and what is said at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from belljar.abi.dataclass import replace
from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_TRUNC, O_WRONLY
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.records import NANO
from belljar.abi.signals import Signal
from belljar.abi.version import __version__
from belljar.bin._cookies import Jar
from belljar.bin._url import BadUrl, Url, parse_url
from belljar.bin.curl.body import joined_data
from belljar.bin.curl.catalogue import IMPORTANT, describe
from belljar.bin.curl.errors import (
    BAD_URL,
    COULD_NOT_CONNECT,
    COULD_NOT_RESOLVE,
    READ_ERROR,
    TIMED_OUT,
    WRITE_ERROR,
    CurlError,
)
from belljar.bin.curl.glob import Expanded, GlobError, expand
from belljar.bin.curl.options import BadUsage, CommandLine, Operation, Target, escape
from belljar.bin.curl.output import Sink, file_name
from belljar.bin.curl.progress import Meter
from belljar.bin.curl.request import AGENT
from belljar.bin.curl.transfer import SILENT, Transfer
from belljar.bin.curl.writeout import Report, render
from belljar.kernel.process import IGNORE, Process

VERSION: Final = AGENT.replace("/", " ")
LIBRARY: Final = f"belljar/{__version__}"
_TRANSIENT: Final = (408, 429, 500, 502, 503, 504, 522, 524)
_DELAY_MAX: Final = 600
_WIDTH: Final = 79


def run(process: Process, args: list[str]) -> int:
    process.handlers[Signal.PIPE] = IGNORE  # a reader that goes away is a write error with a message
    line = CommandLine(process)
    try:
        _default_config(process, line, args)
        line.read(args)
        if line.help is not None:
            process.stdout.write(_help(line.help).encode())
            return 0
        if line.version:
            process.stdout.write(_version().encode())
            return 0
        if not any(target.url for operation in line.operations for target in operation.targets):
            raise BadUsage("(2) no URL specified" if args else "")
        return _Session(process, line).run()
    except BadUsage as error:
        if str(error):
            process.error(f"curl: {error}\n")
        if error.hint:
            process.error("curl: try 'curl --help' for more information\n")
        return error.status


def _default_config(process: Process, line: CommandLine, args: list[str]) -> None:
    if args and (args[0] in ("-q", "--disable") or (args[0].startswith("-q") and not args[0].startswith("--"))):
        return
    home = process.env.get("CURL_HOME") or process.env.get("HOME")
    if not home:
        return
    path = f"{home}/.curlrc"
    if not process.fs.exists(path):
        return
    line.read(["--config", path])


def _version() -> str:
    return (
        f"{VERSION} (belljar {__version__})\nProtocols: file http https\nFeatures: HTTP2 IDN IPv6 Largefile libz SSL\n"
    )


def _help(subject: str) -> str:
    if subject in ("", "important"):
        rest = 'This is not the full help. Use "--help all" to list all options.\n'
        return f"Usage: curl [options...] <url>\n{describe(IMPORTANT, 28)}\n\n{rest}"
    return f"Usage: curl [options...] <url>\n{describe()}\n"


class _Session:
    """One command line at work."""

    def __init__(self, process: Process, line: CommandLine) -> None:
        self._process = process
        self._line = line
        self._silent = "silent" in line.flags
        self._number = 0
        self._error_fd = 2

    def _error(self, text: str) -> None:
        try:
            self._process.write_all(self._error_fd, fsencode(text))
        except SysError:
            return

    def _warn(self, text: str) -> None:
        """Folded at the terminal's width, every line with the word in front."""
        if self._silent:
            return
        room = _WIDTH - len("Warning: ")
        while len(text) > room:
            cut = text.rfind(" ", 0, room)
            cut = cut if cut > 0 else room
            self._error(f"Warning: {text[: cut + 1]}\n")
            text = text[cut + 1 :]
        self._error(f"Warning: {text}\n")

    def _complain(self, error: CurlError) -> None:
        if not self._silent or "show-error" in self._line.flags:
            self._error(f"curl: ({error.code}) {error.message}\n")

    def run(self) -> int:
        if self._line.stderr is not None:
            self._error_fd = self._open_stderr(self._line.stderr)
        status = 0
        for operation in self._line.operations:
            status = self._operate(operation)
            if status and "fail-early" in self._line.flags:
                break
        return status

    def _open_stderr(self, name: str) -> int:
        if name == "-":
            return 1
        try:
            return self._process.open(name, O_WRONLY | O_CREAT | O_TRUNC)
        except SysError as error:
            self._warn(f"Failed to open {name}: {error.reason}")
            return 2

    def _operate(self, operation: Operation) -> int:
        self._check_methods(operation)
        template = self._template(operation)
        jar, literal = self._cookies(operation)
        status = 0
        for number, target in enumerate(operation.targets):
            if target.url is None:
                continue
            try:
                for expanded in self._expand(operation, target.url):
                    status = self._fetch(operation, target, expanded, number, jar, literal, template)
                    if status and "fail-early" in self._line.flags:
                        break
            except GlobError as error:
                status = BAD_URL
                self._complain(CurlError(BAD_URL, str(error)))
            if status and "fail-early" in self._line.flags:
                break
        self._save_cookies(operation, jar)
        return status

    def _check_methods(self, operation: Operation) -> None:
        asked = [
            name
            for name, present in (
                ("POST (-d, --data)", bool(operation.data) and not operation.flag("get")),
                ("multipart formpost (-F, --form)", bool(operation.forms)),
                ("PUT (-T, --upload-file)", any(target.upload for target in operation.targets)),
                ("HEAD (-I, --head)", operation.flag("head")),
            )
            if present
        ]
        if len(asked) > 1:
            self._warn(f"You can only select one HTTP request method! You asked for both {asked[0]} and {asked[1]}.")
            raise BadUsage("", hint=False)

    def _template(self, operation: Operation) -> str:
        text = operation.values.get("write-out", "")
        if not text.startswith("@"):
            return text
        try:
            return fsdecode(self._process.read_file(text[1:]))
        except SysError:
            raise BadUsage("option -w: error encountered when reading a file", READ_ERROR) from None

    def _expand(self, operation: Operation, url: str) -> Iterable[Expanded]:
        return [Expanded(url, ())] if operation.flag("globoff") else expand(url, self._process.budget)

    # Cookies.

    def _cookies(self, operation: Operation) -> tuple[Jar, str]:
        """Read the cookies of -b: given literally, or in files."""
        jar = Jar()
        literal: list[str] = []
        now = self._process.kernel.hub.clock.time_ns() / NANO
        for text in operation.all("cookie"):
            if "=" in text:
                literal.append(text)
                continue
            if not text:
                continue
            try:
                content = fsdecode(self._process.read_file(text))
            except SysError:
                continue  # as curl does: a file that is not there yet
            jar.load(content, now, keep_session=not operation.flag("junk-session-cookies"))
        return jar, "; ".join(literal)

    def _save_cookies(self, operation: Operation, jar: Jar) -> None:
        name = operation.values.get("cookie-jar")
        if name is None:
            return
        data = fsencode(jar.render())
        try:
            if name == "-":
                self._process.write_all(1, data)
            else:
                self._process.write_file(name, data)
        except SysError as error:
            self._warn(f"Failed to save cookies in {name}: {error.reason}")

    # Transfers.

    def _fetch(
        self,
        operation: Operation,
        target: Target,
        expanded: Expanded,
        number: int,
        jar: Jar,
        literal: str,
        template: str,
    ) -> int:
        report = Report(expanded.url, number)
        try:
            url = self._url(operation, target, expanded.url)
            report.url = report.effective = url
            name = file_name(operation, target, url, expanded.fill)
            if name is not None and operation.flag("skip-existing") and self._process.fs.exists(name):
                self._warn(f"skips transfer, file exists locally: {name}")
                return 0
            sink = Sink(self._process, operation, name, self._warn)
            sink.may_rename = operation.flag("remote-header-name") and target.remote_name
            meter = self._meter(sink)
            transfer = Transfer(
                self._process, operation, target, url, sink, jar, literal, report, meter,
                self._error if "verbose" in self._line.flags else SILENT,
            )  # fmt: skip
            self._try(operation, transfer, sink)
        except CurlError as error:
            report.error = error
            self._complain(error)
        if template:
            self._write_out(template, report)
        return report.error.code if report.error else 0

    def _url(self, operation: Operation, target: Target, text: str) -> Url:
        default = operation.values.get("proto-default", "")
        try:
            url = parse_url(text, as_is=operation.flag("path-as-is"), default_scheme=default)
        except BadUrl as error:
            raise CurlError(BAD_URL, f"URL rejected: {error}") from None
        more: list[str] = []
        if operation.flag("get") and operation.data:
            more.append(fsdecode(joined_data(operation)))
        more += [_query_part(part) for part in operation.all("url-query")]
        if more:
            query = "&".join(part for part in (url.query or "", *more) if part)
            url = _with(url, query=query)
        if target.upload and target.upload not in ("-", ".") and url.path.endswith("/"):
            url = _with(url, path=url.path + escape(fsencode(target.upload.rpartition("/")[2])).replace("+", "%20"))
        return url

    def _meter(self, sink: Sink) -> Meter | None:
        flags = self._line.flags
        to_terminal = sink.name is None and self._process.isatty(1)
        if self._silent or "no-progress-meter" in flags or (to_terminal and "progress-bar" not in flags):
            return None
        return Meter(self._process, self._error, bar="progress-bar" in flags)

    def _try(self, operation: Operation, transfer: Transfer, sink: Sink) -> None:
        """Transfer, and retry transient errors as often as --retry says. Raises CurlError."""
        left = int(operation.numbers.get("retry", 0))
        delay = operation.numbers.get("retry-delay", 0)
        growing = not delay
        delay = delay or 1
        clock = self._process.kernel.hub.clock
        started = clock.monotonic()
        while True:
            failure: CurlError | None = None
            try:
                transfer.run()
            except CurlError as error:
                failure = error
            reason = _transient(operation, transfer.report, failure) if left else ""
            wait = max(delay, _retry_after(transfer.report)) if growing else delay
            longest = operation.numbers.get("retry-max-time", 0)
            if not reason or (longest and clock.monotonic() - started + wait > longest):
                if failure is not None:
                    raise failure
                return
            if failure is not None:
                self._complain(failure)
            seconds = f"{wait:g} second{'' if wait == 1 else 's'}"
            self._warn(f"Problem : {reason}. Will retry in {seconds}. {left} retr{'y' if left == 1 else 'ies'} left.")
            self._process.sleep(wait)
            left -= 1
            if growing:
                delay = min(delay * 2, _DELAY_MAX)
            sink.restart()
            transfer.report.retries += 1
            transfer.report.downloaded = 0

    def _write_out(self, template: str, report: Report) -> None:
        warn: Callable[[str], None] = lambda text: self._error(f"curl: {text}\n")  # noqa: E731
        for piece in render(template, report, LIBRARY, warn):
            if not piece.text:
                continue
            try:
                if piece.where == "stdout":
                    self._process.write_all(1, fsencode(piece.text))
                elif piece.where == "stderr":
                    self._error(piece.text)
                else:
                    name = piece.where.removeprefix("file:")
                    adding = name.startswith(">>")
                    flags = O_WRONLY | O_CREAT | (O_APPEND if adding else O_TRUNC)
                    self._process.write_file(name.removeprefix(">>"), fsencode(piece.text), flags=flags)
            except SysError as error:
                report.error = report.error or CurlError(WRITE_ERROR, f"Failed writing: {error.reason}")


def _with(url: Url, *, query: str | None = None, path: str | None = None) -> Url:
    return replace(url, query=url.query if query is None else query, path=url.path if path is None else path)


def _query_part(text: str) -> str:
    """--url-query: encoded like --data-urlencode, but for a leading +."""
    if text.startswith("+"):
        return text[1:]
    name, equals, value = text.partition("=")
    encoded = escape(fsencode(value if equals else name))
    return f"{name}={encoded}" if equals and name else encoded


def _transient(operation: Operation, report: Report, failure: CurlError | None) -> str:
    """Why another try may help; "" if it would not."""
    if failure is not None:
        if failure.code == TIMED_OUT:
            return "timeout"
        if failure.code == COULD_NOT_RESOLVE:
            return "timeout"
        if failure.code == COULD_NOT_CONNECT and operation.flag("retry-connrefused"):
            return "connection refused"
        if operation.flag("retry-all-errors"):
            return "(retrying all errors)"
    if report.head is not None and report.head.status in _TRANSIENT and (failure is None or failure.code == 22):
        return "HTTP error"
    return ""


def _retry_after(report: Report) -> float:
    text = report.head.get("retry-after") if report.head is not None else None
    return float(min(int(text[:9]), _DELAY_MAX)) if text and text.isascii() and text.isdecimal() else 0.0
