"""patch - apply a diff file to an original

Usage: patch [OPTION]... [ORIGFILE [PATCHFILE]]

Take a patch file containing a difference listing produced by diff, and apply it to one or more original files. With no
PATCHFILE, read it from standard input.
"""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.bin.patch.apply import Applier, Outcome
from belljar.bin.patch.parse import FilePatch, Hunk, Malformed, Reader
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    strip: str | None = value("-p", "--strip", "strip NUM leading components from file names", metavar="NUM")
    fuzz: str | None = value("-F", "--fuzz", "set the fuzz factor to LINES for inexact matching", metavar="LINES")
    loose: bool = flag("-l", "--ignore-whitespace", "ignore white space changes between patch and input")
    style: str = choice({"-c": "context", "--context": "context", "-e": "ed", "--ed": "ed", "-n": "normal",
                         "--normal": "normal", "-u": "unified", "--unified": "unified"},
                        "interpret the patch as a context, ed, normal or unified difference", "")  # fmt: skip
    forward: bool = flag("-N", "--forward", "ignore patches that appear to be reversed or already applied")
    reverse: bool = flag("-R", "--reverse", "assume patches were created with old and new files swapped")
    input: str | None = value("-i", "--input", "read patch from PATCHFILE instead of stdin", metavar="PATCHFILE")
    output: str | None = value("-o", "--output", "output patched files to FILE", metavar="FILE")
    reject: str | None = value("-r", "--reject-file", "output rejects to FILE", metavar="FILE")
    ifdef: str | None = value("-D", "--ifdef", "make merged if-then-else output using NAME", metavar="NAME")
    remove_empty: bool = flag("-E", "--remove-empty-files", "remove output files that are empty after patching")
    utc: bool = flag("-Z", "--set-utc", "set times of patched files (ignored)")
    times: bool = flag("-T", "--set-time", "likewise, assuming local time (ignored)")
    batch: bool = flag("-t", "--batch", "ask no questions; skip bad-Prereq patches; assume reversed")
    force: bool = flag("-f", "--force", "like -t, but assume patches are not reversed")
    silent: bool = flag("-s", "--quiet", "--silent", "work silently unless an error occurs")
    verbose: bool = flag("--verbose", "output extra information about the work being done")
    dry_run: bool = flag("--dry-run", "do not actually change any files; just print what would happen")
    posix: bool = flag("--posix", "conform to the POSIX standard")
    directory: str | None = value("-d", "--directory", "change the working directory to DIR first", metavar="DIR")
    binary: bool = flag("--binary", "read and write data in binary mode")
    backup: bool = flag("-b", "--backup", "back up the original contents of each file")
    mismatch: bool | None = choice({"--backup-if-mismatch": True, "--no-backup-if-mismatch": False},
                                   "back up if the patch does not match exactly, or not", None)  # fmt: skip
    suffix: str = value("-z", "--suffix", "append SUFFIX to backup file names", metavar="SUFFIX", default=".orig")
    prefix: str = value("-B", "--prefix", "prepend PREFIX to backup file names", metavar="PREFIX", default="")
    version_control: str | None = value("-V", "--version-control", "backup style", metavar="STYLE")
    get: str | None = value("-g", "--get", "get files from RCS etc. (ignored)", metavar="NUM")
    reject_format: str | None = value("--reject-format", "create 'context' or 'unified' rejects", metavar="FORMAT")
    read_only: str | None = value("--read-only", "how to handle read-only input files", metavar="BEHAVIOR")
    follow: bool = flag("--follow-symlinks", "follow symbolic links")


class Fatal(Exception):
    """An error that ends the program."""


@utility("patch", Options, usage_status=2, named_hint=True)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) > 2:
        raise UsageError(f"{operands[2]}: extra operand")
    strip = _number(options.strip, "strip count")
    fuzz = _number(options.fuzz, "fuzz factor")
    if options.style == "ed":
        raise UsageError("**** ed scripts are not run here; make a unified diff (diff -u)", hint=False)
    if options.directory is not None:
        try:
            process.fs.chdir(options.directory)
        except SysError as error:
            raise UsageError(
                f"**** Can't change to directory {options.directory} : {error.reason}", hint=False
            ) from error
    source = operands[1] if len(operands) > 1 else options.input or "-"
    try:
        data = process.read_file(source)
    except SysError as error:
        raise UsageError(f"**** Can't open patch file {source} : {error.reason}", hint=False) from error
    session = Patching(process, options, strip, 2 if fuzz is None else fuzz, operands[0] if operands else None)
    try:
        if not options.binary and re.search(rb"^(?:--- |\*\*\* )[^\n]*\r\n", data, re.M):
            process.print("(Stripping trailing CRs from patch; use --binary to disable.)")
            data = data.replace(b"\r\n", b"\n")
        reader = Reader(data, process.budget.charge, options.style)
        patches = reader.read()
        if not patches and data:
            raise Fatal("Only garbage was found in the patch input.")
        for patch in patches:
            session.patch(patch)
    except (Malformed, Fatal) as error:
        process.stdout.flush()
        process.warn(f"**** {str(error).removesuffix(chr(10))}" + ("\n" if str(error).endswith("\n") else ""))
        return 2
    return session.status


def _number(text: str | None, what: str) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"**** {what} {text} is not a number", hint=False)
    return int(text[:9])


class Patching:
    """One run over all the files a patch names."""

    def __init__(self, process: Process, options: Options, strip: int | None, fuzz: int, given: str | None) -> None:
        self.process = process
        self.options = options
        self.strip = strip
        self.fuzz = fuzz
        self.given = given
        self.status = 0
        self.backed_up: set[str] = set()

    def say(self, text: str) -> None:
        self.process.print(text)

    def patch(self, patch: FilePatch) -> None:
        if self.options.reverse:
            patch.turn_round()
        name = self.given or self._find(patch)
        if name is None:
            self._not_found(patch)
            return
        try:
            original: bytes | None = self.process.read_file(name)
        except SysError as error:
            if error.name != "ENOENT":
                raise Fatal(f"Can't open file {name} : {error.reason}") from error
            original = None
        if original is None and patch.hunks and not patch.starts_empty:
            self._not_found(patch)
            return
        if not self.options.silent:
            self._announce(patch, name)
        self._apply(patch, name, original)

    def _announce(self, patch: FilePatch, name: str) -> None:
        verb = "checking" if self.options.dry_run else "patching"
        tail = ""
        target = self._git_target(patch) if patch.rename_to else None
        if self.options.output is not None and self.options.output != "-":
            self.say(f"{verb} file {self.options.output} (read from {name})")
            return
        if target and target != name:
            tail = f" ({'copied' if patch.copy else 'renamed'} from {name})"
            name = target
        if self.options.output != "-":
            self.say(f"{verb} file {name}{tail}")

    # Names.

    def _stripped(self, name: str | None) -> str | None:
        if name is None:
            return None
        if self.strip is None:
            return name.rpartition("/")[2] or name
        rest = name
        for _ in range(self.strip):
            head, slash, tail = rest.partition("/")
            if not slash:
                return None
            rest = tail.lstrip("/")
            del head
        return rest

    def _find(self, patch: FilePatch) -> str | None:
        if patch.rename_from:
            strip = max(0, (self.strip or 0) - 1)
            return patch.rename_from.split("/", strip)[-1] if self.strip else patch.rename_from.rpartition("/")[2]
        names = [n for n in map(self._stripped, (patch.old_name, patch.new_name, patch.index_name)) if n]
        for name in names:
            if name.startswith("/") or ".." in name.split("/"):
                self.say(f"Ignoring potentially dangerous file name {name}")
        names = [n for n in names if not n.startswith("/") and ".." not in n.split("/")]
        existing = [name for name in names if self.process.fs.exists(name)]
        if existing:
            return min(existing, key=lambda n: (n.count("/"), len(n.rpartition("/")[2]), len(n)))
        if patch.starts_empty:
            return min(names, key=lambda n: (n.count("/"), len(n)), default=None)
        return None

    def _not_found(self, patch: FilePatch) -> None:
        self.say(f"can't find file to patch at input line {patch.at + 1}")
        wrong = "Perhaps you should have used the -p or --strip option?"
        if self.strip is not None:
            wrong = "Perhaps you used the wrong -p or --strip option?"
        self.say(wrong)
        self.say("The text leading up to this was:\n--------------------------")
        for line in patch.leading:
            self.process.stdout.write(b"|" + line)
        self.say("--------------------------")
        if not (self.options.batch or self.options.force):
            self.say("File to patch: \nSkip this patch? [y] \nSkipping patch.")
        else:
            self.say("No file to patch.  Skipping patch.")
        self._count(len(patch.hunks), len(patch.hunks), "ignored", None)
        self.status = 1

    # Applying.

    def _apply(self, patch: FilePatch, name: str, original: bytes | None) -> None:
        lines = _lines(original or b"")
        if patch.creates and original and not self.options.reverse and patch.hunks:
            self._exists_already(patch, name, lines)
            return
        outcome = self._try(lines, patch.hunks)
        if patch.hunks and self._looks_reversed(lines, patch.hunks, outcome):
            if self._turn(patch, name, lines):
                outcome = self._try(lines, patch.hunks)
            else:
                return
        self._report(outcome)
        result = b"".join(outcome.lines)
        self._write(patch, name, original, result, outcome)
        if outcome.failed:
            self.status = 1
            self._rejects(patch, name, [hunk for hunk, _ in outcome.failed], "FAILED")

    def _try(self, lines: list[bytes], hunks: list[Hunk]) -> Outcome:
        self.process.budget.charge(len(lines) // 16 + 1)
        charge, options = self.process.budget.charge, self.options
        return Applier(lines, self.fuzz, charge, options.loose, lenient=not options.posix).apply(hunks)

    def _looks_reversed(self, lines: list[bytes], hunks: list[Hunk], outcome: Outcome) -> bool:
        """Whether the first hunk doesn't fit, but fits reversed."""
        if not outcome.failed or outcome.failed[0][0] is not hunks[0]:
            return False
        turned = hunks[0].reversed()
        if not turned.old:
            return False
        return not self._try(lines, [turned]).failed

    def _turn(self, patch: FilePatch, name: str, lines: list[bytes]) -> bool:
        """Whether to go on, with the patch turned round."""
        options = self.options
        what = "Unreversed patch detected!" if options.reverse else "Reversed (or previously applied) patch detected!"
        ask = "Ignore -R?" if options.reverse else "Assume -R?"
        if options.force:
            return True
        if options.batch:
            self.say(f"{what}  {'Ignoring' if options.reverse else 'Assuming'} -R.")
            patch.turn_round()
            return True
        if options.forward:
            self.say(f"{what}  Skipping patch.")
        else:
            self.say(f"{what}  {ask} [n] \nApply anyway? [n] \nSkipping patch.")
        self.status = 1
        self._rejects(patch, name, patch.hunks, "ignored")
        return False

    def _exists_already(self, patch: FilePatch, name: str, lines: list[bytes]) -> None:
        what = f"The next patch would create the file {name},\nwhich already exists!"
        if self.options.forward or self.options.batch or self.options.force:
            self.say(f"{what}  Skipping patch.")
        else:
            self.say(f"{what}  Assume -R? [n] \nApply anyway? [n] \nSkipping patch.")
        self.status = 1
        self._rejects(patch, name, patch.hunks, "ignored")

    def _report(self, outcome: Outcome) -> None:
        notes: list[tuple[int, str]] = []
        for placed in outcome.done:
            fuzz = f" with fuzz {placed.fuzz}" if placed.fuzz else ""
            offset = ""
            if placed.offset:
                offset = f" (offset {placed.offset} line{'s' if abs(placed.offset) != 1 else ''})"
            if placed.remark:
                self.process.stdout.flush()
                self.process.error(
                    f"patch: hunk #{placed.hunk.number}: {placed.remark}; applied at line {placed.line}\n"
                )
            elif (fuzz or offset) and not self.options.silent:
                notes.append((placed.hunk.number, f"succeeded at {placed.line}{fuzz}{offset}."))
        for hunk, line in outcome.failed:
            notes.append((hunk.number, f"FAILED at {line}."))
        for number, text in sorted(notes):
            self.say(f"Hunk #{number} {text}")

    def _count(self, failed: int, total: int, verb: str, reject: str | None) -> None:
        hunks = "hunk" if total == 1 else "hunks"
        tail = f" -- saving rejects to file {reject}" if reject else ""
        self.say(f"{failed} out of {total} {hunks} {verb}{tail}")

    def _rejects(self, patch: FilePatch, name: str, hunks: list[Hunk], verb: str) -> None:
        target = self.options.reject or f"{name}.rej"
        total = len(patch.hunks)
        if self.options.dry_run or target == "-":
            self._count(len(hunks), total, verb, None)
            return
        self._count(len(hunks), total, verb, target)
        unified = (
            patch.style == "unified"
            if self.options.reject_format is None
            else (self.options.reject_format == "unified")
        )
        self.process.write_file(target, render_rejects(patch, hunks, unified))

    # The file itself.

    def _write(self, patch: FilePatch, name: str, original: bytes | None, result: bytes, outcome: Outcome) -> None:
        if self.options.dry_run:
            return
        if self.options.output is not None:
            if self.options.output == "-":
                self.process.stdout.write(result)
            else:
                self.process.write_file(self.options.output, result)
            return
        target = name
        if patch.rename_to and (found := self._git_target(patch)):
            target = found
        if not outcome.done and original is not None and target == name and patch.mode is None and not patch.deletes:
            self._back_up(name, original, outcome)
            return
        self._back_up(name, original, outcome)
        gone = patch.deletes or self.options.remove_empty
        if gone and not result and not outcome.failed:
            if original is not None:
                self.process.fs.unlink(name)
                self._prune(name)
            return
        if patch.deletes and result and not outcome.failed:
            self.say(f"Not deleting file {name} as content differs from patch")
            self.status = 1
        self.process.fs.makedirs(target.rpartition("/")[0])
        if target != name or original is None or result != original:
            self.process.write_file(target, result)
        if patch.mode is not None:
            self.process.fs.chmod(target, patch.mode)
        if target != name and not patch.copy:
            if original is not None:
                self.process.fs.chmod(target, self.process.fs.stat(name).mode & 0o7777)
            self.process.fs.unlink(name)

    def _git_target(self, patch: FilePatch) -> str | None:
        # Git's rename lines have no a/ and b/ before the name.
        assert patch.rename_to is not None
        strip = max(0, (self.strip or 0) - 1)
        name = patch.rename_to.split("/", strip)[-1] if self.strip else patch.rename_to.rpartition("/")[2]
        return None if name.startswith("/") or ".." in name.split("/") else name

    def _back_up(self, name: str, original: bytes | None, outcome: Outcome) -> None:
        inexact = bool(outcome.failed) or any(p.fuzz or p.offset for p in outcome.done)
        mismatch = not self.options.posix if self.options.mismatch is None else self.options.mismatch
        if not (self.options.backup or (mismatch and inexact)) or name in self.backed_up:
            return
        self.backed_up.add(name)
        backup = f"{self.options.prefix}{name}{'' if self.options.prefix else self.options.suffix}"
        self.process.fs.makedirs(backup.rpartition("/")[0])
        self.process.write_file(backup, original or b"")

    def _prune(self, name: str) -> None:
        """Directories left empty go too."""
        parent = name.rpartition("/")[0]
        while parent:
            try:
                self.process.fs.rmdir(parent)
            except SysError:
                return
            parent = parent.rpartition("/")[0]


def _lines(data: bytes) -> list[bytes]:
    parts = data.split(b"\n")
    last = parts.pop()
    return [part + b"\n" for part in parts] + ([last] if last else [])


def _range(start: int, count: int) -> bytes:
    return b"%d" % start if count == 1 else b"%d,%d" % (start, count)


def render_rejects(patch: FilePatch, hunks: list[Hunk], unified: bool) -> bytes:
    old, new = patch.old_header or b"/dev/null\n", patch.new_header or b"/dev/null\n"
    out = [b"--- " + old, b"+++ " + new] if unified else [b"*** " + old, b"--- " + new]
    for hunk in hunks:
        if unified:
            where = b"@@ -%s +%s @@" % (_range(hunk.old_start, hunk.old_count), _range(hunk.new_start, hunk.new_count))
            out.append(where + hunk.function + b"\n")
            for mark, line in hunk.lines:
                out.append(mark + line)
                if not line.endswith(b"\n"):
                    out.append(b"\n\\ No newline at end of file\n")
        else:
            out += _context_hunk(hunk, normal=patch.style == "normal")
    return b"".join(out)


def _context_hunk(hunk: Hunk, *, normal: bool) -> list[bytes]:
    def where(start: int, count: int) -> bytes:
        return b"%d,%d" % (start, start + count - 1) if count > 1 else b"%d" % start

    out = [b"***************" + hunk.function + b"\n"]
    changes = [mark for mark, _ in hunk.lines if mark != b" "]
    both = b"-" in changes and b"+" in changes and not normal
    stars, dashes = (b"", b" -----") if normal else (b" ****", b" ----")
    out.append(b"*** " + where(hunk.old_start, hunk.old_count) + stars + b"\n")
    if b"-" in changes:
        out += [(b"! " if both and mark == b"-" else mark + b" ") + line for mark, line in hunk.lines if mark != b"+"]
    out.append(b"--- " + where(hunk.new_start, hunk.new_count) + dashes + b"\n")
    if b"+" in changes:
        out += [(b"! " if both and mark == b"+" else mark + b" ") + line for mark, line in hunk.lines if mark != b"-"]
    return out
