"""git - the stupid content tracker

Usage: git [-C PATH] [-c NAME=VALUE] [--git-dir=PATH] [--no-pager] COMMAND [ARG]...

Commands: init clone add rm mv status diff log show commit branch checkout switch restore merge rebase reset tag stash
blame grep hook rev-parse ls-files ls-remote remote fetch pull push config apply am format-patch cherry cherry-pick
revert clean reflog bisect archive describe name-rev shortlog whatchanged rev-list merge-base notes version worktree
bundle range-diff sparse-checkout help; for scripts cat-file ls-tree mktree read-tree write-tree commit-tree merge-tree
hash-object update-index update-ref symbolic-ref show-ref for-each-ref check-ref-format check-attr check-ignore
diff-tree diff-index diff-files count-objects credential fsck gc var.

Repositories are in the sandbox's files, in git's own format; remotes are paths there, or http(s) URLs that its network
policy allows.
"""

from __future__ import annotations

from collections.abc import Callable

from belljar.abi.install import install_hint
from belljar.bin._kit import utility
from belljar.kernel.process import Process

run: Callable[[Process, list[str], str], int] | None
try:
    from belljar.bin.git.run import run
except ImportError as error:
    if (error.name or "").partition(".")[0] != "dulwich":
        raise
    run = None


@utility("git", usage_status=129)
def main(process: Process, args: list[str]) -> int:
    if run is None:
        process.error(f"git: the dulwich package is not installed on the host; {install_hint('git')}\n")
        return 127
    return run(process, args, main.help().replace("Usage:", "usage:", 1))
