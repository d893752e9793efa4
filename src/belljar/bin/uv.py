"""uv - pip, virtual environments and programs with what they need

Usage: uv pip COMMAND [ARG]...
       uv venv [OPTION]... [DIR]
       uv run [--with PACKAGE]... [OPTION]... COMMAND|SCRIPT.py [ARG]...
       uv tool run [--from PACKAGE] COMMAND [ARG]...

pip and python3 of this sandbox under the command line of uv. `uv pip` works in the active environment, else in .venv,
else in the interpreter's own place. `uv run` brings what --with, the script's own header (`# /// script`) and the
project's pyproject.toml ask for.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final

from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, utility
from belljar.kernel.process import Process

_VERSION: Final = "uv 0.9.0"
_IGNORED: Final = frozenset(
    "-q --quiet -v --verbose --no-cache -n --offline --no-progress --native-tls --system --break-system-packages "
    "--no-project --frozen --locked --isolated --no-sync --seed --allow-existing --active --all-extras --no-dev "
    "--managed-python --no-managed-python --refresh".split()
)
_WITH_VALUE: Final = frozenset("-p --python --index-strategy --link-mode --cache-dir --directory --project".split())
_HEADER: Final = re.compile(r"(?ms)^# /// script\s*$\n(.*?)^# ///\s*$")


@utility("uv", usage_status=2)
def main(process: Process, args: list[str]) -> int:
    while args and (args[0] in _IGNORED or args[0] in _WITH_VALUE):
        args = args[2:] if args[0] in _WITH_VALUE else args[1:]
    match args:
        case [] | ["-h" | "--help" | "help", *_]:
            process.stdout.write(main.help().encode())
            return 0
        case ["-V" | "--version" | "version", *_]:
            process.print(_VERSION)
            return 0
        case ["pip", *rest]:
            return run_pip(process, rest)
        case ["venv", *rest]:
            return make_venv(process, rest)
        case ["run", *rest]:
            return run_command(process, rest)
        case ["tool", "run", *rest]:
            return run_tool(process, rest)
        case ["sync", *_]:
            return 0 if project_environment(process, required=True) else 2
        case [name, *_]:
            process.error(f"error: uv {name} is not there: uv pip, venv, run, sync and tool run are\n")
    return 2


def run_pip(process: Process, args: list[str]) -> int:
    """`uv pip`: our pip, in the environment that uv would choose."""
    kept: list[str] = []
    words = iter(args)
    system = "--system" in args
    python: str | None = None
    for word in words:
        name, equals, attached = word.partition("=")
        if name in _WITH_VALUE:
            value = attached if equals else next(words, "")
            python = value if name in ("-p", "--python") and "/" in value else python
        elif word not in _IGNORED or word in ("-q", "--quiet"):
            kept.append(word)
    if not kept:
        raise UsageError("uv pip needs a command: install, uninstall, list, freeze, show, check", hint=False)
    if kept[0] in ("sync", "compile", "tree"):
        process.error(
            f"error: uv pip {kept[0]} is not there: uv pip install -r FILE, uv pip freeze and uv pip list are\n"
        )
        return 2
    if kept[0] == "uninstall" and "-y" not in kept:
        kept.insert(1, "-y")
    root = None if system else find_venv(process)
    if python is not None:
        root = process.absolute(python).rpartition("/bin/")[0] or None
    return process.run([f"{root}/bin/pip" if root else "/usr/bin/pip", *kept]).shell


def find_venv(process: Process) -> str | None:
    """The active environment, or the .venv of this directory or one above."""
    for root in _candidates(process):
        if process.fs.is_file(f"{root}/pyvenv.cfg"):
            return root
    return None


def _candidates(process: Process) -> Iterator[str]:
    if active := process.env.get("VIRTUAL_ENV"):
        yield active
    for folder in _upward(process):
        yield f"{folder}/.venv"


def _upward(process: Process) -> Iterator[str]:
    folder = process.fs.getcwd().rstrip("/")
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def make_venv(process: Process, args: list[str]) -> int:
    """`uv venv`."""
    options: list[str] = []
    folder = ".venv"
    quiet = False
    words = iter(args)
    for word in words:
        name, equals, attached = word.partition("=")
        if name == "--prompt":
            options += ["--prompt", attached if equals else next(words, "")]
        elif word in ("--system-site-packages", "--clear"):
            options.append(word)
        elif name in _WITH_VALUE:
            if not equals:
                next(words, None)
        elif word.startswith("-"):
            quiet = quiet or word in ("-q", "--quiet")
        else:
            folder = word
    if (status := process.run(["/usr/bin/python3", "-m", "venv", *options, folder]).shell) == 0 and not quiet:
        process.error(
            "Using CPython 3.15.0 interpreter at: /usr/bin/python3\n"
            f"Creating virtual environment at: {folder}\nActivate with: source {folder}/bin/activate\n"
        )
    return status


def run_command(process: Process, args: list[str]) -> int:
    """`uv run`: a command in an environment that has what it needs."""
    needs: list[str] = []
    module = script = False
    alone = "--no-project" in args or "--isolated" in args
    while args and args[0].startswith("-") and args[0] != "-":
        word, args = args[0], args[1:]
        name, equals, attached = word.partition("=")
        if word == "--":
            break
        if name in (
            "--with",
            "--with-requirements",
            "--with-editable",
            "--env-file",
            "--extra",
            "--group",
            *_WITH_VALUE,
        ):
            value, args = (attached, args) if equals else (args[0] if args else "", args[1:])
            if name == "--with":
                needs += value.split(",")
            elif name in ("--with-requirements", "--with-editable"):
                needs += ["-r" if name == "--with-requirements" else "-e", value]
        elif word in ("-m", "--module", "-s", "--script"):
            module, script = module or word in ("-m", "--module"), script or word in ("-s", "--script")
            break
        elif word not in _IGNORED:
            raise UsageError(f"unexpected argument '{word}' found", hint=False)
    if not args:
        raise UsageError("uv run needs a command", hint=False)
    is_script = not module and (script or args[0].endswith(".py"))
    header = _script_needs(process, args[0]) if is_script else None
    if header is not None:
        needs += header
    root = None if alone or header is not None else project_environment(process)
    if needs:
        root = _environment_with(process, needs, root)
        if root is None:
            return 2
    python = f"{root}/bin/python3" if root else "/usr/bin/python3"
    if module:
        args = [python, "-m", *args]
    elif is_script or args[0] == "-":
        args = [python, *args]
    elif args[0] in ("python", "python3"):
        args = [python, *args[1:]]
    return _run_in(process, root, args)


def run_tool(process: Process, args: list[str]) -> int:
    """`uv tool run` and `uvx`: a package's command, in an environment of its own."""
    package: str | None = None
    needs: list[str] = []
    while args and args[0].startswith("-"):
        word, args = args[0], args[1:]
        name, equals, attached = word.partition("=")
        if name in ("--from", "--with", *_WITH_VALUE):
            value, args = (attached, args) if equals else (args[0] if args else "", args[1:])
            package = value if name == "--from" else package
            needs += value.split(",") if name == "--with" else []
    if not args:
        raise UsageError("uv tool run needs a command", hint=False)
    command, at, version = args[0].partition("@")
    wanted = package or (f"{command}=={version}" if at and version != "latest" else command)
    root = _environment_with(process, [wanted, *needs], None)
    return 2 if root is None else _run_in(process, root, [command, *args[1:]])


def _run_in(process: Process, root: str | None, args: list[str]) -> int:
    env = dict(process.env)
    if root is not None:
        env |= {"VIRTUAL_ENV": root, "PATH": f"{root}/bin:{env.get('PATH', '/usr/local/bin:/usr/bin:/bin')}"}
    try:
        return process.run(["/usr/bin/env", "--", *args], env=env).shell
    except SysError as error:
        process.error(f"error: Failed to spawn: `{args[0]}`: {error.reason}\n")
        return 2


def _script_needs(process: Process, name: str) -> list[str] | None:
    """Return the dependencies in a script's header; None if it has none."""
    try:
        text = process.read_file(name).decode("utf-8", "replace")
    except SysError:
        return None
    found = _HEADER.search(text)
    if found is None:
        return None
    lines = [line.removeprefix("#").removeprefix(" ") for line in found[1].splitlines()]
    return [str(need) for need in _toml("\n".join(lines), name).get("dependencies", [])]


def _toml(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{name} can't be read: {error}", hint=False) from None


def _environment_with(process: Process, needs: list[str], base: str | None) -> str | None:
    """An environment that has these packages, made if it is not there; with what `base` has, too."""
    key = hashlib.sha256(fsencode("\n".join([base or "", *needs]))).hexdigest()[:16]
    root = f"{process.env.get('HOME', '/tmp')}/.cache/uv/environments/{key}"
    if process.fs.is_file(f"{root}/.ready"):
        return root
    if process.run(["/usr/bin/python3", "-m", "venv", "--clear", "--system-site-packages", root]).shell:
        return None
    if base is not None:
        process.write_file(
            f"{root}/lib/python3.15/site-packages/base.pth", f"{base}/lib/python3.15/site-packages\n".encode()
        )
    if process.run([f"{root}/bin/pip", "install", "-q", *needs]).shell:
        return None
    process.write_file(f"{root}/.ready", b"")
    return root


def project_environment(process: Process, *, required: bool = False) -> str | None:
    """The environment of the project that this directory is in, with what its pyproject.toml asks for."""
    folder = next((each for each in _upward(process) if process.fs.is_file(f"{each}/pyproject.toml")), None)
    if folder is None:
        if required:
            process.error("error: No `pyproject.toml` found in current directory or any parent directory\n")
        return find_venv(process)
    text = process.read_file(f"{folder}/pyproject.toml")
    settings = _toml(text.decode("utf-8", "replace"), "pyproject.toml")
    project = settings.get("project", {})
    root = process.env.get("VIRTUAL_ENV") or f"{folder}/.venv"
    if not project and not required:
        return find_venv(process)
    done = f"{root}/.synced"
    digest = hashlib.sha256(text).hexdigest().encode()
    if process.fs.is_file(done) and process.read_file(done) == digest:
        return root
    if not process.fs.is_file(f"{root}/pyvenv.cfg"):
        make_venv(process, [root])
    needs = [str(need) for need in project.get("dependencies", [])]
    groups = settings.get("dependency-groups", {})
    needs += [str(need) for need in groups.get("dev", []) if isinstance(need, str)]
    if "build-system" in settings:
        needs += ["-e", folder]
    if needs and process.run([f"{root}/bin/pip", "install", "-q", *needs]).shell:
        return None
    process.write_file(done, digest)
    return root
