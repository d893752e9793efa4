"""Hooks: programs of the user's that git runs before and after what it does."""

from __future__ import annotations

from belljar.abi.errno import ENOEXEC
from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY
from belljar.abi.paths import fsencode
from belljar.bin.git.repository.pathspec import relative
from belljar.bin.git.repository.repo import Repository
from belljar.kernel.process import Process
from belljar.kernel.vfs.openfile import OpenFile

_IGNORED = """\
hint: The '{path}' hook was ignored because it's not set as executable.
hint: You can disable this warning with `git config advice.ignoredHook false`.
"""


def run_hook(
    repo: Repository, name: str, *args: str, given: bytes = b"", committing: bool = False, to_stdout: bool = False
) -> int | None:
    """Run a hook at the top of the work tree; its status, None if there is none.

    `given` is its input, and what it prints goes to standard error unless `to_stdout`. `committing`: it may look at
    the index that is to be committed, and nobody is to be asked for a message.
    """
    process = repo.process
    path = hook_path(repo, name)
    home = process.fs.cwd
    env = dict(process.env)
    if committing:
        inside = relative(repo, ".") if repo.work else ""
        env |= {
            "GIT_INDEX_FILE": _shown(repo, "index"),
            "GIT_EDITOR": ":",
            "GIT_PREFIX": f"{inside}/" if inside else "",
        }
    process.fs.chdir(repo.work or repo.git)
    try:
        if (stat := process.fs.try_stat(path)) is None:
            return None
        if not stat.mode & 0o111:
            if repo.config_bool("advice.ignoredHook", True):
                process.stdout.flush()
                process.error(_IGNORED.format(path=path))
            return None
        return _run(process, [path, *args], env, _input(repo, given), to_stdout=to_stdout)
    finally:
        process.fs.cwd = home


def hook_path(repo: Repository, name: str) -> str:
    """Return where a hook is, from the top of the work tree."""
    folder = repo.config("core.hooksPath")
    if folder:
        return f"{folder.rstrip('/')}/{name}"
    return _shown(repo, f"hooks/{name}") if repo.common == repo.git else f"{repo.common}/hooks/{name}"


def _shown(repo: Repository, name: str) -> str:
    """A file of the repository's, as git names it to hooks."""
    return f".git/{name}" if repo.git == f"{repo.work.rstrip('/')}/.git" else f"{repo.git}/{name}"


def _input(repo: Repository, given: bytes) -> int:
    process = repo.process
    if not given:
        return process.open("/dev/null", O_RDONLY)
    path = f"{repo.git}/HOOK_INPUT"
    process.write_file(path, given)
    reading = process.open(path, O_RDONLY)
    process.fs.unlink(path)
    return reading


def _run(process: Process, argv: list[str], env: dict[str, str], reading: int, *, to_stdout: bool) -> int:
    try:
        child = _spawn(process, argv, env, process.fds[reading], None if to_stdout else process.fds[2], None)
        return process.wait_for(child).shell
    except SysError as error:
        process.error(f"error: cannot run {argv[0]}: {error.reason}\n")
        return 1
    finally:
        process.close(reading)


def run_server_hook(repo: Repository, name: str, *args: str, given: bytes = b"") -> tuple[int | None, bytes]:
    """Run a hook of a repository that is pushed to, in its folder; its status, None if there is none, and its words."""
    process = repo.process
    path = hook_path(repo, name)
    home = process.fs.cwd
    process.fs.chdir(repo.git)
    reading, writing = process.pipe(cloexec=True)
    said: list[bytes] = []
    try:
        try:
            if not process.fs.stat(path).mode & 0o111:
                return None, b""
        except SysError:
            return None, b""
        env = {**process.env, "GIT_DIR": "."}
        stdin, out = _input(repo, given), process.fds[writing]
        try:
            child = _spawn(process, [path, *args], env, process.fds[stdin], out, out)
        except SysError as error:
            return 1, f"error: cannot run {path}: {error.reason}\n".encode()
        finally:
            process.close(stdin)
        process.close(writing)
        writing = -1
        while data := process.read(reading):
            process.budget.charge_size(len(data))
            said.append(data)
        return process.wait_for(child).shell, b"".join(said)
    finally:
        process.fs.cwd = home
        process.close(reading)
        if writing >= 0:
            process.close(writing)


def _spawn(
    process: Process,
    argv: list[str],
    env: dict[str, str],
    stdin: OpenFile,
    stdout: OpenFile | None,
    stderr: OpenFile | None,
) -> Process:
    process.stdout.flush()
    argv[0] = argv[0] if "/" in argv[0] else f"./{argv[0]}"
    try:
        return process.spawn(argv, env=env, stdin=stdin, stdout=stdout, stderr=stderr)
    except SysError as error:
        if error.errno != ENOEXEC:
            raise
        return process.spawn(["/bin/sh", *argv], env=env, stdin=stdin, stdout=stdout, stderr=stderr)


def edit_by_hook(repo: Repository, name: str, file: str, text: str, *args: str) -> str | None:
    """Let a hook edit a message in a file of the repository; None if it fails."""
    path = f"{repo.git}/{file}"
    repo.process.write_file(path, fsencode(text))
    status = run_hook(repo, name, _shown(repo, file), *args, committing=True)
    if status is None:
        return text
    return None if status else repo.process.read_file(path).decode("utf-8", "surrogateescape")


def tell_checkout(repo: Repository, old: bytes, new: bytes, *, files: bool = False) -> int:
    """The post-checkout hook: HEAD was one commit and is another, or single `files` came back; the command's status."""
    return int(bool(run_hook(repo, "post-checkout", old.decode(), new.decode(), "0" if files else "1")))
