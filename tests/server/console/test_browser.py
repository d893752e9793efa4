"""The console in a real browser: real clicks, real typing, every view; hostile text; a restart; and axe's judgement."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Route, expect, sync_playwright

from tests.chromium import ARGUMENTS, chromium
from tests.server.console.build import NODE_MODULES
from tests.server.console.client import Page as Client
from tests.server.serving import Server

pytestmark = pytest.mark.slow
SECONDS = 60_000.0
HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>{{7*7}}\'"`'
expect.set_options(timeout=SECONDS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        yield browser
        browser.close()


class Watched:
    """A tab, and what it did that it should not."""

    def __init__(self, context: BrowserContext, server: Server) -> None:
        self.server = server
        self.elsewhere: list[str] = []
        self.complaints: list[str] = []
        self.tab = context.new_page()
        self.tab.set_default_timeout(SECONDS)
        self.tab.on("request", lambda request: self._asked(request.url))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("console", lambda said: self._said(said.type, said.text))

    def _asked(self, url: str) -> None:
        if not url.startswith((self.server.url, "data:", "blob:")):
            self.elsewhere.append(url)

    def _said(self, kind: str, text: str) -> None:
        # Chromium itself styles lines that it joins in an editable element; that it may not is all the same to us.
        if kind == "error" and "Applying inline style" not in text and "Failed to load resource" not in text:
            self.complaints.append(text)

    def check(self) -> None:
        assert self.elsewhere == []
        assert self.complaints == []
        assert self.tab.evaluate("window.hacked") is None


@contextmanager
def visit(browser: Browser, server: Server, *, key: str | None = None, **options: Any) -> Iterator[Watched]:
    """A tab that is signed in."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
    client = Client(server, key)
    name, value = client.cookie.split("=", 1)
    cookie = {"name": name, "value": value, "domain": "127.0.0.1", "path": "/console", "sameSite": "Strict"}
    context.add_cookies([cookie])  # type: ignore[list-item]
    watched = Watched(context, server)
    try:
        yield watched
        watched.check()
    finally:
        context.close()


@pytest.fixture
def tab(browser: Browser, served: Server) -> Iterator[Page]:
    with visit(browser, served) as watched:
        yield watched.tab


def go(tab: Page, served: Server, *words: str) -> None:
    tab.goto(f"{served.url}/#/{'/'.join(words)}")


def judge(tab: Page) -> None:
    """axe finds nothing serious."""
    tab.evaluate((NODE_MODULES / "axe-core/axe.min.js").read_text())
    found = tab.evaluate("axe.run(document, {resultTypes: ['violations']}).then((result) => result.violations)")
    bad = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in bad] == []


def screen(tab: Page) -> Locator:
    return tab.locator(".xterm-rows")


def connected(tab: Page) -> None:
    tab.locator("[data-status=connected]").wait_for()


def type_line(tab: Page, text: str, answer: str) -> None:
    tab.locator(".xterm").click()
    tab.keyboard.type(text + "\n")
    expect(screen(tab)).to_contain_text(answer)


def test_the_way_in_and_out(browser: Browser, served: Server) -> None:
    context = browser.new_context()
    watched = Watched(context, served)
    tab = watched.tab
    tab.goto(served.url)
    expect(tab.get_by_role("heading", name="Sign in to belljar")).to_be_visible()
    judge(tab)
    tab.get_by_label("API key").fill("bj_wrong")
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("alert")).to_have_text("This is no valid key")
    tab.get_by_label("API key").fill(served.key)
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("heading", name="Sandboxes")).to_be_visible()
    assert tab.evaluate("document.cookie") == ""
    assert served.key not in tab.evaluate("JSON.stringify([localStorage, sessionStorage])")
    tab.get_by_role("button", name="Sign out").click()
    expect(tab.get_by_role("heading", name="Sign in to belljar")).to_be_visible()
    watched.check()
    context.close()


def test_the_printed_link_signs_in_and_leaves_the_address(browser: Browser, own: Server) -> None:
    (link,) = re.findall(r"Console: (\S+)", "".join(own.said))
    context = browser.new_context()
    watched = Watched(context, own)
    watched.tab.goto(link)
    expect(watched.tab.get_by_role("heading", name="Sandboxes")).to_be_visible()
    assert "sign-in" not in watched.tab.url
    watched.tab.go_back()
    assert watched.tab.url == "about:blank"  # nothing in the history, either
    watched.check()
    context.close()


def test_a_sandbox_from_its_first_to_its_last_click(tab: Page, served: Server) -> None:
    go(tab, served, "sandboxes")
    expect(tab.get_by_role("heading", name="Sandboxes")).to_be_visible()
    tab.keyboard.press("n")
    dialog = tab.get_by_role("dialog")
    dialog.get_by_label("Name").fill("clicked")
    judge(tab)
    dialog.get_by_label("Environment").fill("GREETING=good day")
    dialog.get_by_role("button", name="Create").click()
    connected(tab)
    type_line(tab, "echo $GREETING", "good day")
    go(tab, served, "sandboxes")
    row = tab.get_by_role("row").filter(has_text="clicked")
    expect(row).to_contain_text("running")
    tab.keyboard.press("/")
    tab.keyboard.type("no such sandbox")
    expect(row).to_have_count(0)
    tab.get_by_label("Filter sandboxes").fill("name=clicked")
    expect(row).to_have_count(1)
    row.get_by_role("button", name="Pause clicked").click()
    expect(row).to_contain_text("paused")
    tab.get_by_role("button", name="Running", exact=True).click()
    expect(row).to_have_count(0)
    tab.get_by_role("button", name="All", exact=True).click()
    row.get_by_role("button", name="Resume clicked").click()
    expect(row).to_contain_text("running")
    row.get_by_role("button", name="Kill clicked").click()
    tab.get_by_role("dialog").get_by_role("button", name="Kill", exact=True).click()
    expect(row).to_have_count(0)


def test_the_terminal_resizes_pastes_and_comes_back(tab: Page, served: Server, sandbox: str) -> None:
    go(tab, served, "sandboxes", sandbox, "terminal")
    connected(tab)
    type_line(tab, "printf '\\e[1;31mcol''oured\\e[0m\\n'", "coloured")
    colour = (
        screen(tab).locator("span", has_text=re.compile("^coloured")).first.evaluate("e => getComputedStyle(e).color")
    )
    assert colour not in ("rgb(31, 35, 48)", "rgb(0, 0, 0)")
    judge(tab)
    before = tab.locator(".size").inner_text()
    tab.set_viewport_size({"width": 900, "height": 600})
    expect(tab.locator(".size")).not_to_have_text(before)
    columns, rows = re.findall(r"\d+", tab.locator(".size").inner_text())
    type_line(tab, "stty size", f"{rows} {columns}")
    tab.evaluate(
        """() => {
            const data = new DataTransfer();
            data.setData("text/plain", "echo pas''ted-text");
            document.querySelector(".xterm-helper-textarea")
                .dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true}));
        }"""
    )
    tab.keyboard.press("Enter")
    expect(screen(tab)).to_contain_text("pasted-text")
    tab.keyboard.press("Control+F6")
    expect(tab.get_by_role("tab", name="Terminal")).to_be_focused()
    tab.reload()
    connected(tab)
    expect(screen(tab)).to_contain_text("pasted-text")
    tab.get_by_role("button", name="New shell").click()
    expect(screen(tab)).not_to_contain_text("pasted-text")
    connected(tab)
    type_line(tab, "exit", "")
    expect(tab.get_by_role("status").filter(has_text="The shell has ended")).to_be_visible()


@pytest.mark.battery
@pytest.mark.parametrize("noticed", [True, False], ids=["polls fail", "polls notice nothing"])
def test_the_terminal_survives_a_restart_of_the_server(browser: Browser, steady: Server, noticed: bool) -> None:
    """Whether the page hears of it by its polls, which then fail, or next hears that the sandbox is paused."""
    with visit(browser, steady) as watched:
        tab = watched.tab
        client = Client(steady)
        number = client.create()
        go(tab, steady, "sandboxes", number, "terminal")
        connected(tab)
        type_line(tab, "echo kept > file; echo wri''tten", "written")
        polls = Polls(tab, f"**/console/api/sandboxes/{number}", client.get(f"/sandboxes/{number}"), fail=noticed)
        polls.wait()
        port = steady.port
        steady.stop()
        expect(tab.get_by_role("status").filter(has_text="trying again")).to_be_visible()
        polls.wait()
        steady.start(port)
        if not noticed:
            polls.answer["state"] = "paused"
            expect(tab.locator(".sandbox-title .chip")).to_have_text("paused")
        polls.release()
        connected(tab)
        expect(screen(tab)).to_contain_text("this is a new one")
        expect(tab.locator(".sandbox-title .chip")).to_have_text("running")
        type_line(tab, "cat file", "kept")
        watched.complaints = [each for each in watched.complaints if "WebSocket connection" not in each]


class Polls:
    """Answers what the page asks now and then, in the server's place."""

    def __init__(self, tab: Page, pattern: str, answer: dict[str, Any], *, fail: bool) -> None:
        self.answer = answer
        self._tab, self._pattern, self._fail = tab, pattern, fail
        self._count = 0
        tab.route(pattern, self._take)

    def _take(self, route: Route) -> None:
        self._count += 1
        if self._fail:
            route.abort()
        else:
            route.fulfill(json=self.answer)

    def wait(self) -> None:
        """Until the page has asked once more."""
        before, until = self._count, time.monotonic() + SECONDS / 1e3
        while self._count == before:
            assert time.monotonic() < until, "the page asks no more"
            self._tab.wait_for_timeout(50)

    def release(self) -> None:
        self._tab.unroute(self._pattern)


def test_a_key_that_only_reads_is_offered_nothing_else(browser: Browser, served: Server, page: Client) -> None:
    number = page.create(metadata={"name": "looked at"})
    paused = page.create(metadata={"name": "asleep"})
    assert page.ask("POST", f"/sandboxes/{paused}/pause").status_code == 204
    assert page.ask("POST", f"/sandboxes/{number}/snapshots", {"name": "to-look-at"}).status_code == 201
    page.write(number, "/home/user/seen.txt", b"to be read")
    key = served.new_key("default", "--read-only", "--name", "monitor")
    changing = re.compile(
        r"^(New|Pause|Resume|Kill|Snapshot|Fork|Open port|Upload|Rename|Delete|Save|End|Make|Branch|Remove|Revoke)\b"
    )
    with visit(browser, served, key=key) as watched:
        tab = watched.tab
        refused: list[str] = []
        tab.on("response", lambda answer: refused.append(answer.url) if answer.status == 403 else None)
        views = {
            ("sandboxes",): "looked at",
            ("sandboxes", number, "terminal"): "This key may only read",
            ("sandboxes", number, "files"): "Choose a file",
            ("sandboxes", number, "cells"): "This key may only read",
            ("sandboxes", number, "activity"): "Processes",
            ("sandboxes", number, "network"): "network",
            ("sandboxes", number, "snapshots"): "to-look-at",
            ("sandboxes", paused, "files"): "This sandbox is paused",
            ("snapshots",): "to-look-at",
            ("images",): "base",
            ("keys",): "monitor",
        }
        for words, text in views.items():
            go(tab, served, *words)
            expect(tab.locator("main").get_by_text(text).first).to_be_visible()
            expect(tab.locator("main").get_by_role("button", name=changing)).to_have_count(0)
        go(tab, served, "sandboxes", number, "files")
        tab.get_by_role("tree").get_by_text("seen.txt").click()
        code = tab.get_by_label("Contents of /home/user/seen.txt")
        expect(code).to_contain_text("to be read")
        code.click()
        tab.keyboard.type("more")
        expect(tab.get_by_text("not saved")).to_have_count(0)
        expect(code).not_to_contain_text("more")
        expect(tab.get_by_role("button", name=changing)).to_have_count(0)
        judge(tab)
        assert refused == []


def test_files_are_edited_uploaded_downloaded_and_compared(tab: Page, served: Server, page: Client) -> None:
    number = page.create(metadata={"name": "files"})
    page.write(number, "/home/user/app/main.py", b'import os\n\nprint("hello", os.getcwd())\n')
    page.ask("POST", f"/sandboxes/{number}/snapshots", {"name": "clean"})
    go(tab, served, "sandboxes", number, "files")
    tree = tab.get_by_role("tree")
    tree.get_by_role("treeitem", name="app").get_by_role("button").first.click()
    tree.get_by_text("main.py").click()
    code = tab.get_by_label("Contents of /home/user/app/main.py")
    expect(code).to_contain_text("os.getcwd")
    code.click()
    tab.keyboard.press("Control+End")
    tab.keyboard.type("# edited")
    expect(tab.get_by_text("not saved")).to_be_visible()
    tab.keyboard.press("Control+s")
    expect(tab.get_by_text("not saved")).to_have_count(0)
    assert page.ask("GET", f"/sandboxes/{number}/file?path=/home/user/app/main.py").content.endswith(b"# edited")
    judge(tab)
    with tab.expect_download() as download:
        tab.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "main.py"
    assert Path(download.value.path()).read_bytes().endswith(b"# edited")
    tab.get_by_label("Files to upload").set_input_files({"name": "up.bin", "mimeType": "x/y", "buffer": b"\xff\0data"})
    expect(tree.get_by_text("up.bin")).to_be_visible()
    assert page.ask("GET", f"/sandboxes/{number}/file?path=/home/user/app/up.bin").content == b"\xff\0data"
    tree.get_by_text("up.bin").click()
    expect(tab.get_by_text("This file is no text")).to_be_visible()
    tab.get_by_role("button", name="Delete").click()
    tab.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(tree.get_by_text("up.bin")).to_have_count(0)
    tab.get_by_role("button", name=re.compile("^New file in")).click()
    tab.get_by_role("dialog").get_by_role("textbox").fill("new.txt")
    tab.keyboard.press("Enter")
    expect(tree.get_by_text("new.txt")).to_be_visible()
    tab.get_by_role("button", name="Changes", exact=True).click()
    tab.locator(".changes").get_by_text("/home/user/app/main.py").click()
    expect(tab.locator(".diff tr.added")).to_have_text(re.compile("# edited"))
    expect(tab.locator(".diff tr.removed")).to_have_count(0)
    judge(tab)
    tab.get_by_role("button", name="Restore").click()
    expect(tab.get_by_text("The text is the same")).to_be_visible()


def run_cell(tab: Page, place: int, text: str, language: str = "python") -> Locator:
    """Type code into a cell, and run it by the keyboard."""
    cell = tab.locator(".cell").nth(place)
    cell.get_by_label("Language").select_option(language)
    field = cell.get_by_label(f"Code of cell {place + 1}")
    field.click()
    tab.keyboard.press("Control+a")
    tab.keyboard.insert_text(text)
    tab.keyboard.press("Control+Enter")
    tab.locator(f".cell.done >> nth={place}").wait_for(timeout=180_000)
    return cell


TABLE = """class Table:
    def _repr_html_(self):
        return "<table><thead><tr><th></th><th>city</th><th>people</th></tr></thead><tbody>" + "".join(
            f"<tr><th>{n}</th><td>{c}</td><td>{p:,}</td></tr>" for n, (c, p) in enumerate(rows)) + "</tbody></table>"
rows = [("Lisbon", 545796), ("Oslo", 717710), ("Kyoto", 1463723)]
Table()"""
PLOT = """import struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
class Plot:
    def _repr_png_(self):
        head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
        return b"\\x89PNG\\r\\n\\x1a\\n" + head + chunk(b"IDAT", zlib.compress(b"\\0abc")) + chunk(b"IEND", b"")
Plot()"""


def test_cells_show_tables_plots_and_errors(tab: Page, served: Server, page: Client) -> None:
    number = page.create(metadata={"name": "analysis"})
    go(tab, served, "sandboxes", number, "cells")
    expect(run_cell(tab, 0, TABLE).get_by_role("columnheader", name="people")).to_be_visible()
    tab.get_by_role("button", name="Add a cell").click()
    image = run_cell(tab, 1, PLOT).get_by_role("img", name="Plot")
    assert image.evaluate("image => image.complete && image.naturalWidth") == 1
    tab.get_by_role("button", name="Add a cell").click()
    expect(
        run_cell(tab, 2, "const x = 6; console.log('said'); x * 7", "javascript").locator(".outputs")
    ).to_contain_text(re.compile(r"said\s*42"))
    tab.get_by_role("button", name="Add a cell").click()
    expect(run_cell(tab, 3, "1 / 0").locator(".cell-error")).to_contain_text("ZeroDivisionError")
    judge(tab)
    tab.reload()
    expect(tab.locator(".cell")).to_have_count(4)


def test_processes_charts_and_the_network_log(tab: Page, served: Server, page: Client, sandbox: str) -> None:
    go(tab, served, "sandboxes", sandbox, "terminal")
    connected(tab)
    type_line(tab, "curl -s http://denied.example.com/; sleep 4242 & echo star''ted", "started")
    tab.get_by_role("tab", name="Activity").click()
    row = tab.get_by_role("row").filter(has_text="sleep 4242")
    expect(row).to_be_visible()
    expect(tab.get_by_role("img", name=re.compile(r"^Memory: \d"))).to_be_visible()
    expect(tab.locator(".chart polyline").first).to_have_attribute("points", re.compile(r"\d+.* \d+"))
    judge(tab)
    row.get_by_role("button", name=re.compile("^End process")).click()
    expect(row).to_have_count(0)
    tab.get_by_role("tab", name="Network").click()
    denied = tab.get_by_role("row").filter(has_text="denied.example.com").first
    expect(denied).to_contain_text("denied")
    judge(tab)
    denied.get_by_role("button", name="Allow…").click()
    dialog = tab.get_by_role("dialog")
    expect(dialog).to_contain_text("belljar serve --allow-host 'denied.example.com'")
    expect(dialog).to_contain_text('Network.allow("denied.example.com")')
    judge(tab)
    tab.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


@pytest.mark.battery
def test_a_branch_from_a_snapshot(tab: Page, served: Server, page: Client) -> None:
    number = page.create(metadata={"name": "trunk"})
    page.write(number, "/home/user/state", b"as it was")
    go(tab, served, "sandboxes", number, "snapshots")
    tab.get_by_role("button", name="Snapshot", exact=True).click()
    tab.get_by_role("dialog").get_by_label("Name").fill("milestone")
    tab.get_by_role("button", name="Take it").click()
    node = tab.locator(".node.kept").filter(has_text="milestone")
    expect(node).to_be_visible()
    page.write(number, "/home/user/state", b"changed")
    node.get_by_role("button", name="Branch from here").click()
    connected(tab)
    type_line(tab, "cat state", "as it was")
    expect(tab.get_by_role("heading", name="from milestone")).to_be_visible()
    go(tab, served, "snapshots")
    expect(
        tab.locator("li", has=tab.get_by_text("milestone", exact=True)).get_by_text("from milestone")
    ).to_be_visible()
    judge(tab)
    tab.get_by_role("button", name="Remove milestone").click()
    tab.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(node).to_have_count(0)


def test_images_keys_and_usage(tab: Page, served: Server) -> None:
    go(tab, served, "images")
    expect(tab.get_by_role("heading", name="base")).to_be_visible()
    judge(tab)
    tab.keyboard.press("4")
    expect(tab.get_by_role("heading", name="Keys & usage")).to_be_visible()
    tab.get_by_role("button", name="New key").click()
    tab.get_by_label("What it is for").fill("robot")
    tab.keyboard.press("Enter")
    key = tab.get_by_role("dialog").locator("code").inner_text()
    assert Client(served, key).get("/session")["key"]["name"] == "robot"
    tab.get_by_role("button", name="Done").click()
    judge(tab)
    tab.get_by_role("row").filter(has_text="robot").get_by_role("button", name="Revoke").click()
    tab.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(tab.get_by_role("row").filter(has_text="robot")).to_contain_text("revoked")


@pytest.mark.battery
def test_text_of_guests_is_text(tab: Page, served: Server, page: Client) -> None:
    """Names of sandboxes, files and processes, output, names in the network log: nothing of it becomes markup."""
    number = page.create(metadata={"name": HOSTILE})
    page.write(number, f"/home/user/{HOSTILE.replace('/', '_')}", HOSTILE.encode())
    page.ask("POST", f"/sandboxes/{number}/snapshots", {})
    page.write(number, f"/home/user/{HOSTILE.replace('/', '_')}", b"other")
    go(tab, served, "sandboxes")
    expect(tab.get_by_role("link", name=HOSTILE)).to_be_visible()
    go(tab, served, "sandboxes", number, "terminal")
    connected(tab)
    type_line(
        tab, f"printf '%s\\n' {HOSTILE[:40]!r}; sleep 77 {HOSTILE[:20]!r} & curl -s 'http://<b>x.example/'", "onerror"
    )
    for view in ("Files", "Activity", "Network", "Snapshots"):
        tab.get_by_role("tab", name=view).click()
        tab.wait_for_timeout(1200)
        assert tab.evaluate("window.hacked") is None
    tab.get_by_role("tab", name="Files").click()
    tab.get_by_role("treeitem").filter(has_text="onerror").last.get_by_role("button").click()
    expect(tab.locator(".cm-content")).to_contain_text("other")
    tab.get_by_role("button", name="Changes", exact=True).click()
    tab.locator(".changes button").first.click()
    expect(tab.locator(".diff tr.removed")).to_contain_text("<script>")
    assert tab.locator("img[src=x]").count() == 0


RICH = """class Rich:
    def _repr_html_(self):
        return ("<table onmouseover='window.hacked=1'><tr><td><img src=x onerror='window.hacked=1'>cell"
                "<script>window.hacked=1</script><a href='javascript:window.hacked=1'>link</a></td></tr></table>")
Rich()"""
DRAWN = (
    "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9' onload='window.hacked=1'>"
    "<script>window.hacked=1</script><image href='http://evil.example/x.png'/></svg>"
)


def test_rich_results_of_guests_run_nothing(browser: Browser, served: Server, page: Client) -> None:
    with visit(browser, served) as watched:
        check_rich_results(watched.tab, served, page)
        # Handlers in a document that is never shown: the browser says that it did not take them.
        watched.complaints = [each for each in watched.complaints if "inline event handler" not in each]


def check_rich_results(tab: Page, served: Server, page: Client) -> None:
    number = page.create()
    go(tab, served, "sandboxes", number, "cells")
    outputs = run_cell(tab, 0, RICH).locator(".outputs")
    expect(outputs.locator("td")).to_contain_text("cell")
    assert outputs.locator("img, a, script, iframe").count() == 0
    run_cell(tab, 0, f"raise ValueError({HOSTILE!r})")
    lines = [{"type": "result", "svg": DRAWN}, {"type": "result", "html": HOSTILE}, {"type": "stdout", "text": HOSTILE}]
    tab.route("**/run", lambda route: route.fulfill(body="".join(json.dumps(line) + "\n" for line in lines)))
    outputs = run_cell(tab, 0, "whatever").locator(".outputs")
    expect(outputs.get_by_role("img")).to_be_visible()
    expect(outputs).to_contain_text("<script>")
    assert outputs.locator("img").count() == 1
    tab.wait_for_timeout(500)
    assert tab.evaluate("window.hacked") is None


@pytest.mark.battery
def test_the_views_pass_in_the_dark_and_on_a_phone(
    browser: Browser, served: Server, page: Client, sandbox: str
) -> None:
    options: dict[str, Any] = {"viewport": {"width": 390, "height": 780}, "color_scheme": "dark", "has_touch": True}
    with visit(browser, served, **options) as watched:
        tab = watched.tab
        for words in (["sandboxes"], ["snapshots"], ["images"], ["keys"]):
            go(tab, served, *words)
            expect(tab.get_by_role("heading", level=1)).to_be_visible()
            tab.wait_for_timeout(600)
            judge(tab)
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for name in ("terminal", "files", "cells", "activity", "network", "snapshots"):
            go(tab, served, "sandboxes", sandbox, name)
            expect(tab.get_by_role("tab", name=name.title())).to_have_attribute("aria-selected", "true")
            tab.wait_for_timeout(1000)
            judge(tab)
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_keyboard_is_enough(tab: Page, served: Server, sandbox: str) -> None:
    go(tab, served, "sandboxes")
    expect(tab.get_by_role("heading", name="Sandboxes")).to_be_visible()
    tab.keyboard.press("Tab")
    expect(tab.get_by_text("Skip to the content")).to_be_focused()
    tab.keyboard.press("?")
    expect(tab.get_by_role("dialog", name="Keyboard")).to_be_visible()
    judge(tab)
    tab.keyboard.press("Escape")
    go(tab, served, "sandboxes", sandbox, "files")
    tab.get_by_role("tab", name="Files").focus()
    tab.evaluate(
        """() => {
            for (const key of ["ArrowRight", "ArrowRight"])
                document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
        }"""
    )  # the second before the page has followed the first
    expect(tab.get_by_role("tab", name="Activity")).to_be_focused()
    tab.keyboard.press("ArrowLeft")
    expect(tab.get_by_role("tab", name="Cells")).to_be_focused()
    tab.keyboard.press("ArrowLeft")
    expect(tab.get_by_role("treeitem", name="dev")).to_be_visible()
    item = tab.get_by_role("tree").get_by_role("button").first
    item.focus()
    expect(item).to_be_focused()
    tab.keyboard.press("ArrowDown")
    expect(tab.get_by_role("treeitem", name="dev").get_by_role("button")).to_be_focused()
    tab.keyboard.press("ArrowRight")
    expect(tab.get_by_role("treeitem", name="dev")).to_have_attribute("aria-expanded", "true")
