"""wget's options."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import choice, count, flag, many, value


@dataclass(frozen=True, slots=True)
class Options:
    quiet: bool = flag("-q", "--quiet", "quiet (no output)")
    verbosity: str = choice(
        {"-v": "verbose", "--verbose": "verbose", "--no-verbose": "terse", "--verbose-off": "terse"},
        "be verbose (this is the default); -nv is terse",
        "verbose",
    )
    log: str | None = value("-o", "--output-file", "log messages to FILE", metavar="FILE")
    append_log: str | None = value("-a", "--append-output", "append messages to FILE", metavar="FILE")
    input: str | None = value("-i", "--input-file", "download URLs found in FILE", metavar="FILE")
    base: str | None = value("-B", "--base", "resolves links of -i FILE relative to URL", metavar="URL")
    tries: str = value("-t", "--tries", "set number of retries to NUMBER (0 unlimits)", metavar="NUMBER", default="20")
    retry_refused: bool = flag("--retry-connrefused", "retry even if connection is refused")
    output: str | None = value("-O", "--output-document", "write documents to FILE", metavar="FILE")
    no_clobber: bool = flag("--no-clobber", "skip downloads that would overwrite files (-nc)")
    resume: bool = flag("-c", "--continue", "resume getting a partially-downloaded file")
    server_response: bool = flag("-S", "--server-response", "print server response")
    spider: bool = flag("--spider", "don't download anything")
    timeout: str | None = value("-T", "--timeout", "set all timeout values to SECONDS", metavar="SECONDS")
    connect_timeout: str | None = value("--connect-timeout", "set the connect timeout", metavar="SECS")
    read_timeout: str | None = value("--read-timeout", "set the read timeout", metavar="SECS")
    dns_timeout: str | None = value("--dns-timeout", "(with the connect timeout)", metavar="SECS")
    wait: str | None = value("-w", "--wait", "wait SECONDS between retrievals", metavar="SECONDS")
    random_wait: bool = flag("--random-wait", "(waits what -w says)")
    waitretry: str = value("--waitretry", "wait 1..SECONDS between retries", metavar="SECONDS", default="10")
    limit_rate: str | None = value("--limit-rate", "limit download rate to RATE", metavar="RATE")
    prefix: str = value("-P", "--directory-prefix", "save files to PREFIX/..", metavar="PREFIX", default="")
    force_directories: bool = flag("-x", "--force-directories", "force creation of directories")
    no_directories: bool = flag("--no-directories", "don't create directories (-nd)")
    no_host_directories: bool = flag("--no-host-directories", "don't create host directories (-nH)")
    cut_dirs: str = value("--cut-dirs", "ignore NUMBER remote directory components", metavar="NUMBER", default="0")
    user: str | None = value("--user", "--http-user", "set http user to USER", metavar="USER")
    password: str | None = value("--password", "--http-password", "set http password to PASS", metavar="PASS")
    headers: tuple[str, ...] = many("--header", "insert STRING among the headers", metavar="STRING")
    agent: str | None = value("-U", "--user-agent", "identify as AGENT", metavar="AGENT")
    referer: str | None = value("--referer", "include 'Referer: URL' header in HTTP request", metavar="URL")
    post_data: str | None = value("--post-data", "use the POST method; send STRING as the data", metavar="STRING")
    post_file: str | None = value("--post-file", "use the POST method; send contents of FILE", metavar="FILE")
    method: str | None = value("--method", "use method HTTPMethod in the request", metavar="HTTPMethod")
    body_data: str | None = value("--body-data", "send STRING as data. --method MUST be set", metavar="STRING")
    body_file: str | None = value("--body-file", "send contents of FILE. --method MUST be set", metavar="FILE")
    load_cookies: str | None = value("--load-cookies", "load cookies from FILE before session", metavar="FILE")
    save_cookies: str | None = value("--save-cookies", "save cookies to FILE after session", metavar="FILE")
    keep_session: bool = flag("--keep-session-cookies", "load and save session cookies")
    max_redirect: str = value("--max-redirect", "maximum redirections allowed per page", metavar="N", default="20")
    content_on_error: bool = flag("--content-on-error", "output the received content on server errors")
    content_disposition: bool = flag("--content-disposition", "honor the Content-Disposition header")
    trust_names: bool = flag("--trust-server-names", "use the name specified by the redirection URL")
    no_check: bool = flag("--no-check-certificate", "(no effect: TLS is verified outside the sandbox)")
    compression: str | None = value("--compression", "one of auto, gzip and none", metavar="TYPE")
    show_progress: bool = flag("--show-progress", "display the progress bar in any verbosity mode")
    progress: str | None = value("--progress", "select progress gauge type", metavar="TYPE")
    https_only: bool = flag("--https-only", "only follow secure HTTPS links")
    recursive: bool = flag("-r", "--recursive", "specify recursive download")
    level: str = value(
        "-l", "--level", "maximum recursion depth (inf or 0 for infinite)", metavar="NUMBER", default="5"
    )
    mirror: bool = flag("-m", "--mirror", "shortcut for -r -l inf")
    page_requisites: bool = flag("-p", "--page-requisites", "get all images, etc. needed to display HTML page")
    no_parent: bool = flag("--no-parent", "don't ascend to the parent directory (-np)")
    accept: str | None = value("-A", "--accept", "comma-separated list of accepted extensions", metavar="LIST")
    reject: str | None = value("-R", "--reject", "comma-separated list of rejected extensions", metavar="LIST")
    span: bool = flag("-H", "--span-hosts", "go to foreign hosts when recursive")
    domains: str | None = value("-D", "--domains", "comma-separated list of accepted domains", metavar="LIST")
    execute: tuple[str, ...] = many("-e", "--execute", "execute a `.wgetrc'-style command", metavar="COMMAND")
    no_proxy: bool = flag("--no-proxy", "(there are none)")
    no_cache: bool = flag("--no-cache", "disallow server-cached data")
    no_cookies: bool = flag("--no-cookies", "don't use cookies")
    no_hsts: bool = flag("--no-hsts", "(there is none)")
    inet4: bool = flag("-4", "--inet4-only", "(addresses are chosen outside the sandbox)")
    inet6: bool = flag("-6", "--inet6-only", "(addresses are chosen outside the sandbox)")
    ca: str | None = value("--ca-certificate", "(TLS is verified outside the sandbox)", metavar="FILE")
    debug: int = count("-d", "--debug", "(nothing more is said)")


def rewrite(args: list[str]) -> list[str]:
    """-nv, -nc, -np, -nd and -nH are two letters each, bundled as they may be (`-qnc`)."""
    words = {"v": "--no-verbose", "c": "--no-clobber", "p": "--no-parent", "d": "--no-directories"}
    words["H"] = "--no-host-directories"
    out: list[str] = []
    for index, arg in enumerate(args):
        if arg == "--":
            return [*out, *args[index:]]
        if not arg.startswith("-n") or arg.startswith("--") or len(arg) < 3 or arg[2] not in words:
            out.append(arg)
            continue
        out += [words[letter] for letter in arg[2:] if letter in words]
    return out
