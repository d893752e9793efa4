"""Where wget saves what it gets, and which links of a page it follows."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import unquote

from belljar.bin._url import BadUrl, Url, join
from belljar.bin.wget.options import Options
from belljar.kernel.process import Process
from belljar.libc.pattern import compile_pattern

_LINKS = {
    "a": ("href",), "area": ("href",), "link": ("href",), "img": ("src",), "script": ("src",), "iframe": ("src",),
    "frame": ("src",), "embed": ("src",), "source": ("src",), "video": ("src", "poster"), "audio": ("src",),
    "input": ("src",), "object": ("data",), "body": ("background",),
}  # fmt: skip
_REQUISITES = {"link", "img", "script", "embed", "source", "video", "audio", "input", "object", "body"}


def save_name(options: Options, url: Url, given: str | None = None) -> str:
    """The file for a URL, below the prefix; directories as in the URL when they are asked for."""
    name = given or unquote(url.path.rpartition("/")[2]) or "index.html"
    if url.query is not None and given is None:
        name += f"?{url.query}"
    name = re.sub(r"[\x00-\x1f\x7f]", lambda m: f"%{ord(m[0]):02X}", name).replace("/", "%2F")
    parts: list[str] = []
    if (options.recursive or options.mirror or options.page_requisites or options.force_directories) and (
        not options.no_directories
    ):
        if not options.no_host_directories:
            parts.append(url.authority)
        folders = [unquote(part).replace("/", "%2F") for part in url.path.split("/")[1:-1] if part]
        skipped = int(options.cut_dirs) if options.cut_dirs.isdecimal() else 0
        parts += [part for part in folders[skipped:] if part not in (".", "..")]
    if name in (".", ".."):
        name = "index.html"
    path = "/".join([*parts, name])
    prefix = options.prefix.rstrip("/") if options.prefix != "/" else "/"
    return path if prefix in ("", ".") else f"{prefix}/{path}"


def free_name(process: Process, name: str) -> str:
    """NAME, or NAME.1, NAME.2, ...: the first that is not there."""
    if not process.fs.exists(name):
        return name
    number = 1
    while process.fs.exists(f"{name}.{number}"):
        process.budget.charge()
        number += 1
    return f"{name}.{number}"


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.base: str | None = None
        self.found: list[tuple[str, str]] = []
        """Tag and reference."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "base" and given.get("href"):
            self.base = given["href"]
        for name in _LINKS.get(tag, ()):
            text = given.get(name)
            if text:
                self.found.append((tag, text.strip()))


def links(page: str, url: Url, *, requisites_only: bool = False) -> list[Url]:
    """Return a page's links in order, each once, without fragments."""
    parser = _Links()
    parser.feed(page)
    parser.close()
    base = url
    if parser.base is not None:
        try:
            base = join(url, parser.base)
        except BadUrl:
            base = url
    found: dict[str, Url] = {}
    for tag, text in parser.found:
        if (requisites_only and tag not in _REQUISITES) or re.match(r"(?!https?:)[A-Za-z][A-Za-z0-9+.-]*:", text):
            continue
        try:
            target = join(base, text)
        except BadUrl:
            continue
        if target.scheme in ("http", "https"):
            found.setdefault(target.request_url(), target)
    return list(found.values())


def wanted(options: Options, start: Url, url: Url) -> bool:
    """Whether a link is followed: host, directory, and the lists of -A and -R."""
    if url.host.lower() != start.host.lower() or url.port != start.port:
        domains = [name.strip().lower() for name in (options.domains or "").split(",") if name.strip()]
        inside = any(url.host.lower() == name or url.host.lower().endswith("." + name) for name in domains)
        if not options.span or (domains and not inside):
            return False
    folder = start.path.rpartition("/")[0] + "/"
    if options.no_parent and not url.path.startswith(folder):
        return False
    return not (options.https_only and url.scheme != "https")


def accepted(options: Options, name: str) -> bool:
    """-A and -R: suffixes, or patterns."""

    def matches(lists: str) -> bool:
        for word in filter(None, (part.strip() for part in lists.split(","))):
            if any(char in word for char in "*?["):
                if compile_pattern(word).matches(name):
                    return True
            elif name.endswith(word):
                return True
        return False

    if options.accept is not None and not matches(options.accept):
        return False
    return options.reject is None or not matches(options.reject)
