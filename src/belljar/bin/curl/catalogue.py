"""The options of curl that are here, with their help, and those that can't be, with the reason."""

from __future__ import annotations

from enum import Enum
from typing import Final

from belljar.abi.dataclass import dataclass


class Kind(Enum):
    FLAG = "flag"
    TEXT = "text"
    LIST = "list"
    NUMBER = "number"
    SPECIAL = "special"
    """With a meaning of its own; takes a value unless it is in `BARE`."""
    IGNORED = "ignored"
    IGNORED_TEXT = "ignored-text"
    """Accepted, since what it asks for is so anyway, or is the broker's to decide."""
    REFUSED = "refused"

    @property
    def takes_value(self) -> bool:
        return self not in (Kind.FLAG, Kind.IGNORED)

    @property
    def negatable(self) -> bool:
        return self in (Kind.FLAG, Kind.IGNORED)


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    letter: str
    kind: Kind
    argument: str
    help: str


_PROXY = "there is no way out of this sandbox but its own; proxies are not used"
_TABLE: Final = f"""
basic||flag||Use HTTP Basic Authentication
cacert||ignored-text|<file>|(TLS is verified outside the sandbox)
capath||ignored-text|<dir>|(TLS is verified outside the sandbox)
cert|E|refused|<certificate>|client certificates are not used: TLS is done outside the sandbox
compressed||flag||Request compressed response
config|K|special|<file>|Read config from a file
connect-timeout||number|<seconds>|Maximum time allowed to connect
connect-to||refused|<HOST1:PORT1:HOST2:PORT2>|where a name leads to is decided outside the sandbox
continue-at|C|text|<offset>|Resumed transfer offset
cookie|b|list|<data|filename>|Send cookies from string/load from file
cookie-jar|c|text|<filename>|Save cookies to <filename> after operation
create-dirs||flag||Create necessary local directory hierarchy
create-file-mode||text|<mode>|File mode for created files
crlf||ignored||Convert LF to CRLF in upload
data|d|special|<data>|HTTP POST data
data-ascii||special|<data>|HTTP POST ASCII data
data-binary||special|<data>|HTTP POST binary data
data-raw||special|<data>|HTTP POST data, '@' allowed
data-urlencode||special|<data>|HTTP POST data URL encoded
digest||flag||HTTP Digest Authentication
anyauth||flag||Pick any authentication method
disable|q|ignored||Disable .curlrc
dns-servers||refused|<addresses>|names are resolved outside the sandbox
doh-url||refused|<URL>|names are resolved outside the sandbox
dump-header|D|text|<filename>|Write the received headers to <filename>
etag-compare||text|<file>|Load ETag from file
etag-save||text|<file>|Parse incoming ETag and save to a file
expect100-timeout||ignored-text|<seconds>|How long to wait for 100-continue
fail|f|flag||Fail fast with no output on HTTP errors
fail-early||flag||Fail on first transfer error
fail-with-body||flag||Fail on HTTP errors but save the body
form|F|special|<name=content>|Specify multipart MIME data
form-escape||flag||Escape form fields using backslash
form-string||special|<name=string>|Specify multipart MIME data
get|G|flag||Put the post data in the URL and use GET
globoff|g|flag||Disable URL globbing with {{}} and []
head|I|flag||Show document info only
header|H|special|<header/@file>|Pass custom header(s) to server
help|h|special|<subject>|Get help for commands
http0.9||ignored||Allow HTTP/0.9 responses
http1.0|0|flag||Use HTTP/1.0
http1.1||flag||Use HTTP/1.1
http2||flag||Use HTTP/2
http2-prior-knowledge||flag||Use HTTP/2 without HTTP/1.1 Upgrade
http3||ignored||Use HTTP/3
insecure|k|flag||(TLS is always verified)
interface||refused|<name>|there are no network interfaces to choose from
ipv4|4|ignored||Resolve names to IPv4 addresses
ipv6|6|ignored||Resolve names to IPv6 addresses
json||special|<data>|HTTP POST JSON
junk-session-cookies|j|flag||Ignore session cookies read from file
keepalive-time||ignored-text|<seconds>|Interval time for keepalive probes
key||refused|<key>|client certificates are not used: TLS is done outside the sandbox
keepalive||ignored||TCP keepalive on the connection
limit-rate||number|<speed>|Limit transfer speed to RATE
location|L|flag||Follow redirects
location-trusted||flag||As --location, but send secrets to other hosts
max-filesize||number|<bytes>|Maximum file size to download
max-redirs||text|<num>|Maximum number of redirects allowed
max-time|m|number|<seconds>|Maximum time allowed for transfer
netrc|n|flag||Must read .netrc for username and password
netrc-file||text|<filename>|Specify FILE for netrc
netrc-optional||flag||Use either .netrc or URL
next|:|special||Make next URL use separate options
buffer||ignored||Buffering of the output stream
no-buffer|N|flag||Disable buffering of the output stream
clobber||ignored||Overwrite files that already exist
no-clobber||flag||Do not overwrite files that already exist
progress-meter||ignored||Show the progress meter
no-progress-meter||flag||Do not show the progress meter
noproxy||ignored-text|<no-proxy-list>|List of hosts which do not use proxy
oauth2-bearer||text|<token>|OAuth 2 Bearer Token
output|o|special|<file>|Write to file instead of stdout
output-dir||text|<dir>|Directory to save files in
parallel|Z|flag||Perform transfers in parallel
parallel-immediate||ignored||Do not wait for multiplexing
parallel-max||ignored-text|<num>|Maximum concurrency for parallel transfers
path-as-is||flag||Do not squash .. sequences in URL path
post301||flag||Do not switch to GET after a 301 redirect
post302||flag||Do not switch to GET after a 302 redirect
post303||flag||Do not switch to GET after a 303 redirect
preproxy||refused|<[protocol://]host[:port]>|{_PROXY}
progress-bar|#|flag||Display transfer progress as a bar
proto||text|<protocols>|Enable/disable PROTOCOLS
proto-default||text|<protocol>|Use PROTOCOL for any URL missing a scheme
proto-redir||text|<protocols>|Enable/disable PROTOCOLS on redirect
proxy|x|refused|<[protocol://]host[:port]>|{_PROXY}
proxy-header||ignored-text|<header/@file>|Pass custom header(s) to proxy
proxy-user|U|refused|<user:password>|{_PROXY}
proxytunnel|p|ignored||HTTP proxy tunnel (using CONNECT)
range|r|text|<range>|Retrieve only the bytes within RANGE
raw||ignored||Do HTTP raw; no transfer decoding
referer|e|special|<URL>|Referrer URL
remote-header-name|J|flag||Use the header-provided filename
remote-name|O|special||Write output to file named as remote file
remote-name-all||flag||Use the remote filename for all URLs
remote-time|R|flag||Set remote file's time on local output
remove-on-error||flag||Remove output file on errors
request|X|text|<method>|Specify request method to use
request-target||refused|<path>|the target is made from the URL
resolve||refused|<[+]host:port:addr>|where a name leads to is decided outside the sandbox
retry||number|<num>|Retry request if transient problems occur
retry-all-errors||flag||Retry all errors (with --retry)
retry-connrefused||flag||Retry on connection refused (with --retry)
retry-delay||number|<seconds>|Wait time between retries
retry-max-time||number|<seconds>|Retry only within this period
show-error|S|flag||Show error even when -s is used
show-headers|i|flag||Show response headers in output
include||flag||Show response headers in output
silent|s|flag||Silent mode
skip-existing||flag||Skip download if local file already exists
socks4||refused|<host[:port]>|{_PROXY}
socks4a||refused|<host[:port]>|{_PROXY}
socks5||refused|<host[:port]>|{_PROXY}
socks5-hostname||refused|<host[:port]>|{_PROXY}
speed-limit|Y|number|<speed>|Stop transfers slower than this
speed-time|y|number|<seconds>|Trigger 'speed-limit' abort after this time
ssl||ignored||Try enabling TLS
ssl-no-revoke||ignored||Disable cert revocation checks
ssl-reqd||ignored||Require SSL/TLS
stderr||special|<file>|Where to redirect stderr
styled-output||ignored||Enable styled output for HTTP headers
tcp-fastopen||ignored||Use TCP Fast Open
tcp-nodelay||ignored||Set TCP_NODELAY
time-cond|z|text|<time>|Transfer based on a time condition
tls-max||ignored-text|<VERSION>|Maximum allowed TLS version
tlsv1|1|ignored||TLSv1.0 or greater
tlsv1.0||ignored||TLSv1.0 or greater
tlsv1.1||ignored||TLSv1.1 or greater
tlsv1.2||ignored||TLSv1.2 or greater
tlsv1.3||ignored||TLSv1.3 or greater
trace||refused|<file>|only --verbose shows what is sent
trace-ascii||refused|<file>|only --verbose shows what is sent
unix-socket||refused|<path>|there are no Unix sockets to connect to
upload-file|T|special|<file>|Transfer local FILE to destination
url||special|<url>|URL(s) to work with
url-query||list|<data>|Add a URL query part
use-ascii|B|ignored||Use ASCII/text transfer
user|u|text|<user:password>|Server user and password
user-agent|A|special|<name>|Send User-Agent <name> to server
verbose|v|flag||Make the operation more talkative
version|V|special||Show version number and quit
write-out|w|text|<format>|Output FORMAT after completion
"""
_BARE: Final = {"next", "remote-name", "version"}


def _read() -> dict[str, Option]:
    found: dict[str, Option] = {}
    for line in _TABLE.strip().splitlines():
        name, letter, kind, rest = line.split("|", 3)
        argument, _, help_text = rest.rpartition("|")
        found[name] = Option(name, letter, Kind(kind), argument, help_text)
    return found


LONG: Final = _read()
SHORT: Final = {option.letter: option for option in LONG.values() if option.letter}
IMPORTANT: Final = ("data", "fail", "help", "output", "remote-name", "show-headers", "silent", "upload-file", "user",
                    "user-agent", "verbose", "version")  # fmt: skip


def takes_value(option: Option) -> bool:
    return option.kind.takes_value and option.name not in _BARE


def describe(names: tuple[str, ...] | None = None, width: int = 34) -> str:
    """Help lines, as curl sets them."""
    lines: list[str] = []
    for option in sorted(LONG.values(), key=lambda option: option.name):
        if names is not None and option.name not in names:
            continue
        left = f"{f'-{option.letter},' if option.letter else '   '} --{option.name}"
        if option.argument:
            left += f" {option.argument}"
        help_text = f"(refused: {option.help})" if option.kind is Kind.REFUSED else option.help
        lines.append(f" {left:<{width}}{help_text}" if len(left) < width else f" {left}  {help_text}")
    return "\n".join(lines)
