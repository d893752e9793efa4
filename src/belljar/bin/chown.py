"""chown - change file owner and group

Usage: chown [OPTION]... [OWNER][:[GROUP]] FILE...
  or:  chown [OPTION]... --reference=RFILE FILE...

Change the owner and/or group of each FILE to OWNER and/or GROUP.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.bin._kit.quoting import quote, quote_name
from belljar.bin._kit.users import Accounts
from belljar.bin._owner import OwnerChanger, OwnerRules
from belljar.bin._tree import Follow
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    say: str = choice(
        {"-c": "changes", "--changes": "changes", "-v": "all", "--verbose": "all"},
        "-c: report only when a change is made; -v: output a diagnostic for every file processed",
        default="",
    )
    silent: bool = flag("-f", "--silent", "--quiet", "suppress most error messages")
    dereference: bool | None = choice(
        {"--dereference": True, "-h": False, "--no-dereference": False},
        "affect the referent of each symbolic link (this is the default), or (-h) the link itself",
    )
    from_owner: str | None = value(
        "--from", "change only if the current owner and/or group match", metavar="CURRENT_OWNER:CURRENT_GROUP"
    )
    root: str = choice({"--preserve-root": "preserve", "--no-preserve-root": ""}, "fail to operate on '/'", default="")
    reference: str | None = value("--reference", "use RFILE's owner and group", metavar="RFILE")
    recursive: bool = flag("-R", "--recursive", "operate on files and directories recursively")
    traverse: str = choice(
        {"-H": "operands", "-L": "always", "-P": "never"},
        "with -R, traverse symlinks to directories: -H those given, -L every, -P none",
        default="never",
    )


@utility("chown", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    wanted = 1 if options.reference is not None else 2
    if len(operands) < wanted:
        after = f" after {quote(operands[-1], process.env)}" if operands else ""
        raise UsageError("missing operand" + after)
    if options.reference is not None:
        uid, gid = _reference(process, options.reference)
    else:
        uid, gid = parse_owner(process, operands[0], "user")
        operands = operands[1:]
    from_uid, from_gid = parse_owner(process, options.from_owner, "user") if options.from_owner else (-1, -1)
    changer = OwnerChanger(process, _rules(options, uid, gid, from_uid, from_gid))
    for path in operands:
        changer.change(path)
    return 1 if changer.failed else 0


def _rules(options: Options, uid: int, gid: int, from_uid: int, from_gid: int) -> OwnerRules:
    traverse: Follow = options.traverse  # type: ignore[assignment]
    dereference = options.dereference
    if dereference is None:
        dereference = not options.recursive or traverse != "never"
    elif dereference and options.recursive and traverse == "never":
        raise UsageError("-R --dereference requires either -H or -L", hint=False)
    return OwnerRules(
        uid,
        gid,
        from_uid,
        from_gid,
        recursive=options.recursive,
        dereference=dereference,
        traverse=traverse,
        preserve_root=bool(options.root),
        silent=options.silent,
        say=options.say,
    )


def _reference(process: Process, path: str) -> tuple[int, int]:
    try:
        stat = process.fs.stat(path)
    except SysError as error:
        what = f"failed to get attributes of {quote_name(path)}"
        raise UsageError(f"{what}: {error.reason}", hint=False) from None
    return stat.uid, stat.gid


def parse_owner(process: Process, text: str, kind: str) -> tuple[int, int]:
    """The numbers of `user:group`, `user`, `:group`, `user:` (with that user's group); -1 for what isn't named."""
    accounts = Accounts(process)
    user, colon, group = text.partition(":")
    if not colon and "." in text and accounts.user(text) is None:
        user, colon, group = text.partition(".")
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
