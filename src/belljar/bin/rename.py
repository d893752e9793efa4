"""rename - rename files

Usage: rename [OPTION]... EXPRESSION REPLACEMENT FILE...
       rename [OPTION]... 's/REGEX/REPLACEMENT/FLAGS' FILE...

In the first form replace the first occurrence of EXPRESSION in each FILE by REPLACEMENT, as util-linux does. The second
form takes what perl's rename is mostly used for: s/// with the flags g and i, and y/// or tr///.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, utility
from belljar.kernel.process import Process

_SUBSTITUTION = re.compile(r"s([/|#,!@])((?:\\.|(?!\1).)*)\1((?:\\.|(?!\1).)*)\1([gi]*);?")
_TRANSLATION = re.compile(r"(?:y|tr)([/|#,!@])((?:\\.|(?!\1).)*)\1((?:\\.|(?!\1).)*)\1;?")


@dataclass(frozen=True, slots=True)
class Options:
    verbose: bool = flag("-v", "--verbose", "explain what is being done")
    dry_run: bool = flag("-n", "--no-act", "do not make any changes, but show them")
    force: bool = flag("-f", "--force", "overwrite existing files")
    keep: bool = flag("-o", "--no-overwrite", "don't overwrite existing files")
    last: bool = flag("-l", "--last", "replace only the last occurrence")
    all: bool = flag("-a", "--all", "replace all occurrences")


@utility("rename", Options, order="first-operand-ends")
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) < 2:
        raise UsageError("not enough arguments")
    change = _expression(operands[0])
    perl = change is not None
    if change is None:
        if len(operands) < 3:
            raise UsageError("not enough arguments")
        change = _plain(options, operands[0], operands[1])
    status = 0
    for path in operands[1:] if perl else operands[2:]:
        process.budget.charge(len(path) // 16 + 1)
        directory, slash, name = path.rpartition("/")
        target = change(path) if perl else directory + slash + change(name)
        if target != path and not _move(process, options, path, target, careful=perl and not options.force):
            status = 1
    return status


def _move(process: Process, options: Options, path: str, target: str, *, careful: bool) -> bool:
    if careful or options.keep:
        try:
            process.fs.stat(target, follow=False)
        except SysError:
            pass
        else:
            if careful:
                process.warn(f"{path} not renamed: {target} already exists")
            return not careful
    try:
        if not options.dry_run:
            process.fs.rename(path, target)
    except SysError as error:
        process.warn(f"{path}: rename to {target} failed: {error.reason}")
        return False
    if options.verbose or options.dry_run:
        process.print(f"`{path}' -> `{target}'")
    return True


def _plain(options: Options, old: str, new: str) -> Callable[[str], str]:
    if options.all and old:
        return lambda name: name.replace(old, new)
    if options.last:
        return lambda name: new.join(name.rsplit(old, 1)) if old and old in name else name
    return lambda name: name.replace(old, new, 1)


def _expression(text: str) -> Callable[[str], str] | None:
    """Compile perl's s/// or y/// to a function of a name; None if the text is neither."""
    if found := _SUBSTITUTION.fullmatch(text):
        _, pattern, replacement, flags = found.groups()
        try:
            regex = re.compile(pattern, re.I if "i" in flags else 0)
            template = re.sub(r"\$\{?(\d+)\}?|\$&", lambda m: rf"\g<{m[1] or 0}>", replacement)
            regex.sub(template, "")
        except (re.error, IndexError) as error:
            raise UsageError(f"{text}: {error}", hint=False) from None
        count = 0 if "g" in flags else 1
        return lambda name: regex.sub(template, name, count=count)
    if found := _TRANSLATION.fullmatch(text):
        old, new = _characters(found[2]), _characters(found[3])
        table = (
            {ord(char): new[min(index, len(new) - 1)] for index, char in reversed(list(enumerate(old)))} if new else {}
        )
        return lambda name: name.translate(table)
    return None


def _characters(text: str) -> str:
    """A set of tr's with its ranges spelled out."""
    return re.sub(r"(.)-(.)", lambda m: "".join(map(chr, range(ord(m[1]), ord(m[2]) + 1))), text)
