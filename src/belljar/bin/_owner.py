"""Changing who owns files: the one walk behind chown and chgrp."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass, replace
from belljar.abi.errors import SysError
from belljar.abi.records import Stat
from belljar.bin._kit import UsageError, choice, flag, value
from belljar.bin._kit.quoting import quote, quote_name
from belljar.bin._kit.users import Accounts
from belljar.bin._root import refuse_root
from belljar.bin._tree import Follow, Problem, Visit, Walk
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class OwnerOptions:
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
    reference: str | None = value("--reference", "use RFILE's owner and group", metavar="RFILE")
    recursive: bool = flag("-R", "--recursive", "operate on files and directories recursively")
    traverse: str = choice(
        {"-H": "operands", "-L": "always", "-P": "never"},
        "with -R, traverse symlinks to directories: -H those given, -L every, -P none",
        default="never",
    )


def reference_or_operand(process: Process, options: OwnerOptions, operands: list[str]) -> Stat | None:
    """The status of --reference's file; None if the first operand names the owner. UsageError if one is missing."""
    if len(operands) < (2 if options.reference is None else 1):
        after = f" after {quote(operands[-1], process.env)}" if operands else ""
        raise UsageError("missing operand" + after)
    if options.reference is None:
        return None
    try:
        return process.fs.stat(options.reference)
    except SysError as error:
        what = f"failed to get attributes of {quote_name(options.reference)}"
        raise UsageError(f"{what}: {error.reason}", hint=False) from None


def change_owners(process: Process, options: OwnerOptions, rules: OwnerRules, paths: list[str]) -> int:
    """Change every path by `rules`, completed by what the options say; the exit status."""
    traverse: Follow = options.traverse  # type: ignore[assignment]
    dereference = options.dereference
    if dereference is None:
        dereference = not options.recursive or traverse != "never"
    elif dereference and options.recursive and traverse == "never":
        raise UsageError("-R --dereference requires either -H or -L", hint=False)
    rules = replace(
        rules,
        recursive=options.recursive,
        dereference=dereference,
        traverse=traverse,
        preserve_root=bool(options.root),
        silent=options.silent,
        say=options.say,
    )
    changer = OwnerChanger(process, rules)
    for path in paths:
        changer.change(path)
    return 1 if changer.failed else 0


@dataclass(frozen=True, slots=True)
class OwnerRules:
    uid: int = -1
    gid: int = -1
    from_uid: int = -1
    from_gid: int = -1
    recursive: bool = False
    dereference: bool = True
    """Change what a symlink leads to, not the link."""
    traverse: Follow = "never"
    preserve_root: bool = False
    silent: bool = False
    say: str = ""
    group_only: bool = False


class OwnerChanger:
    def __init__(self, process: Process, rules: OwnerRules) -> None:
        self._process = process
        self._rules = rules
        self._accounts = Accounts(process)
        self.failed = False

    def change(self, path: str) -> None:
        rules = self._rules
        if rules.recursive and rules.preserve_root and refuse_root(self._process, path):
            self.failed = True
            return
        follow: Follow = "never"
        if rules.recursive:
            follow = rules.traverse
        walk = Walk(self._process, self._problem, follow=follow, max_depth=None if rules.recursive else 0)
        for visit in walk.walk(path):
            if not visit.after:
                self._visit(visit)

    def _visit(self, visit: Visit) -> None:
        fs, rules = self._process.fs, self._rules
        follow = rules.dereference
        try:
            stat = fs.stat(visit.name, follow=follow)
        except SysError as error:
            what = "cannot dereference" if visit.stat.is_symlink else "cannot access"
            self._fail(f"{what} {quote_name(visit.path)}: {error.reason}")
            return
        if rules.from_uid not in (-1, stat.uid) or rules.from_gid not in (-1, stat.gid):
            self._describe(visit.path, stat.uid, stat.gid, changed=False)
            return
        try:
            fs.chown(visit.name, rules.uid, rules.gid, follow=follow)
        except SysError as error:
            what = "group" if rules.group_only else "ownership"
            self._fail(f"changing {what} of {quote_name(visit.path)}: {error.reason}")
            if rules.say == "all":
                self._process.print(
                    f"failed to change {what} of {quote_name(visit.path)}{self._from_to(stat.uid, stat.gid)}"
                )
            return
        changed = rules.uid not in (-1, stat.uid) or rules.gid not in (-1, stat.gid)
        self._describe(visit.path, stat.uid, stat.gid, changed=changed)

    def _describe(self, path: str, uid: int, gid: int, *, changed: bool) -> None:
        rules = self._rules
        if not rules.say or (rules.say == "changes" and not changed):
            return
        what = "group" if rules.group_only else "ownership"
        shown = quote_name(path)
        if changed:
            self._process.print(f"changed {what} of {shown}{self._from_to(uid, gid)}")
            return
        if rules.uid == rules.gid == -1:
            self._process.print(
                f"ownership of {shown} retained" if not rules.group_only else f"group of {shown} retained"
            )
            return
        self._process.print(f"{what} of {shown} retained as {self._pair(uid, gid)}")

    def _from_to(self, uid: int, gid: int) -> str:
        rules = self._rules
        return f" from {self._pair(uid, gid)} to {self._pair(rules.uid, rules.gid)}"

    def _pair(self, uid: int, gid: int) -> str:
        """As names, and only of what is being changed."""
        user = self._accounts.user_name(uid) or str(uid)
        group = self._accounts.group_name(gid) or str(gid)
        if self._rules.uid == -1:
            return group if self._rules.group_only else f":{group}"
        return user if self._rules.gid == -1 else f"{user}:{group}"

    def _problem(self, problem: Problem, path: str, error: SysError) -> None:
        what = "cannot read directory" if problem == "read" else "cannot access"
        if problem != "loop":
            self._fail(f"{what} {quote_name(path)}: {error.reason}")

    def _fail(self, message: str) -> None:
        self.failed = True
        if not self._rules.silent:
            self._process.warn(message)
