"""chown - change file owner and group

Usage: chown [OPTION]... [OWNER][:[GROUP]] FILE...
  or:  chown [OPTION]... --reference=RFILE FILE...

Change the owner and/or group of each FILE to OWNER and/or GROUP.
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, utility, value
from belljar.bin._kit.quoting import quote
from belljar.bin._kit.users import Accounts
from belljar.bin._owner import OwnerOptions, OwnerRules, change_owners, reference_or_operand
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options(OwnerOptions):
    from_owner: str | None = value(
        "--from", "change only if the current owner and/or group match", metavar="CURRENT_OWNER:CURRENT_GROUP"
    )


@utility("chown", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    model = reference_or_operand(process, options, operands)
    if model is not None:
        uid, gid = model.uid, model.gid
    else:
        uid, gid = parse_owner(process, operands[0], "user")
        operands = operands[1:]
    from_uid, from_gid = parse_owner(process, options.from_owner, "user") if options.from_owner else (-1, -1)
    return change_owners(process, options, OwnerRules(uid, gid, from_uid, from_gid), operands)


def parse_owner(process: Process, text: str, kind: str) -> tuple[int, int]:
    """The numbers of `user:group`, `user`, `:group`, `user:` (with that user's group); -1 for what isn't named."""
    accounts = Accounts(process)
    user, colon, group = text.partition(":")
    if not colon and "." in text and accounts.user(text) is None:
        user, colon, group = text.partition(".")
        if accounts.user(user) is not None:
            process.warn(f"warning: '.' should be ':': {quote(text, process.env)}")
    uid = gid = -1
    if user:
        found = accounts.user(user)
        if found is None:
            raise UsageError(f"invalid {kind}: {quote(text, process.env)}", hint=False)
        uid = found
        if colon and not group:
            login = accounts.login_group(uid)
            if login is None:
                raise UsageError(f"invalid spec: {quote(text, process.env)}", hint=False)
            gid = login
    if group:
        found = accounts.group(group)
        if found is None:
            raise UsageError(f"invalid group: {quote(text, process.env)}", hint=False)
        gid = found
    return uid, gid
