"""Takes the pictures of docs/console.md: `python -m tests.server.console.pictures docs/console`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.chromium import ARGUMENTS, chromium
from tests.server.console.build import build_page
from tests.server.console.client import Page as Client
from tests.server.console.test_browser import TABLE, connected, go, judge, run_cell, type_line, visit
from tests.server.serving import Server

DESKTOP = {"width": 1180, "height": 740}
PHONE = {"width": 390, "height": 760}
MAIN = b'''"""Loads the day's orders."""

import csv
import sys


def load(path: str) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    print(len(load(sys.argv[1])), "orders")
'''
CURVE = """import math
class Curve:
    def _repr_html_(self):
        rows = "".join(f"<tr><th>{n}</th><td>{math.sin(n):.3f}</td><td>{math.cos(n):.3f}</td></tr>" for n in range(4))
        return f"<table><thead><tr><th>x</th><th>sin</th><th>cos</th></tr></thead><tbody>{rows}</tbody></table>"
Curve()"""
SHOW = (
    "clear; ls --color=always -F / | head -4; for c in 31 32 33 34 35 36; do printf '\\e[%dm●● ' $c; done; "
    "echo -e '\\e[0m'; python3 app/load.py orders.csv; curl -sS https://api.example.com/rates"
)


def prepare(client: Client) -> str:
    """A few sandboxes with a past; gives the one that is looked at."""
    for name in ("web-agent-7", "nightly-tests", "scratch"):
        number = client.create(metadata={"name": name})
    client.ask("POST", f"/sandboxes/{number}/pause")
    main = client.create(metadata={"name": "orders-pipeline"})
    client.write(main, "/home/user/app/load.py", MAIN)
    client.write(main, "/home/user/orders.csv", b"id,total\n1,9.5\n2,12\n3,7\n")
    client.ask("POST", f"/sandboxes/{main}/snapshots", {"name": "clean"})
    client.create(templateID="clean", metadata={"name": "try-duckdb"})
    client.ask("POST", f"/sandboxes/{main}/snapshots", {"name": "loaded"})
    client.write(main, "/home/user/app/load.py", MAIN.replace(b'"orders")', b'"orders", file=sys.stderr)'))
    client.ask("POST", f"/sandboxes/{main}/run", {"code": "curl -s http://10.0.0.5:5432/", "language": "bash"})
    return main


def take(browser: Browser, server: Server, main: str, place: Path) -> None:
    def keep(tab: Page, name: str) -> None:
        tab.wait_for_timeout(1200)
        judge(tab)
        tab.screenshot(path=place / f"{name}.png")

    with visit(browser, server, viewport=DESKTOP, color_scheme="light") as watched:
        tab = watched.tab
        go(tab, server, "sandboxes", main, "terminal")
        connected(tab)
        type_line(tab, SHOW, "may look up")
        tab.keyboard.type("seq 3000000 | sort -rn | tail -1 &\n")
        keep(tab, "terminal")
        go(tab, server, "sandboxes", main, "activity")
        tab.wait_for_timeout(30_000)
        keep(tab, "activity")
        go(tab, server, "sandboxes", main, "files")
        tab.get_by_role("button", name="Changes", exact=True).click()
        tab.locator(".changes").get_by_text("load.py").click()
        keep(tab, "changes")
        go(tab, server, "sandboxes", main, "network")
        tab.get_by_role("button", name="Allow…").first.click()
        keep(tab, "network")
        tab.keyboard.press("Escape")
        go(tab, server, "snapshots")
        keep(tab, "snapshots")
        go(tab, server, "sandboxes")
        tab.wait_for_timeout(9000)
        keep(tab, "sandboxes")
    with visit(browser, server, viewport=DESKTOP, color_scheme="dark") as watched:
        tab = watched.tab
        go(tab, server, "sandboxes", main, "cells")
        run_cell(tab, 0, TABLE)
        tab.get_by_role("button", name="Add a cell").click()
        run_cell(tab, 1, CURVE)
        tab.evaluate("document.querySelector('.tab').scrollTop = 0")
        keep(tab, "cells-dark")
    with visit(browser, server, viewport=PHONE, color_scheme="dark", has_touch=True) as watched:
        tab = watched.tab
        go(tab, server, "sandboxes")
        tab.wait_for_timeout(3000)
        keep(tab, "phone-dark")
    with visit(browser, server, viewport=PHONE, color_scheme="light", has_touch=True) as watched:
        tab = watched.tab
        go(tab, server, "sandboxes", main, "activity")
        tab.wait_for_timeout(6000)
        keep(tab, "phone-light")


def main() -> None:
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    build_page()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        server = Server(Path(scratch), "--allow-host", "pypi.org", "--allow-host", "*.internal.example")
        try:
            browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
            take(browser, server, prepare(Client(server)), place)
            browser.close()
        finally:
            server.stop()


if __name__ == "__main__":
    main()
