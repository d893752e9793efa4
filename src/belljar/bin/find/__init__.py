"""find - search for files in a directory hierarchy

Usage: find [-H] [-L] [-P] [path...] [expression]

Default path is the current directory; default expression is -print. Expression may consist of: operators, options,
tests, and actions.

Operators (decreasing precedence; -and is implicit where no others are given):
  ( EXPR )   ! EXPR   -not EXPR   EXPR1 -a EXPR2   EXPR1 -and EXPR2   EXPR1 -o EXPR2   EXPR1 -or EXPR2   EXPR1 , EXPR2
Options: -daystart -follow -regextype -depth -maxdepth LEVELS -mindepth LEVELS -mount -xdev -files0-from FILE -warn
Tests (N can be +N or -N or N): -amin N -anewer FILE -atime N -cmin N -cnewer FILE -ctime N -empty -executable -false
  -fstype TYPE -gid N -group NAME -ilname PATTERN -iname PATTERN -inum N -ipath PATTERN -iregex PATTERN -links N
  -lname PATTERN -mmin N -mtime N -name PATTERN -newer FILE -newerXY REFERENCE -nogroup -nouser -path PATTERN
  -perm [-/]MODE -readable -regex PATTERN -samefile FILE -size N[bcwkMG] -true -type [bcdpfls] -uid N -used N
  -user NAME -wholename PATTERN -writable -xtype [bcdpfls]
Actions: -delete -exec COMMAND ; -exec COMMAND {} + -execdir COMMAND ; -fls FILE -fprint FILE -fprint0 FILE
  -fprintf FILE FORMAT -ls -ok COMMAND ; -okdir COMMAND ; -print -print0 -printf FORMAT -prune -quit
"""

from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.files0 import files0_names
from belljar.bin._kit.program import version
from belljar.bin._kit.quoting import quote
from belljar.bin._tree import Problem, Walk
from belljar.bin.find.parse import Parser, split_args
from belljar.bin.find.search import Matcher, Quit, Search
from belljar.kernel.process import Process


@utility("find")
def main(process: Process, args: list[str]) -> int:
    if any(arg in ("-help", "--help") for arg in args[:1]):
        process.print(main.help().rstrip())
        return 0
    if any(arg in ("-version", "--version") for arg in args):
        process.print(version("find"))
        return 0
    try:
        leading, paths, expression = split_args(process, args)
        search = Search(process, follow=leading)
        matches = Parser(search, expression).parse()
    except UsageError as error:
        raise UsageError(str(error), hint=error.hint and "-D option" in str(error)) from None
    if search.files0 is not None:
        if paths:
            raise UsageError("file operands cannot be combined with -files0-from", hint=False)
        paths = files0_names(process, search.files0) or []
    elif not paths:
        paths = ["."]
    home = process.fs.cwd
    try:
        walk_all(search, paths, matches)
    except Quit:
        pass
    finally:
        process.fs.cwd = home
    search.finish()
    return search.status


def walk_all(search: Search, paths: list[str], matches: Matcher) -> None:
    process = search.process

    def report(problem: Problem, path: str, error: SysError) -> None:
        shown = quote(path, process.env)
        if problem == "loop":
            search.fail(f"File system loop detected; {shown} is part of the same file system loop as one above it.")
        else:
            search.fail(f"{shown}: {error.reason}")

    walk = Walk(
        process,
        report,
        follow=search.follow,
        max_depth=search.max_depth,
        one_file_system=search.one_file_system,
    )
    least, late = search.min_depth, search.contents_first
    for path in paths:
        search.start = path
        for visit in walk.walk(path):
            if visit.depth < least:
                continue
            if visit.stat.is_dir and visit.after is not late:
                continue
            matches(visit)
