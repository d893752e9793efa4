"""How curl says that a transfer failed: a number, which is its exit code, and a sentence."""

from __future__ import annotations

from belljar.bin._url import Url
from belljar.bin._web import WebError

UNSUPPORTED_PROTOCOL = 1
BAD_URL = 3
COULD_NOT_RESOLVE = 6
COULD_NOT_CONNECT = 7
WEIRD_REPLY = 8
PARTIAL_FILE = 18
HTTP_ERROR = 22
WRITE_ERROR = 23
READ_ERROR = 26
TIMED_OUT = 28
RANGE_ERROR = 33
TLS_FAILED = 35
FILE_ERROR = 37
TOO_MANY_REDIRECTS = 47
EMPTY_REPLY = 52
RECEIVE_ERROR = 56
BAD_CERTIFICATE = 60
BAD_ENCODING = 61
FILE_TOO_LARGE = 63

_DETAILS = """
More details here: https://curl.se/docs/sslcerts.html

curl failed to verify the legitimacy of the server and therefore could not
establish a secure connection to it. To learn more about this situation and
how to fix it, please visit the webpage mentioned above."""


class CurlError(Exception):
    """A transfer that failed."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def explain(error: WebError, url: Url, elapsed: float, received: int) -> CurlError:
    """Turn an error of webfs into curl's."""
    milliseconds = int(elapsed * 1000)
    reason = error.text
    match error.kind:
        case "dns":
            return CurlError(COULD_NOT_RESOLVE, f"Could not resolve host: {url.host}")
        case "denied":
            place = f"{url.host} port {url.port} after {milliseconds} ms"
            return CurlError(COULD_NOT_CONNECT, f"Failed to connect to {place}: denied by policy: {reason}")
        case "connect":
            message = f"Failed to connect to {url.host} port {url.port} after {milliseconds} ms: "
            return CurlError(COULD_NOT_CONNECT, message + "Could not connect to server")
        case "tls" if "certificate" in reason.lower() or "hostname" in reason.lower():
            reason = reason.partition(" is not valid: ")[2] or reason
            return CurlError(BAD_CERTIFICATE, f"SSL certificate problem: {reason}{_DETAILS}")
        case "tls":
            return CurlError(TLS_FAILED, f"TLS connect error: {reason}")
        case "timeout":
            message = f"Operation timed out after {milliseconds} milliseconds with {received} bytes received"
            return CurlError(TIMED_OUT, message)
        case "too-large":
            return CurlError(FILE_TOO_LARGE, f"Maximum file size exceeded: {reason}")
        case "url":
            return CurlError(BAD_URL, f"URL rejected: {reason}")
        case "protocol" if "without sending a response" in reason:
            return CurlError(EMPTY_REPLY, "Empty reply from server")
        case "protocol" if "illegal status line" in reason:
            return CurlError(UNSUPPORTED_PROTOCOL, "Received HTTP/0.9 when not allowed")
        case "protocol":
            return CurlError(WEIRD_REPLY, f"Weird server reply: {reason}")
        case _:
            return CurlError(RECEIVE_ERROR, f"Recv failure: {reason}")
