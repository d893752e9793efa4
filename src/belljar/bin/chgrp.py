"""chgrp - change group ownership

Usage: chgrp [OPTION]... GROUP FILE...
  or:  chgrp [OPTION]... --reference=RFILE FILE...

Change the group of each FILE to GROUP.
"""

from belljar.abi.dataclass import dataclass, replace
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
    root: str = choice({"--preserve-root": "preserve", "--no-preserve-root": ""}, "fail to operate on '/'", default="")
    reference: str | None = value("--reference", "use RFILE's group rather than a GROUP value", metavar="RFILE")
    recursive: bool = flag("-R", "--recursive", "operate on files and directories recursively")
    traverse: str = choice(
        {"-H": "operands", "-L": "always", "-P": "never"},
        "with -R, traverse symlinks to directories: -H those given, -L every, -P none",
        default="never",
    )


@utility("chgrp", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    wanted = 1 if options.reference is not None else 2
    if len(operands) < wanted:
        after = f" after {quote(operands[-1], process.env)}" if operands else ""
        raise UsageError("missing operand" + after)
    if options.reference is not None:
        try:
            gid = process.fs.stat(options.reference).gid
        except SysError as error:
            what = f"failed to get attributes of {quote_name(options.reference)}"
            raise UsageError(f"{what}: {error.reason}", hint=False) from None
    else:
        name, *operands = operands
        found = Accounts(process).group(name) if name else -1
        if found is None:
            raise UsageError(f"invalid group: {quote(name, process.env)}", hint=False)
        gid = found
    traverse: Follow = options.traverse  # type: ignore[assignment]
    rules = OwnerRules(
        gid=gid,
        recursive=options.recursive,
        traverse=traverse,
        preserve_root=bool(options.root),
        silent=options.silent,
        say=options.say,
        group_only=True,
    )
    if options.dereference is None:
        rules = replace(rules, dereference=not options.recursive or traverse != "never")
    else:
        rules = replace(rules, dereference=options.dereference)
    changer = OwnerChanger(process, rules)
    for path in operands:
        changer.change(path)
    return 1 if changer.failed else 0
