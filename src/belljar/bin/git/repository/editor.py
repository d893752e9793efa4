"""The user's editor, for messages and lists."""

from __future__ import annotations

from belljar.abi.paths import fsencode
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import text_of

REMARKS = "\n# Please enter the commit message for your changes.\n"
"""Comment lines below a message in the editor."""


def edit_message(repo: Repository, initial: str = REMARKS) -> str:
    """Let the user edit a message; return it without the comment lines."""
    path = f"{repo.git}/COMMIT_EDITMSG"
    repo.process.write_file(path, fsencode(initial))
    try:
        run_editor(repo, path)
    except GitError as error:
        advice = "\nPlease supply the message using either -m or -F option."
        raise GitError(error.message + advice, error.status, error.prefix) from None
    return "\n".join(line for line in text_of(repo.process.read_file(path)).split("\n") if not line.startswith("#"))


def run_editor(repo: Repository, path: str, editor: str | None = None) -> None:
    """Have a file edited, by this program or the one that the environment and the settings name."""
    env = repo.process.env
    editor = editor or env.get("GIT_EDITOR") or repo.config("core.editor") or env.get("VISUAL") or env.get("EDITOR")
    if not editor:
        raise GitError("Terminal is dumb, but EDITOR unset", 1, "error: ")
    repo.process.stdout.flush()
    if editor == ":":
        return
    if repo.process.run(["/bin/sh", "-c", f'{editor} "$@"', editor, path]).shell:
        raise GitError(f"There was a problem with the editor '{editor}'.", 1, "error: ")
