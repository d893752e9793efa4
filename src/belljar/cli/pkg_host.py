"""`belljar pkg`: packages of a recipe, or of a sandbox that is kept under a name."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from belljar.cli.screen_host import complain, say
from belljar.cli.snapshot import add_store_options, say_json, store_of

if TYPE_CHECKING:
    import argparse

_STEP: Final = re.compile(r"^\[\[steps\]\]\n(package = .*)\n(?:\n|\Z)?", re.M)
"""A step of a recipe as it is written here."""


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser(
        "pkg",
        help="install packages into a recipe or a named sandbox",
        description="Install, list and remove the packages of a recipe for an image (--recipe FILE), or run pkg in a "
        "sandbox that is kept under a name (--sandbox NAME). Inside of a sandbox the command is `pkg`. See "
        "docs/packages.md.",
    )
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--recipe", metavar="FILE", type=Path, help="a recipe in TOML, which is changed")
    chosen.add_argument("--sandbox", metavar="NAME", help="go on with this sandbox, and keep it again")
    parser.add_argument("--registry", metavar="URL", help="of a recipe: where the packages come from")
    parser.add_argument("--key", metavar="KEY", help="of a recipe: what the registry's catalog is signed by")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="let the sandbox reach this host"
    )
    add_store_options(parser)
    parser.add_argument(
        "words", metavar="COMMAND", nargs="...", help="install, remove, list; of a sandbox all of pkg's"
    )
    parser.set_defaults(run=_run, parser=parser)


def _run(arguments: argparse.Namespace) -> int:
    if not arguments.words:
        arguments.parser.error("say what to do: install NAME, remove NAME or list")
    return _on_sandbox(arguments) if arguments.sandbox else _on_recipe(arguments)


def _on_sandbox(arguments: argparse.Namespace) -> int:
    from belljar.api.sandbox import Sandbox
    from belljar.cli.options import parse_network
    from belljar.net.network import Network

    network = parse_network(arguments.parser, arguments.allow_host, None)
    with Sandbox.resume(arguments.sandbox, store_of(arguments), network=network or Network.deny()) as sandbox:
        result = sandbox.exec(["pkg", *arguments.words])
        sys.stdout.write(result.stdout)
        sys.stderr.write(result.stderr)
        if result.exit_code == 0:
            sandbox.pause()
    return result.exit_code


def _on_recipe(arguments: argparse.Namespace) -> int:
    from belljar.abi.errors import ImageError

    path, (action, *names) = arguments.recipe, arguments.words
    if action not in ("install", "remove", "list") or (action != "list" and not names):
        arguments.parser.error("of a recipe: install NAME..., remove NAME... or list")
    try:
        before = path.read_text("utf-8") if path.exists() else ""
        steps = _steps(before)
        if action == "list":
            if arguments.json:
                say_json(list(steps))
                return 0
            for name, step in steps.items():
                say(f"{name}  {step}")
            return 0
        after = before
        for word in names:
            name = word.partition("@")[0]
            if name not in steps and action == "remove":
                complain(f"belljar: {path} has no step for {name} that `belljar pkg` wrote: it has {', '.join(steps)}")
                return 1
            if name in steps:
                after = _STEP.sub(lambda found, old=steps[name]: "" if found[1] == old else found[0], after)
            if action == "install":
                after = f"{after.rstrip()}\n\n[[steps]]\n{_step(word, arguments.registry, arguments.key)}\n".lstrip()
        _check(after, arguments)
        path.write_text(after, "utf-8")
    except (OSError, UnicodeError) as error:
        raise ImageError(f"{path}: {error}") from None
    return 0


def _steps(text: str) -> dict[str, str]:
    """The steps that were written here, by the name of their package."""
    found = {}
    for match in _STEP.finditer(text):
        spec = re.search(r'"([^"@]+)(@[^"]*)?"', match[1])
        if spec is not None:
            found[spec[1]] = match[1]
    return found


def _step(word: str, registry: str | None, key: str | None) -> str:
    if registry is None:
        return f"package = {json.dumps(word)}"
    more = f", key = {json.dumps(key)}" if key else ""
    return f"package = {{ install = {json.dumps(word)}, registry = {json.dumps(registry)}{more} }}"


def _check(text: str, arguments: argparse.Namespace) -> None:
    """See that the recipe can still be read. ImageError."""
    from belljar.cli.image_recipe import parse_recipe

    parse_recipe(text, store_of(arguments))
