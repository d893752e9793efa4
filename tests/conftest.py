"""Settings that every test shares: repeatable property tests, the parts of the suite, and the order of tests."""

from __future__ import annotations

import signal
import threading
from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import settings

from tests.report import RoomReport

# A shared two-core machine makes per-example deadlines a coin toss, so there are none.
settings.register_profile("deterministic", deadline=None, derandomize=True, print_blob=True)
# `pytest --hypothesis-profile=explore` looks for new failures.
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("deterministic")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("belljar")
    group.addoption(
        "--part",
        choices=("test", "battery", "all"),
        default="all",
        help="test: what `make test` runs; battery: the rest, for changed rooms; all: the default",
    )
    group.addoption("--rooms", action="store_true", help="report by rooms: a line for each, and a table at the end")
    group.addoption(
        "--shuffle", metavar="SEED", help="run files, and the tests of each, in the order that a seed gives"
    )


def pytest_configure(config: pytest.Config) -> None:
    # A shell's background job ignores ^C, and so would the programs that tests start and interrupt.
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.option.rooms and not hasattr(config, "workerinput"):
        config.pluginmanager.register(RoomReport(config), "rooms")


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.option.shuffle
    return f"order: --shuffle {seed}" if seed else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.part != "all":
        battery = set(_battery(items))
        left_out = [item for item in items if (item in battery) == (config.option.part == "test")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if (item in battery) != (config.option.part == "test")]
    if config.option.shuffle:
        _shuffle(items, Random(config.option.shuffle))


def _battery(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """The tests marked `battery`, but for the cases that a mark's `sample` leaves in `make test`."""
    marked: dict[str, list[tuple[pytest.Item, pytest.Mark]]] = defaultdict(list)
    for item in items:
        if mark := item.get_closest_marker("battery"):
            marked[item.nodeid.partition("[")[0]].append((item, mark))
    for cases in marked.values():
        sample: Any = cases[0][1].kwargs.get("sample", 0)
        kept = {number * len(cases) // sample for number in range(sample)}
        yield from (item for number, (item, _) in enumerate(cases) if number not in kept)


def _shuffle(items: list[pytest.Item], random: Random) -> None:
    files: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        files[item.nodeid.partition("::")[0]].append(item)
    names = sorted(files)
    random.shuffle(names)
    items.clear()
    for name in names:
        random.shuffle(files[name])
        items += files[name]
