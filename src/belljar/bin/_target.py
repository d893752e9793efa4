"""Where cp, mv, ln and install put things: `SOURCE DEST`, `SOURCE... DIRECTORY`, `-t DIRECTORY SOURCE...`."""

from __future__ import annotations

from belljar.abi.errors import SysError
from belljar.abi.paths import basename
from belljar.bin._kit import UsageError
from belljar.bin._kit.quoting import quote_name
from belljar.kernel.process import Process


def split_operands(
    process: Process,
    operands: list[str],
    *,
    into: str | None,
    whole: bool,
    follow: bool = True,
    access: str = "target directory",
) -> tuple[list[str], str | None]:
    """The sources, and the directory they go into; None if the one source becomes the last operand itself.

    `into` is -t's directory, `whole` is -T; with `follow` off a symlink to a directory is none.
    """
    if into is not None and whole:
        raise UsageError("cannot combine --target-directory (-t) and --no-target-directory (-T)", hint=False)
    if not operands:
        raise UsageError("missing file operand")
    if into is not None:
        try:
            found = process.fs.stat(into).is_dir
        except SysError as error:
            raise UsageError(f"{access} {quote_name(into)}: {error.reason}", hint=False) from None
        if not found:
            raise UsageError(f"{access} {quote_name(into)}: Not a directory", hint=False)
        return operands, into
    if len(operands) == 1:
        raise UsageError(f"missing destination file operand after {quote_name(operands[0])}")
    if whole:
        if len(operands) > 2:
            raise UsageError(f"extra operand {quote_name(operands[2])}")
        return operands[:1], None
    last = operands[-1]
    reason = "Not a directory"
    try:
        if process.fs.stat(last, follow=follow or last.endswith("/")).is_dir:
            return operands[:-1], last
    except SysError as error:
        reason = error.reason
    if len(operands) > 2:
        raise UsageError(f"target {quote_name(last)}: {reason}", hint=False)
    return operands[:1], None


def inside(directory: str, source: str) -> str:
    """The path of a source's name in a directory."""
    name = basename(source.rstrip("/") or source)
    if name in ("..", "/"):
        name = "." if name == ".." else ""
    return f"{directory}{'' if directory.endswith('/') else '/'}{name}"
