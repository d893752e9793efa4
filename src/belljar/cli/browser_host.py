"""`belljar browser`: build the page in which belljar runs, and serve it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from belljar.cli.screen_host import complain, say

if TYPE_CHECKING:
    import argparse

DIRECTORY: Final = "belljar-page"


def add_to(subcommands: Any) -> None:
    parser = subcommands.add_parser(
        "browser",
        help="build a page in which sandboxes run, and serve it",
        description="Sandboxes in a web page, with no server behind it. See docs/browser.md.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    build = actions.add_parser(
        "build",
        help="make a directory of static files",
        description="Make a directory of static files that any web server serves; npm takes it as a package.",
    )
    build.add_argument("-o", "--output", default=DIRECTORY, metavar="DIR", help="where (default %(default)s); replaced")
    build.add_argument(
        "--packages",
        action="append",
        default=[],
        metavar="WHAT",
        help="for guest Python: a directory of wheels, a wheel, or a name that pip knows; may be repeated",
    )
    build.add_argument(
        "--embed",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="pages of this origin may use the sandboxes of this one, by a bridge; may be repeated",
    )
    build.set_defaults(run=_build, makes_files_in=_places)
    serve = actions.add_parser("serve", help="serve such a directory", description="Serve a built page.")
    serve.add_argument("--dir", default=DIRECTORY, metavar="DIR", help="built before (default %(default)s)")
    serve.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="listen here (default %(default)s)")
    serve.add_argument("--port", type=int, default=8080, metavar="N", help="0: any (default %(default)s)")
    serve.set_defaults(run=_serve)


def _places(arguments: argparse.Namespace) -> list[str]:
    from belljar.abi.cache_host import cache_directory

    cache = cache_directory()
    return [str(Path(arguments.output).absolute().parent), *([cache] if cache else [])]


def _build(arguments: argparse.Namespace) -> int:
    from belljar.browser.build_host import build
    from belljar.browser.errors import BuildError
    from belljar.engines.owner.progress_host import steps

    directory = Path(arguments.output)
    try:
        with steps() as hear:
            build(directory, packages=arguments.packages, embedders=arguments.embed, hear=hear)
    except (BuildError, OSError) as error:
        complain(f"belljar browser build: {error}")
        return 1
    first, later = 0, 0
    for path in directory.rglob("*"):
        if path.is_file() and path.suffix not in (".br", ".gz"):
            if path.parent.name == "node":
                later += _smallest(path)
            else:
                first += _smallest(path)
    say(f"{directory}: {first / 1e6:.1f} MB to download, compressed; {later / 1e6:.1f} MB more with the first `node`")
    say(f"try it with: belljar browser serve --dir {directory}")
    return 0


def _smallest(path: Path) -> int:
    copies = [copy for suffix in (".br", ".gz") if (copy := path.with_name(path.name + suffix)).exists()]
    return min(each.stat().st_size for each in (path, *copies))


def _serve(arguments: argparse.Namespace) -> int:
    from belljar.browser.errors import BuildError
    from belljar.browser.serve_host import serve

    try:
        serve(Path(arguments.dir), arguments.host, arguments.port, lambda url: say(f"{url}  (^C ends it)"))
    except KeyboardInterrupt:
        return 0
    except (BuildError, OSError) as error:
        complain(f"belljar browser serve: {error}")
        return 1
    return 0
