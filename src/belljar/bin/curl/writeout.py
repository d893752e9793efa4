"""-w: a template with what is known of a transfer filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from belljar.abi.dataclass import dataclass, field
from belljar.bin._url import BadUrl, Url, parse_url
from belljar.bin._web import Head
from belljar.bin.curl.errors import CurlError

Value = str | int | float | None
_TOKEN: Final = re.compile(
    r"%%|%\{(?P<name>[^}]*)\}|%output\{(?P<file>[^}]*)\}|%header\{(?P<header>[^}]*)\}|\\(?P<escape>.)", re.S
)
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(slots=True)
class Report:
    """The result of one transfer."""

    given: str
    """The URL as it was written."""
    number: int
    url: Url | None = None
    effective: Url | None = None
    method: str = "GET"
    head: Head | None = None
    error: CurlError | None = None
    file: str | None = None
    redirect: str | None = None
    referer: str | None = None
    redirects: int = 0
    retries: int = 0
    connects: int = 0
    downloaded: int = 0
    uploaded: int = 0
    header_bytes: int = 0
    request_bytes: int = 0
    info: dict[str, str] = field(default_factory=dict)
    started: float = 0.0
    redirect_seconds: float = 0.0
    first_byte_seconds: float = 0.0
    seconds: float = 0.0

    def connection_number(self, key: str) -> float:
        try:
            return max(0.0, float(self.info.get(key, "0")))
        except ValueError:
            return 0.0


def _speed(amount: int, seconds: float) -> int:
    return int(amount / seconds) if seconds > 0 else 0


def _url_part(text: str, part: str) -> str | None:
    try:
        url = parse_url(text)
    except BadUrl:
        return None
    values: dict[str, str | None] = {
        "scheme": url.scheme,
        "host": url.host,
        "port": str(url.port),
        "path": url.path,
        "query": url.query,
        "fragment": url.fragment,
        "user": url.user,
        "password": url.password,
    }
    return values.get(part)


def values(report: Report, version: str) -> dict[str, Callable[[], Value]]:
    """Every variable by its name, made when it is asked for."""
    status = report.head.status if report.head else 0
    effective = str(report.effective) if report.effective else report.given
    number = report.connection_number
    table: dict[str, Callable[[], Value]] = {
        "certs": lambda: "",
        "conn_id": lambda: 0,
        "content_type": lambda: report.head.get("content-type") if report.head else None,
        "errormsg": lambda: report.error.message.partition("\n")[0] if report.error else None,
        "exitcode": lambda: report.error.code if report.error else 0,
        "filename_effective": lambda: report.file,
        "ftp_entry_path": lambda: None,
        "http_code": lambda: status,
        "http_connect": lambda: 0,
        "http_version": lambda: report.head.version if report.head else "0",
        "local_ip": lambda: report.info.get("local-ip", ""),
        "local_port": lambda: int(number("local-port")),
        "method": lambda: report.method,
        "num_certs": lambda: 0,
        "num_connects": lambda: report.connects,
        "num_headers": lambda: len(report.head.headers) if report.head else 0,
        "num_redirects": lambda: report.redirects,
        "num_retries": lambda: report.retries,
        "proxy_ssl_verify_result": lambda: 0,
        "proxy_used": lambda: 0,
        "redirect_url": lambda: report.redirect,
        "referer": lambda: report.referer,
        "remote_ip": lambda: report.info.get("remote-ip", ""),
        "remote_port": lambda: int(number("remote-port")),
        "response_code": lambda: status,
        "scheme": lambda: report.effective.scheme if report.effective else None,
        "size_download": lambda: report.downloaded,
        "size_header": lambda: report.header_bytes,
        "size_request": lambda: report.request_bytes,
        "size_upload": lambda: report.uploaded,
        "speed_download": lambda: _speed(report.downloaded, report.seconds),
        "speed_upload": lambda: _speed(report.uploaded, report.seconds),
        "ssl_verify_result": lambda: 0 if report.error is None or report.error.code != 60 else 1,
        "time_appconnect": lambda: number("time-tls"),
        "time_connect": lambda: number("time-connect"),
        "time_namelookup": lambda: number("time-namelookup"),
        "time_posttransfer": lambda: max(number("time-connect"), number("time-tls")),
        "time_pretransfer": lambda: max(number("time-connect"), number("time-tls")),
        "time_queue": lambda: 0.0,
        "time_redirect": lambda: report.redirect_seconds,
        "time_starttransfer": lambda: report.first_byte_seconds,
        "time_total": lambda: report.seconds,
        "tls_earlydata": lambda: 0,
        "url": lambda: report.given,
        **{f"url.{part}": _part(report.given, part) for part in _PARTS},
        "url_effective": lambda: effective,
        **{f"urle.{part}": _part(effective, part) for part in _PARTS},
        "urlnum": lambda: report.number,
        "xfer_id": lambda: report.number,
        "curl_version": lambda: version,
    }
    return table


_PARTS: Final = ("fragment", "host", "options", "password", "path", "port", "query", "scheme", "user", "zoneid")


def _part(text: str, part: str) -> Callable[[], Value]:
    return lambda: _url_part(text, part)


def _shown(value: Value) -> str:
    match value:
        case None:
            return ""
        case float():
            return f"{value:.6f}"
        case _:
            return str(value)


def header_json(head: Head | None) -> str:
    """Headers as an object of lists, one to a line as curl sets them."""
    grouped: dict[str, list[str]] = {}
    for name, value in head.headers if head else ():
        grouped.setdefault(name.lower(), []).append(value)
    lines = [f"{json.dumps(name)}:{json.dumps(found, separators=(',', ':'))}" for name, found in grouped.items()]
    return "{" + ",\n".join(lines) + "\n}"


def as_json(report: Report, version: str) -> str:
    pieces = []
    for name, make in values(report, version).items():
        value = make()
        shown = f"{value:.6f}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
        pieces.append(f'"{name}":{shown}')
    return "{" + ",".join(pieces) + "}"


@dataclass(frozen=True, slots=True)
class Piece:
    """Text for one of the places that `%{stderr}` and `%output{file}` choose: "stdout", "stderr" or a file."""

    where: str
    text: str


def render(template: str, report: Report, version: str, warn: Callable[[str], None]) -> list[Piece]:
    table = values(report, version)
    pieces: list[Piece] = []
    where = "stdout"
    end = 0
    for match in _TOKEN.finditer(template):
        pieces.append(Piece(where, template[end : match.start()]))
        end = match.end()
        if match["escape"] is not None:
            pieces.append(Piece(where, _ESCAPES.get(match["escape"], match[0])))
            continue
        if match[0] == "%%":
            pieces.append(Piece(where, "%"))
            continue
        if match["file"] is not None:
            where = f"file:{match['file']}"
            continue
        if match["header"] is not None:
            pieces.append(Piece(where, (report.head.get(match["header"]) if report.head else None) or ""))
            continue
        name = match["name"]
        if name in ("stdout", "stderr"):
            where = name
        elif name == "onerror":
            if report.error is None:
                return pieces
        elif name == "json":
            pieces.append(Piece(where, as_json(report, version)))
        elif name == "header_json":
            pieces.append(Piece(where, header_json(report.head)))
        elif name in table:
            value = table[name]()
            text = f"{value:03d}" if name in ("http_code", "response_code", "http_connect") else _shown(value)
            pieces.append(Piece(where, text))
        else:
            warn(f"unknown --write-out variable: '{name}'")
    pieces.append(Piece(where, template[end:]))
    return pieces
