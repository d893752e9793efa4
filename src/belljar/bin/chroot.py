"""chroot - run a command with another root directory

Usage: chroot [OPTION] NEWROOT [COMMAND [ARG]...]

If no command is given, run '"$SHELL" -i' (default: '/bin/sh -i').
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.quoting import quote, quote_name
from belljar.bin._kit.users import Accounts
from belljar.bin.env import become
from belljar.kernel.process import Process
from belljar.kernel.vfs.credentials import Credentials


@dataclass(frozen=True, slots=True)
class Options:
    groups: str | None = value("--groups", "supplementary groups as g1,g2,..,gN", metavar="G_LIST")
    userspec: str | None = value("--userspec", "the user and group (ID or name) to use", metavar="USER:GROUP")
    skip_chdir: bool = flag("--skip-chdir", "do not change working directory to '/'")


@utility("chroot", Options, order="first-operand-ends", usage_status=125)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    root, *command = operands
    fs = process.fs
    try:
        if options.skip_chdir and fs.resolve(root) != fs.root:
            raise UsageError("option --skip-chdir only permitted if NEWROOT is old '/'")
        fs.chroot(root)
    except SysError as error:
        process.warn(f"cannot change root directory to {quote_name(root)}: {error.reason}")
        return 125
    if not options.skip_chdir:
        fs.chdir("/")
    fs.credentials = identity(process, options)
    if not command:
        command = [process.env.get("SHELL") or "/bin/sh", "-i"]
    return become(process, command, process.env, lambda name, env: f"failed to run command {quote(name, env)}")


def identity(process: Process, options: Options) -> Credentials:
    """Return who runs the command, by the accounts of the new root."""
    accounts, who = Accounts(process), process.fs.credentials
    user, _, group = (options.userspec or "").partition(":")
    uid, gid = who.uid, who.gid
    if user:
        found = accounts.user(user)
        if found is None:
            raise UsageError("invalid user", hint=False)
        uid = found
    if group or user:
        found = accounts.group(group) if group else accounts.login_group(uid)
        if found is None:
            raise UsageError("invalid group" if group else f"no group specified for unknown uid: {uid}", hint=False)
        gid = found
    if options.groups is None:
        return Credentials(uid, gid, frozenset() if user else who.groups)
    groups = set()
    for name in options.groups.split(",") if options.groups else []:
        found = accounts.group(name)
        if found is None:
            raise UsageError(f"invalid group {quote(name, process.env)}", hint=False)
        groups.add(found)
    return Credentials(uid, gid, frozenset(groups))
