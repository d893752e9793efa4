"""`belljar image`: build images from recipes, list, show, run, save, load and remove them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

from belljar.cli.snapshot import add_store_options, say_json, size_text, store_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from types import ModuleType

    from belljar.api.image import Image, Progress
    from belljar.store.store import Store

_IMAGE: Final = "a name, or a digest or its first digits (at least 8)"
_SHORT: Final = 12
_LINE_MAX: Final = 200


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser(
        "image",
        help="build and use images: sandboxes with your own files",
        description="Build images from recipes, and list, show, run, save, load and remove them. See docs/images.md.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def add(name: str, run: Callable[[argparse.Namespace], int], help: str, more: str = "") -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.{more}")
        add_store_options(action)
        action.set_defaults(run=run, parser=action)
        return action

    build = add(
        "build",
        _build,
        "build an image from a recipe",
        " The recipe is TOML (see docs/images.md), or a Python file that sets `image`. Paths in it are relative to it.",
    )
    build.add_argument("file", metavar="FILE", help="the recipe: a .toml or .py file")
    build.add_argument("--name", "-n", metavar="NAME", help="what to call the image (default: as the recipe says)")
    _add_network(build, "let its steps reach this host, e.g. pypi.org (default: no network)")
    build.add_argument("--quiet", "-q", action="store_true", help="print the digest alone")
    add("ls", _list, "list the images")
    add("show", _show, "show what is known of an image").add_argument("image", metavar="IMAGE", help=_IMAGE)
    run = add("run", _run, "run a command in a sandbox from an image", " The exit code is the command's.")
    run.add_argument("image", metavar="IMAGE", help=f"{_IMAGE}; 'base' is what every sandbox has")
    run.add_argument(
        "--tier", choices=("virtual", "native"), default="virtual", help="where: virtual (default), native"
    )
    run.add_argument("words", metavar="COMMAND", nargs="...", help="the image's own command unless given")
    _add_network(run, "let it reach this host (default: no network)")
    save = add("save", _save, "write an image for other tools", " The same image gives the same bytes.")
    save.add_argument("image", metavar="IMAGE", help=_IMAGE)
    save.add_argument(
        "path",
        metavar="PATH",
        help="an archive if it ends with .tar, .tar.gz or .tgz, else a new directory (OCI layout)",
    )
    load = add("load", _load, "take an image of another tool's: an OCI layout, or an archive of `docker save`")
    load.add_argument("path", metavar="PATH")
    load.add_argument("--tag", metavar="TAG", help="which one, if there are several")
    load.add_argument(
        "--name", "-n", metavar="NAME", help="what to call it (default: as the archive says, or the file)"
    )
    remove = add("rm", _remove, "remove images", " Their files go with a later `belljar store gc`.")
    remove.add_argument("images", metavar="IMAGE", nargs="+", help=f"{_IMAGE}; a digest removes all its names")


def _add_network(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME", help=help)


def _build(arguments: argparse.Namespace) -> int:
    from belljar.cli.options import parse_network
    from belljar.cli.screen_host import say

    store = store_of(arguments)
    image, name = _read_recipe(arguments, store)
    network = parse_network(arguments.parser, arguments.allow_host, None)
    show = None if arguments.quiet or arguments.json else _Screen().show
    os.chdir(os.path.dirname(os.path.abspath(arguments.file)))
    built = image.build(store, arguments.name or name, network, show)
    if arguments.json:
        say_json(_described(built))
    elif arguments.quiet:
        say(built.digest)
    else:
        say(f"{built.digest}  {built.built.name}".rstrip() + f"  {size_text(built.size)}")
    return 0


def _read_recipe(arguments: argparse.Namespace, store: Store) -> tuple[Image, str | None]:
    from belljar.abi.errors import ImageError
    from belljar.cli.image_recipe import parse_recipe

    path = arguments.file
    if path.endswith(".py"):
        return _run_recipe(path), None
    try:
        with open(path, encoding="utf-8") as file:
            return parse_recipe(file.read(), store)
    except OSError as error:
        raise ImageError(f"{path}: {error.strerror}") from None
    except (ImageError, UnicodeError) as error:
        raise ImageError(f"{path}: {error}") from None


def _run_recipe(path: str) -> Image:
    """Run the user's own program; it sets `image`."""
    from belljar.abi.errors import ImageError
    from belljar.api.image import Image

    image = getattr(run_file(path), "image", None)
    if not isinstance(image, Image):
        raise ImageError(f"{path}: set `image` to an Image")
    return image


def run_file(path: str) -> ModuleType:
    """Run the user's own program; gives what it defines. ImageError."""
    from importlib.util import module_from_spec, spec_from_file_location

    from belljar.abi.errors import ImageError

    spec = spec_from_file_location("recipe", os.path.abspath(path))
    if not os.path.isfile(path) or spec is None or spec.loader is None:
        raise ImageError(f"{path}: no such file")
    recipe = module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        spec.loader.exec_module(recipe)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's own program
        raise ImageError(_mistake(path, error)) from None
    return recipe


def _mistake(path: str, error: BaseException) -> str:
    """Where in a recipe an error came up, and the error, in one line."""
    import traceback

    own = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == os.path.abspath(path)
    ]
    if isinstance(error, SyntaxError) and error.filename == os.path.abspath(path):
        own, error = [error.lineno or 1], SyntaxError(error.msg)
    where = f"{path}:{own[-1]}" if own else path
    return f"{where}: {type(error).__name__}: {error}".replace("\n", " ").removesuffix(": ")


class _Screen:
    """Shows the steps of a build: one line each, and below it the last line that the step said, while it runs."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._colour = self._live and not os.environ.get("NO_COLOR")
        self._said = ""

    def show(self, progress: Progress) -> None:
        from belljar.api.errors import printable

        head = f"[{progress.number}/{progress.count}] {printable(progress.step)[:_LINE_MAX]}"
        match progress.state:
            case "started":
                self._said = ""
                if self._live:
                    self._write(self._fit(head))
            case "output":
                text = (self._said + progress.output.decode("utf-8", "replace"))[-4 * _LINE_MAX :]
                self._said = text
                lines = [line for line in text.splitlines() if line.strip()]
                if self._live and lines:
                    self._write(self._fit(f"{head}  {self._dim(printable(lines[-1])[:_LINE_MAX])}"))
            case "done" | "cached":
                time = "cached" if progress.state == "cached" else f"{progress.seconds:.1f} s"
                self._write(f"{head}  {self._dim(time)}\n")
            case "failed":
                self._write(f"{head}  {self._red('failed')}\n")
        sys.stderr.flush()

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}" if self._live else text)

    def _fit(self, text: str) -> str:
        """Cut a line that is written over again: it must not wrap."""
        from belljar.cli.screen_host import columns

        width = columns() - 1 + (len(self._dim("")) if self._dim("") in text else 0)
        return text if len(text) <= width else text[: width - 4] + ("\x1b[0m" if self._colour else "") + "..."

    def _dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self._colour else text

    def _red(self, text: str) -> str:
        return f"\x1b[31m{text}\x1b[0m" if self._colour else text


def _described(image: Image) -> dict[str, Any]:
    from belljar.api.image import describe

    return describe(image.built)


def _list(arguments: argparse.Namespace) -> int:
    from belljar.api.image import list_images
    from belljar.cli.screen_host import say

    found = list_images(store_of(arguments))
    if arguments.json:
        say_json([_described(image) for image in found])
        return 0
    width = max([len(image.built.name) for image in found], default=0)
    for image in found:
        digits = image.built.digest.hex()[:_SHORT]
        say(f"{digits}  {image.built.name:<{width}}  {size_text(image.size):>8}")
    if not found:
        say("no images yet: `belljar image build FILE` makes them")
    return 0


def _find(arguments: argparse.Namespace) -> Image:
    """The image that is asked for. No store has `base`: it is made for the moment."""
    from belljar.api.image import Image
    from belljar.api.settings import BASE
    from belljar.store.store import Store

    if arguments.image != BASE:
        return Image.find(arguments.image, store_of(arguments))
    return Image().build(Store.memory())


def _show(arguments: argparse.Namespace) -> int:
    from belljar.api.errors import printable
    from belljar.api.settings import BASE
    from belljar.cli.screen_host import say

    facts = _described(_find(arguments))
    facts["name"] = facts["name"] or (BASE if arguments.image == BASE else "")
    if arguments.json:
        say_json(facts)
        return 0
    facts["size"] = f"{size_text(facts['size'])} of files"
    facts["env"] = [f"{name}={value}" for name, value in facts["env"].items()]
    facts["command"] = " ".join(facts["command"])
    for name, value in facts.items():
        for line in value if isinstance(value, list) else [value]:
            if line:
                say(f"{name:<10}{printable(str(line))}")
    return 0


def _run(arguments: argparse.Namespace) -> int:
    import threading

    from belljar.api.command import PIPE
    from belljar.api.image import Image
    from belljar.api.sandbox import Sandbox
    from belljar.api.settings import BASE
    from belljar.cli.options import parse_network
    from belljar.cli.run_host import own_input, pass_on, show

    image: Image | str = BASE if arguments.image == BASE else Image.find(arguments.image, store_of(arguments))
    words = arguments.words[arguments.words[:1] == ["--"] :] or (
        [] if isinstance(image, str) else _described(image)["command"]
    )
    if not words:
        arguments.parser.error(f"{arguments.image} has no command of its own: give one")
    command = words[0] if len(words) == 1 else words
    network = parse_network(arguments.parser, arguments.allow_host, None)
    stdin = own_input()
    with Sandbox(image=image, network=network, tier=arguments.tier) as sandbox:
        process = sandbox.spawn(command, stdin=stdin)
        if stdin is None or stdin == PIPE:
            threading.Thread(target=pass_on, args=(process.stdin,), daemon=True).start()
        show(process)
        return process.wait() or 0


def _save(arguments: argparse.Namespace) -> int:
    _find(arguments).to_oci(arguments.path)
    if arguments.json:
        say_json({"path": arguments.path})
    return 0


def _load(arguments: argparse.Namespace) -> int:
    from belljar.api.image import load_image
    from belljar.cli.screen_host import say

    image = load_image(arguments.path, store_of(arguments), arguments.tag, arguments.name)
    if arguments.json:
        say_json(_described(image))
    else:
        say(f"{image.digest}  {image.built.name}".rstrip() + f"  {size_text(image.size)}")
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    from belljar.api.image import remove_images

    removed = remove_images(arguments.images, store_of(arguments))
    if arguments.json:
        say_json(removed)
    return 0
