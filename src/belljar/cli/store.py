"""`belljar store`: collect garbage, look for damage, count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.cli.snapshot import add_store_options, say_json, size_text, store_of

if TYPE_CHECKING:
    import argparse


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser(
        "store",
        help="look after the store of snapshots and images",
        description="Look after the store that snapshots and images are kept in. See docs/state.md.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    collect = actions.add_parser(
        "gc",
        help="remove what nothing needs",
        description="Condemn what no snapshot or image needs, and remove what was condemned by an earlier gc. Safe "
        "while others write.",
    )
    collect.add_argument(
        "--grace",
        type=_seconds,
        metavar="SECONDS",
        help="remove what was condemned for longer than this (default: an hour; less is safe only if nobody writes)",
    )
    collect.set_defaults(run=_collect)
    check = actions.add_parser(
        "check",
        help="read everything and say what is damaged",
        description="Read every object, and say what is missing or damaged and which snapshot that hurts. The exit "
        "code is 1 if anything is.",
    )
    check.set_defaults(run=_check)
    stats = actions.add_parser("stats", help="count what is kept", description="Count what the store keeps.")
    stats.set_defaults(run=_stats)
    for action in (collect, check, stats):
        add_store_options(action)


def _seconds(text: str) -> float:
    from argparse import ArgumentTypeError

    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not number >= 0:
        raise ArgumentTypeError(f"{text!r} is no number of seconds")
    return number


def _collect(arguments: argparse.Namespace) -> int:
    from belljar.api.clock_host import wall_time
    from belljar.cli.screen_host import say
    from belljar.store.collect import collect
    from belljar.store.store import GRACE_SECONDS

    grace = GRACE_SECONDS if arguments.grace is None else arguments.grace
    swept = collect(store_of(arguments), wall_time(), grace)
    if arguments.json:
        say_json({"condemned": swept.condemned, "removed": swept.removed, "removed_bytes": swept.removed_bytes})
    else:
        say(f"{swept.removed} objects removed ({size_text(swept.removed_bytes)}), {swept.condemned} newly condemned")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from belljar.api.errors import printable
    from belljar.cli.screen_host import say
    from belljar.store.collect import check

    found = list(check(store_of(arguments)))
    if arguments.json:
        say_json([{"ref": it.ref, "path": it.path, "object": it.digest.hex(), "what": it.what} for it in found])
    else:
        for damage in found:
            hurt = f"{damage.ref}: {damage.path}" if damage.ref else "needed by nothing"
            say(f"{damage.what} {damage.digest.hex()} {printable(hurt)}")
        if not found:
            say("all objects are as they were written")
    return 1 if found else 0


def _stats(arguments: argparse.Namespace) -> int:
    from belljar.cli.screen_host import say
    from belljar.store.default_host import default_location, disk_bytes
    from belljar.store.snapshot import IMAGE, LABEL, SANDBOX, list_snapshots
    from belljar.store.store import Objects

    store = store_of(arguments)
    location = arguments.store or default_location()
    refs = store.list()
    snapshots = list_snapshots(Objects(store))
    counts = {
        "objects": sum(1 for _ in store.digests()),
        "snapshots": len(snapshots),
        "labels": sum(name.startswith(LABEL) for name in refs),
        "sandboxes": sum(name.startswith(SANDBOX) for name in refs),
        "images": sum(name.startswith(IMAGE) for name in refs),
    }
    sizes = {
        "file_bytes": sum(record.size for record, _ in snapshots.values() if record),
        "disk_bytes": disk_bytes(location),
    }
    if arguments.json:
        say_json({"location": location, **counts, **sizes})
        return 0
    say(f"{'location':<12}{location}")
    for name, count in counts.items():
        say(f"{name:<12}{count}")
    say(f"{'files':<12}{size_text(sizes['file_bytes'] or 0)} in all snapshots")
    if sizes["disk_bytes"] is not None:
        say(f"{'on disk':<12}{size_text(sizes['disk_bytes'])}")
    return 0
