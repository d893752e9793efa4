"""`git init`: lays out a repository."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.repo import Repository
from belljar.kernel.process import Process

_HINT = """\
hint: Using 'master' as the name for the initial branch. This default branch name
hint: is subject to change. To configure the initial branch name to use in all
hint: of your new repositories, which will suppress this warning, call:
hint: {empty}
hint: \tgit config --global init.defaultBranch <name>
hint: {empty}
hint: Names commonly chosen instead of 'master' are 'main', 'trunk' and
hint: 'development'. The just-created branch can be renamed via this command:
hint: {empty}
hint: \tgit branch -m <name>
"""


@dataclass(frozen=True, slots=True)
class InitOptions:
    quiet: bool = flag("-q", "--quiet", "be quiet")
    bare: bool = flag("--bare", "create a bare repository")
    branch: str | None = value("-b", "--initial-branch", "the initial branch", metavar="NAME")


def init(process: Process, args: list[str], settings: list[tuple[str, str]]) -> int:
    options, operands = read_options(InitOptions, args)
    path = process.absolute(operands[0]) if operands else process.fs.getcwd()
    existed = make_repository(process, path, settings, bare=options.bare, branch=options.branch, quiet=options.quiet)
    if not options.quiet:
        folder = path if options.bare else f"{path.rstrip('/')}/.git"
        verb = "Reinitialized existing" if existed else "Initialized empty"
        process.print(f"{verb} Git repository in {folder}/")
    return 0


def make_repository(
    process: Process, path: str, settings: list[tuple[str, str]], *, bare: bool, branch: str | None, quiet: bool
) -> bool:
    """Lay out a repository; True if there was one."""
    folder = path if bare else f"{path.rstrip('/')}/.git"
    process.fs.makedirs(folder)
    existed = True
    if not process.fs.exists(f"{folder}/HEAD"):
        existed = False
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks", "branches"):
        process.fs.makedirs(f"{folder}/{name}")
    if existed:
        return True
    repo = Repository(process, "" if bare else path, folder, settings)
    first = branch or repo.config("init.defaultBranch")
    if first is None and not quiet:
        process.error(_HINT.format(empty=""))
    name = first or "master"
    process.write_file(f"{folder}/HEAD", fsencode(f"ref: refs/heads/{name}\n"))
    text = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n"
    text += f"\tbare = {'true' if bare else 'false'}\n" + ("" if bare else "\tlogallrefupdates = true\n")
    process.write_file(f"{folder}/config", fsencode(text))
    process.write_file(
        f"{folder}/description", b"Unnamed repository; edit this file 'description' to name the repository.\n"
    )
    process.write_file(f"{folder}/info/exclude", b"# git ls-files --others --exclude-from=.git/info/exclude\n")
    return False
