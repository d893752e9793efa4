"""sudo - run a command as the sandbox's root, or as another of its users

Usage: sudo [-EHnS] [-u USER] [VAR=VALUE]... COMMAND [ARG]...
       sudo -i | -s [COMMAND [ARG]...]
       sudo -v | -k | -l

No password is asked for: root of a sandbox may do anything to its files, and nothing outside of it.
"""

import re

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.users import Accounts
from belljar.bin.env import become
from belljar.kernel.process import Process
from belljar.kernel.vfs.credentials import Credentials

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_KEPT = ("PATH", "TERM", "LANG", "LC_ALL", "TZ", "COLUMNS", "LINES", "http_proxy", "https_proxy", "no_proxy")


@dataclass(frozen=True, slots=True)
class Options:
    user: str = value("-u", "--user", "run the command as this user", metavar="USER", default="root")
    group: str | None = value("-g", "--group", "run the command with this group", metavar="GROUP")
    environment: bool = flag("-E", "--preserve-env", "preserve the environment")
    home: bool = flag("-H", "--set-home", "set HOME to the home directory of the user")
    login: bool = flag("-i", "--login", "run a login shell as the user")
    shell: bool = flag("-s", "--shell", "run a shell as the user")
    list: bool = flag("-l", "--list", "say what may be run")
    validate: bool = flag("-v", "--validate", "do nothing, successfully")
    reset: bool = flag("-k", "--reset-timestamp", "(has no effect here)")
    never_ask: bool = flag("-n", "--non-interactive", "(nothing is ever asked)")
    stdin: bool = flag("-S", "--stdin", "(no password is read)")
    background: bool = flag("-b", "--background", "(accepted, ignored)")
    prompt: str | None = value("-p", "--prompt", "(no password is asked for)", metavar="PROMPT")


@utility("sudo", Options, order="first-operand-ends")
def main(process: Process, options: Options, operands: list[str]) -> int:
    own = process.fs.credentials
    if options.list:
        process.print(f"User {Accounts(process).user_name(own.uid) or own.uid} may run any command as any user.")
        return 0
    assignments: dict[str, str] = {}
    while operands and _ASSIGNMENT.match(operands[0]):
        name, _, text = operands.pop(0).partition("=")
        assignments[name] = text
    shell = options.login or options.shell
    if not operands and not shell:
        if options.validate or options.reset:
            return 0
        raise UsageError("a command is needed")
    environment = switch_user(process, options.user, options.group)
    if options.environment and not options.login:
        environment = {**process.env, **({"HOME": environment["HOME"]} if options.home else {})}
    environment.update(
        {"SUDO_USER": Accounts(process).user_name(own.uid) or str(own.uid), "SUDO_UID": str(own.uid),
         "SUDO_GID": str(own.gid), "SUDO_COMMAND": " ".join(operands)}
    )  # fmt: skip
    environment.update(assignments)
    if options.login:
        process.fs.chdir(environment["HOME"])
    if shell:
        operands = ["/bin/bash", *(["-c", " ".join(operands)] if operands else [])]
    return become(process, operands, environment, lambda name, _: name)


def switch_user(process: Process, user: str, group: str | None = None) -> dict[str, str]:
    """Make the process another user's; the environment that a program of that user starts with."""
    accounts = Accounts(process)
    uid = accounts.user(user.removeprefix("#"))
    gid = accounts.group(group.removeprefix("#")) if group is not None else None
    if uid is None or (group is not None and gid is None):
        raise UsageError(f"unknown {'user' if uid is None else 'group'} {user if uid is None else group}", hint=False)
    if gid is None:
        gid = accounts.login_group(uid)
    process.fs.credentials = Credentials(uid, uid if gid is None else gid, frozenset(accounts.groups_of(uid)))
    name = accounts.user_name(uid) or str(uid)
    kept = {key: process.env[key] for key in _KEPT if key in process.env}
    return {**kept, "HOME": accounts.home(uid) or "/", "LOGNAME": name, "USER": name, "SHELL": "/bin/bash"}
