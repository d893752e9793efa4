"""Shells of the console: they stay while their clients come and go."""

from __future__ import annotations

import time

import pytest
from websockets.exceptions import ConnectionClosed

from belljar.server.console.terminal import KEPT
from tests.server.console.client import API, Page
from tests.server.serving import Server


def test_typing_and_colours(page: Page, sandbox: str) -> None:
    terminal = page.terminal(sandbox)
    terminal.type("printf '\\e[31mre''d\\e[0m\\n'; echo $TERM\n")
    assert "\x1b[31mred\x1b[0m" in terminal.until("xterm-256color")
    terminal.close()


def test_its_size(page: Page, sandbox: str) -> None:
    terminal = page.terminal(sandbox, rows=40, cols=120)
    terminal.type("stty size; echo o''ne\n")
    assert "40 120" in terminal.until("one")
    terminal.say(size=[30, 90])
    terminal.type("stty size; echo t''wo\n")
    assert "30 90" in terminal.until("two")
    terminal.close()


@pytest.mark.parametrize("size", [[0, 0], [-5, 10**9], [100000, 1]])
def test_a_size_that_is_none_is_bounded(page: Page, sandbox: str, size: list[int]) -> None:
    terminal = page.terminal(sandbox, rows="x", cols="99999999999999999999")
    terminal.say(size=size)
    terminal.type("echo st''ill\n")
    terminal.until("still")
    terminal.close()


def test_it_goes_on_without_a_client_and_nothing_is_lost_or_doubled(page: Page, sandbox: str) -> None:
    first = page.terminal(sandbox)
    wait = "until test -e alone; do sleep 0.02; done"
    first.type(f"for i in $(seq 40); do echo line-$i.; test $i = 3 && {wait}; done; touch over; echo en''d\n")
    first.until("line-3.")
    first.close()
    page.write(sandbox, "/home/user/alone", b"")
    end = time.monotonic() + 60
    while page.client.get(f"{API}/sandboxes/{sandbox}/file", params={"path": "/home/user/over"}).status_code != 200:
        assert time.monotonic() < end
        time.sleep(0.05)
    second = page.terminal(sandbox, terminal=first.hello["terminal"], **{"from": first.offset})
    assert second.hello["terminal"] == first.hello["terminal"]
    assert second.offset == first.offset
    second.until("end")
    whole = first.shown + second.shown
    assert [whole.count(f"line-{number}.") for number in range(1, 41)] == [1] * 40
    second.close()


def test_what_is_too_old_is_gone_and_said_so(page: Page, sandbox: str) -> None:
    first = page.terminal(sandbox)
    first.type(f"head -c {2 * KEPT} /dev/zero | tr '\\0' x; echo en''d\n")
    first.until("end", 120)
    second = page.terminal(sandbox, terminal=first.hello["terminal"], **{"from": 10})
    assert second.hello["from"] == second.hello["end"] - KEPT
    second.until("end")
    first.close()
    second.close()


def test_two_clients_see_the_same(page: Page, sandbox: str) -> None:
    first = page.terminal(sandbox)
    first.until("$ ")
    second = page.terminal(sandbox, terminal=first.hello["terminal"])
    first.type("echo bo''th\n")
    assert "both" in first.until("both")
    assert "both" in second.until("both")
    first.close()
    second.close()


def test_a_client_that_shows_nothing_holds_the_shell_back(page: Page, sandbox: str) -> None:
    """It fills no memory of the server's, and ^C still reaches the program."""
    terminal = page.terminal(sandbox)
    terminal.type("yes endless\n")
    while True:
        try:
            terminal.offset += len(terminal.socket.recv(4))
        except TimeoutError:
            break
        assert terminal.offset < 1 << 20
    terminal.type("\x03")
    terminal.say(shown=terminal.offset)
    terminal.type("echo do''ne\n")
    terminal.until("done")
    terminal.close()


def test_the_end_of_the_shell_ends_the_connection(page: Page, sandbox: str) -> None:
    terminal = page.terminal(sandbox)
    terminal.type("exit\n")
    with pytest.raises(ConnectionClosed) as closed:
        terminal.until("never shown")
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4410


def test_a_killed_sandbox_ends_the_connection(page: Page) -> None:
    number = page.create()
    terminal = page.terminal(number)
    terminal.until("$ ")
    page.ask("DELETE", f"/sandboxes/{number}")
    with pytest.raises(ConnectionClosed):
        terminal.until("never shown")


def test_after_a_restart_there_is_a_new_shell_on_the_same_files(steady: Server) -> None:
    page = Page(steady)
    number = page.create()
    first = page.terminal(number)
    first.type("echo kept > file; echo wr''itten\n")
    first.until("written")
    steady.stop()
    steady.start(steady.port)
    second = page.terminal(number, terminal=first.hello["terminal"], **{"from": first.offset})
    assert second.hello["terminal"] != first.hello["terminal"]
    assert second.hello["from"] == 0
    second.type("cat file; echo re''ad\n")
    assert "kept" in second.until("read")
    second.close()


def test_there_are_so_many_shells_and_no_more(page: Page) -> None:
    number = page.create()
    open_ones = [page.terminal(number) for _ in range(16)]
    with pytest.raises(ConnectionClosed) as closed:
        page.terminal(number)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4429
    for each in open_ones:
        each.close()
