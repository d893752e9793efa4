"""parallel - run commands for each of several arguments, some at a time

Usage: parallel [OPTION]... [COMMAND [ARGUMENT]...] [::: ARGUMENT...] [:::: FILE...]

Each argument, from `:::`, from files or a line of standard input, takes the place of {} in the command.
In the command: {} the argument, {.} without extension, {/} its base name, {//} its directory, {/.} base name without
extension, {#} the number of the job, {%} its slot, {1} {2.} ... arguments of several sources.
"""

import re
from collections.abc import Callable, Iterator
from itertools import product

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_RDONLY, O_WRONLY, POLLIN
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.records import NANO
from belljar.bin._kit import UsageError, flag, many, utility, value
from belljar.bin._kit.sizes import parse_size
from belljar.kernel.process import Process
from belljar.kernel.process import Process as Child
from belljar.kernel.status import ExitStatus
from belljar.regex import RegexError
from belljar.regex import compile as compile_regex

MOST_FAILURES = 101
_LOG_HEAD = (b"Seq", b"Host", b"Starttime", b"JobRuntime", b"Send", b"Receive", b"Exitval", b"Signal", b"Command")
_SAFE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_PLACE = re.compile(r"\{(\d*)(\.|/\.|//|/|)\}|\{([#%])\}")


@dataclass(frozen=True, slots=True)
class Options:
    jobs: str | None = value("-j", "--jobs", "-P", "--max-procs", "run N jobs at a time", metavar="N")
    keep: bool = flag("-k", "--keep-order", "show output in the order of the arguments")
    null: bool = flag("-0", "--null", "arguments of files end with a null, not a newline")
    files: tuple[str, ...] = many("-a", "--arg-file", "read arguments from FILE", metavar="FILE")
    max_args: str | None = value("-n", "-N", "--max-args", "--max-replace-args", "so many a command", metavar="N")
    all_args: bool = flag("-X", "-m", "--xargs", "as many arguments as fit a command")
    column: str | None = value("-C", "--colsep", "split each argument at this expression", metavar="REGEX")
    delimiter: str | None = value("-d", "--delimiter", "what ends an argument of a file", metavar="TEXT")
    replacement: str | None = value("-I", "use this instead of {}", metavar="TEXT")
    dry_run: bool = flag("--dry-run", "--dryrun", "print the commands, don't run them")
    verbose: bool = flag("-t", "-v", "--verbose", "print each command")
    tag: bool = flag("--tag", "put the argument in front of each line of output")
    ungroup: bool = flag("-u", "--ungroup", "--line-buffer", "--lb", "show output as it comes")
    quote: bool = flag("-q", "--quote", "quote the command")
    no_empty: bool = flag("-r", "--no-run-if-empty", "skip empty arguments")
    halt: str | None = value("--halt", "stop when jobs fail (now,fail=1 soon,fail=1)", metavar="WHEN")
    link: bool = flag("--link", "--xapply", "arguments of several sources side by side, not combined")
    lines: str | None = value("-L", "--max-lines", "so many lines of input a command", metavar="N")
    pipe: bool = flag("--pipe", "--spreadstdin", "parts of standard input are jobs' input, not arguments")
    block: str = value("--block", "how much a part is", metavar="SIZE", default="1M")
    joblog: str | None = value("--joblog", "write a line for each job to FILE", metavar="FILE")
    results: str | None = value("--results", "--res", "save what jobs write in files below DIR", metavar="DIR")
    timeout: str | None = value("--timeout", "end a job after so many seconds", metavar="SECONDS")
    delay: str | None = value("--delay", "wait so long between starts", metavar="SECONDS")
    retries: str | None = value("--retries", "try a job so many times", metavar="N")
    tag_string: str | None = value("--tagstring", "put this in front of each line of output", metavar="TEXT")
    header: str | None = value("--header", "the first line of input names columns: {name}", metavar="REGEX")
    trim: str | None = value("--trim", "remove space from arguments: l, r, lr", metavar="WHERE")
    will_cite: bool = flag(
        "--will-cite", "--no-notice", "--bar", "--progress", "--eta", "--gnu", "--group", "--silent", "--plain",
        "ignored",
    )  # fmt: skip
    ignored: str | None = value("--nice", "--load", "--memfree", "--env", "--shellquote", "-s", "ignored", metavar="X")


@dataclass(slots=True)
class Job:
    """One command, and what it wrote so far."""

    number: int
    tag: str
    child: Child | None = None
    ends: dict[int, int] = field(default_factory=dict)
    """Descriptors it still writes to, and which stream each is."""
    output: dict[int, list[bytes]] = field(default_factory=lambda: {1: [], 2: []})
    text: str = ""
    arguments: tuple[str, ...] = ()
    data: bytes | None = None
    """Its input, of --pipe."""
    tries: int = 1
    started: int = 0
    """ns"""


@utility("parallel", Options, order="first-operand-ends", usage_status=255)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.pipe:
        return Runner(process, options, operands).run_parts(_parts(process, options))
    command, sources = _sources(process, options, operands)
    names: list[str] = []
    if options.header is not None:
        split = _splitter(options.column or "\t")
        heads = [items.pop(0) for _, items in sources if items]
        names = [name for head in heads for name in (split(head) if options.column else [head])]
    return Runner(process, options, command, names).run(_combine(options, sources))


def _parts(process: Process, options: Options) -> Iterator[bytes]:
    """Standard input in parts of whole lines."""
    count = _number(options.max_args, 0) or _number(options.lines, 0)
    most = parse_size(options.block) or 1 << 20
    held: list[bytes] = []
    size = 0
    for line in process.read_file("-").splitlines(keepends=True):
        held.append(line)
        size += len(line)
        if (count and len(held) >= count) or (not count and size >= most):
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def _splitter(pattern: str) -> Callable[[str], list[str]]:
    try:
        regex = compile_regex(pattern, syntax="ere")
    except RegexError as error:
        raise UsageError(f"Error: --colsep {pattern}: {error}", hint=False) from None

    def split(text: str) -> list[str]:
        out: list[str] = []
        done = 0
        for match in regex.finditer(text):
            if match.end() > match.start():
                out.append(text[done : match.start()])
                done = match.end()
        return [*out, text[done:]]

    return split


def _sources(process: Process, options: Options, operands: list[str]) -> tuple[list[str], list[tuple[bool, list[str]]]]:
    """The command, and the arguments of each source with whether it is linked to the one before."""
    command: list[str] = []
    sources: list[tuple[bool, list[str]]] = [(False, _lines(process, options, name)) for name in options.files]
    current: list[str] | None = None
    from_files = linked = False
    for word in [*operands, ":::"]:
        if word in (":::", "::::", ":::+", "::::+"):
            if current is not None:
                if from_files:
                    sources += [(linked, _lines(process, options, name)) for name in current]
                else:
                    sources.append((linked, current))
            current, from_files, linked = [], word.startswith("::::"), word.endswith("+")
        elif current is None:
            command.append(word)
        else:
            current.append(word)
    if not sources:
        sources = [(False, _lines(process, options, "-"))]
    return command, sources


def _lines(process: Process, options: Options, name: str) -> list[str]:
    try:
        data = process.read_file(name)
    except SysError as error:
        raise UsageError(f"Error: Cannot open input file `{name}': {error.reason}.", hint=False) from None
    end = b"\0" if options.null else fsencode(options.delimiter or "\n").replace(b"\\n", b"\n").replace(b"\\0", b"\0")
    return [fsdecode(item) for item in data.removesuffix(end).split(end)] if data else []


def _combine(options: Options, sources: list[tuple[bool, list[str]]]) -> Iterator[list[str]]:
    """The arguments of each job: every combination of the sources, linked ones side by side."""
    groups: list[list[list[str]]] = []
    split = _splitter(options.column) if options.column is not None else None
    for linked, items in sources:
        if (linked or options.link) and groups:
            longest = max(len(groups[-1]), len(items)) if items else 0
            before = groups[-1]
            groups[-1] = [before[place % len(before)] + [items[place % len(items)]] for place in range(longest)]
        else:
            groups.append([[item] for item in items])
    for combination in product(*groups):
        arguments = [item for part in combination for item in part]
        if options.trim is not None:
            arguments = [
                (item.lstrip() if "l" in options.trim else item).rstrip(None if "r" in options.trim else "")
                for item in arguments
            ]
        if split is not None:
            arguments = [piece for item in arguments for piece in split(item)]
        if options.no_empty and not any(arguments):
            continue
        yield arguments


class Runner:
    """Starts jobs while there is room, and shows their output when they end."""

    def __init__(self, process: Process, options: Options, command: list[str], names: list[str] | None = None) -> None:
        self._process = process
        self._options = options
        self._names = names or []
        self._timeout = _seconds(options.timeout, "timeout")
        self._delay = _seconds(options.delay, "delay")
        self._tries = _number(options.retries, 1)
        if options.joblog is not None:
            process.write_file(options.joblog, b"\t".join(_LOG_HEAD) + b"\n")
        self._template = self._parse(command)
        self._slots = _number(options.jobs, process.kernel.machine.cores)
        self._running: list[Job] = []
        self._waiting: dict[int, Job] = {}
        self._next_shown = 1
        self._failures = 0
        self._first_failure = 0
        self._halted = False

    def _parse(self, command: list[str]) -> str:
        words = [_quote(word) if self._options.quote and not _PLACE.search(word) else word for word in command]
        text = " ".join(words)
        if self._options.replacement is not None:
            text = text.replace(self._options.replacement, "{}")
        if not text:
            return ""
        for number, name in enumerate(self._names, 1):
            text = text.replace(f"{{{name}}}", f"{{{number}}}")
        if self._options.pipe:
            return text
        has_place = any(match[3] is None for match in _PLACE.finditer(text))
        return text if has_place else f"{text} {{}}"

    def run(self, combinations: Iterator[list[str]]) -> int:
        number = 0
        for arguments in self._batches(combinations):
            if self._halted:
                break
            number += 1
            text = self._fill(arguments, number)
            if self._options.dry_run:
                self._process.print(text)
                continue
            while len(self._running) >= self._slots:
                self._wait()
            if not self._halted:
                self._start(Job(number, " ".join(arguments), text=text, arguments=tuple(arguments)))
        return self._finish()

    def run_parts(self, parts: Iterator[bytes]) -> int:
        """--pipe: each part of the input is one job's."""
        for number, data in enumerate(parts, 1):
            while len(self._running) >= self._slots:
                self._wait()
            if self._halted:
                break
            self._start(Job(number, "", text=self._fill([], number), data=data))
        return self._finish()

    def _finish(self) -> int:
        while self._running:
            self._wait()
        self._show_in_order(everything=True)
        if self._halted and self._first_failure:
            return self._first_failure
        return min(self._failures, MOST_FAILURES)

    def _batches(self, combinations: Iterator[list[str]]) -> Iterator[list[str]]:
        size = _number(self._options.max_args, 0) or _number(self._options.lines, 0)
        if self._options.all_args:
            # What there is, is shared among the slots.
            found = list(combinations)
            size = max(1, -(-len(found) // self._slots))
            combinations = iter(found)
        if size <= 1:
            yield from combinations
            return
        batch: list[str] = []
        for arguments in combinations:
            batch += arguments
            self._process.budget.charge_size(len(batch))
            if len(batch) >= size:
                yield batch[:size]
                batch = batch[size:]
        if batch:
            yield batch

    def _fill(self, arguments: list[str], number: int) -> str:
        if not self._template:
            return " ".join(arguments)

        def put(match: re.Match[str]) -> str:
            position, kind, special = match.groups()
            if special is not None:
                return str(number) if special == "#" else str(len(self._running) % self._slots + 1)
            if position:
                index = int(position) if len(position) < 9 else 0
                chosen = arguments[index - 1 : index] if index else []
            else:
                chosen = arguments
            return " ".join(_quote(_change(argument, kind)) for argument in chosen)

        return _PLACE.sub(put, self._template)

    def _start(self, job: Job) -> None:
        process = self._process
        if self._delay and job.number > 1:
            process.sleep(self._delay)
        if self._options.verbose:
            process.error(job.text + "\n")
        process.stdout.flush()
        if job.data is None:
            source = process.fs.open("/dev/null", O_RDONLY).retain()
        else:
            source = process.kernel.open_inlet(process, job.data).retain()
        shell = process.env.get("SHELL") or "/bin/bash"
        env = {**process.env, "PARALLEL_SEQ": str(job.number)}
        command = [shell, "-c", job.text]
        if self._timeout:
            command = ["timeout", f"{self._timeout}", *command]
        job.started = process.kernel.now()
        try:
            if self._options.ungroup:
                job.child = process.spawn(command, env=env, stdin=source)
            else:
                pairs = [process.kernel.open_pipe(process) for _ in range(2)]
                for _, writer in pairs:
                    writer.retain()
                try:
                    job.ends = {
                        process.fds.add(reader, cloexec=True): place for place, (reader, _) in enumerate(pairs, 1)
                    }
                    job.child = process.spawn(command, env=env, stdin=source, stdout=pairs[0][1], stderr=pairs[1][1])
                finally:
                    for _, writer in pairs:
                        writer.release()
        finally:
            source.release()
        self._running.append(job)

    def _wait(self) -> None:
        """Wait until a job ends."""
        process = self._process
        while True:
            finished = next((job for job in self._running if not job.ends), None)
            ended = finished is not None and finished.child is not None and finished.child.status is not None
            if finished is not None and (not self._options.ungroup or ended):
                break
            if self._options.ungroup:
                finished = self._running[0]
                break
            wanted = {fd: POLLIN for job in self._running for fd in job.ends}
            for fd in process.poll(wanted):
                job = next(job for job in self._running if fd in job.ends)
                data = process.read(fd)
                if data:
                    parts = job.output[job.ends[fd]]
                    parts.append(data)
                    process.budget.charge_size(sum(len(part) for part in parts[-1:]) + len(parts) * 64)
                else:
                    process.close(fd)
                    del job.ends[fd]
        assert finished is not None
        assert finished.child is not None
        status = process.wait_for(finished.child)
        self._running.remove(finished)
        if self._timeout and status.shell == 124:
            process.error(
                f"parallel: Warning: This job was killed because it timed out:\nparallel: Warning: {finished.text}\n"
            )
        if status.shell and finished.tries < self._tries:
            finished.tries += 1
            finished.output = {1: [], 2: []}
            self._start(finished)
            return
        self._record(finished, status)
        if status.shell:
            self._failures += 1
            self._first_failure = self._first_failure or status.shell
            if self._options.halt and self._options.halt != "never" and not self._options.halt.startswith("0"):
                self._halted = True
                if self._options.halt.startswith(("now", "2")):
                    process.error(f"parallel: This job failed:\n{finished.text}\n")
        self._waiting[finished.number] = finished
        self._show_in_order(everything=not self._options.keep)

    def _record(self, job: Job, status: ExitStatus) -> None:
        """Write the output of --joblog and --results."""
        out, err = (b"".join(job.output[stream]) for stream in (1, 2))
        if self._options.joblog is not None:
            seconds = (self._process.kernel.now() - job.started) / NANO
            code, number = (0, status.signal) if status.signal else (status.shell, 0)
            start = f"{job.number}\t:\t{job.started / NANO:.3f}\t{seconds:10.3f}"
            row = f"{start}\t0\t{len(out)}\t{code}\t{number}\t{job.text}\n"
            self._process.write_file(self._options.joblog, fsencode(row), flags=O_WRONLY | O_CREAT | O_APPEND)
        if self._options.results is not None:
            folder = self._options.results.rstrip("/")
            for place, argument in enumerate(job.arguments, 1):
                safe = argument.replace("\\", "\\\\").replace("\t", "\\t").replace("/", "\\_").replace("\0", "\\0")
                folder += f"/{place}/{safe}"
            self._process.fs.makedirs(folder)
            for name, data in (("seq", str(job.number).encode()), ("stdout", out), ("stderr", err)):
                self._process.write_file(f"{folder}/{name}", data)

    def _show_in_order(self, *, everything: bool) -> None:
        while self._waiting:
            number = self._next_shown if self._next_shown in self._waiting else min(self._waiting)
            if number != self._next_shown and not everything:
                return
            job = self._waiting.pop(number)
            self._next_shown = max(self._next_shown, number + 1)
            self._show(job)

    def _show(self, job: Job) -> None:
        if self._options.results is not None:
            return
        out, err = (b"".join(job.output[stream]) for stream in (1, 2))
        if self._options.tag or self._options.tag_string is not None:
            tag = job.tag
            if self._options.tag_string is not None:
                tag = self._options.tag_string.replace("{}", job.tag)
            mark = fsencode(tag) + b"\t"
            out, err = (b"".join(mark + line for line in data.splitlines(keepends=True)) for data in (out, err))
        self._process.stdout.write(out)
        if err:
            self._process.stdout.flush()
            self._process.error(fsdecode(err))


def _change(argument: str, kind: str) -> str:
    directory, slash, base = argument.rpartition("/")
    match kind:
        case "/":
            return base
        case "//":
            return (directory or "/") if slash else "."
        case "/.":
            return re.sub(r"\.[^./]*$", "", base)
        case ".":
            return re.sub(r"\.[^./]*$", "", argument)
    return argument


def _quote(text: str) -> str:
    return text if _SAFE.fullmatch(text) else "'" + text.replace("'", "'\"'\"'") + "'"


def _number(text: str | None, default: int) -> int:
    if text is None:
        return max(default, 0)
    if text.endswith("%"):
        return max(default, 1)
    if not re.fullmatch(r"\+?\d{1,6}", text):
        raise UsageError(f"Error: {text} is not a number.", hint=False)
    return int(text) or 1 << 16


def _seconds(text: str | None, what: str) -> float:
    if text is None:
        return 0.0
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd]?)", text)
    if match is None:
        raise UsageError(f"Error: --{what} must be seconds.", hint=False)
    return float(match[1]) * {"m": 60, "h": 3600, "d": 86400}.get(match[2], 1)
