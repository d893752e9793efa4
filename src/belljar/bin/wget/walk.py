"""Pages and the links on them: `wget -r`, level by level, as far as robots.txt and the options allow."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from belljar.abi.dataclass import replace
from belljar.abi.errors import SysError
from belljar.bin._url import Url, parse_url
from belljar.bin._web import Exchange, WebError
from belljar.bin.wget.errors import Failure, Saved
from belljar.bin.wget.names import accepted, links, save_name, wanted
from belljar.bin.wget.options import Options

if TYPE_CHECKING:
    from belljar.bin.wget.run import Download

_PAGE_MAX: Final = 16 << 20
_PAGES_MAX: Final = 10_000


class Walk:
    """Start pages and what they lead to."""

    def __init__(self, download: Download) -> None:
        self.download = download
        self._options = download.options
        self._robots: dict[str, list[str]] = {}

    def run(self, start: Url) -> None:
        """Level by level; each URL once."""
        options = self._options
        deepest = 1 if not (options.recursive or options.mirror) else _level(options)
        seen = {start.request_url()}
        level = [start]
        for depth in range(deepest + 1):
            following: list[Url] = []
            for url in level:
                self.download.process.budget.charge(10)
                saved = self.download.fetch(url)
                if saved is None or len(seen) > _PAGES_MAX:
                    continue
                page = self._page(saved)
                if page is not None and depth < deepest:
                    only = options.page_requisites and not (options.recursive or options.mirror)
                    for link in links(page, saved.url, requisites_only=only):
                        key = link.request_url()
                        if key in seen or not self._follows(start, link):
                            continue
                        seen.add(key)
                        following.append(replace(link, fragment=None))
                if saved.name.endswith(".tmp") or not accepted(options, saved.name.rpartition("/")[2]):
                    self.download.tell(f"Removing {saved.name} since it should be rejected.\n\n")
                    with suppress(SysError):
                        self.download.process.fs.unlink(saved.name)
            level = following

    def _follows(self, start: Url, link: Url) -> bool:
        if not wanted(self._options, start, link):
            return False
        name = save_name(self._options, link).rpartition("/")[2]
        is_page = name.endswith((".html", ".htm")) or link.path.endswith("/")
        if not is_page and not accepted(self._options, name):
            return False
        return not any(link.path.startswith(path) for path in self._disallowed(link))

    def _disallowed(self, url: Url) -> list[str]:
        """Return the paths that robots.txt disallows; none with `-e robots=off`."""
        if any(re.fullmatch(r"robots\s*=\s*off", text.strip()) for text in self._options.execute):
            return []
        place = f"{url.scheme}://{url.host_header}"
        if place not in self._robots:
            self._robots[place] = []
            self.download.tell("Loading robots.txt; please ignore errors.\n")
            self.download.tell(f"--{self.download.now()}--  {place}/robots.txt\n")
            try:
                with Exchange(self.download.process) as exchange:
                    robots = parse_url(f"{place}/robots.txt")
                    head = self.download.ask(
                        exchange, "GET", robots, self.download.headers(robots, 0, "", None, trusted=True), None
                    )
                    self.download.status_line(head)
                    if head.status == 200:
                        text = exchange.read(1 << 16).decode("utf-8", "replace")
                        self._robots[place] = _robots_rules(text)
                        self.download.tell("\n")
                    else:
                        self.download.say_error(f"{self.download.now()} ERROR {head.status}: {head.reason}.\n")
            except (Failure, WebError):
                self.download.tell("\n")
        return self._robots[place]

    def _page(self, saved: Saved) -> str | None:
        if (
            saved.kind not in ("text/html", "application/xhtml+xml")
            or saved.size > _PAGE_MAX
            or self.download.document == 1
        ):
            return None
        try:
            return self.download.process.read_file(saved.name).decode("utf-8", "replace")
        except SysError:
            return None


def _robots_rules(text: str) -> list[str]:
    """The paths that robots.txt denies to everyone, or to wget."""
    rules: list[str] = []
    mine = False
    for line in text.splitlines():
        key, _, value = line.partition("#")[0].partition(":")
        value = value.strip()
        if key.strip().lower() == "user-agent":
            mine = value == "*" or value.lower().startswith("wget")
        elif key.strip().lower() == "disallow" and mine and value:
            rules.append(value)
    return rules


def _level(options: Options) -> int:
    if options.level in ("inf", "0") or (options.mirror and options.level == "5"):
        return 1000
    return int(options.level) if options.level.isdecimal() and len(options.level) < 4 else 5
