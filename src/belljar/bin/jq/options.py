"""jq's command line, which is its own: flags anywhere, bundled, some with one or two parameters."""

from typing import Any

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errors import SysError
from belljar.abi.paths import replace_undecodable
from belljar.bin.jq.reader import ParseError, parse_one
from belljar.kernel.process import Process

VERSION = "jq-1.8.1"
FLAGS = {
    "s": "slurp",
    "r": "raw-output",
    "j": "join-output",
    "c": "compact-output",
    "C": "color-output",
    "M": "monochrome-output",
    "a": "ascii-output",
    "S": "sort-keys",
    "R": "raw-input",
    "n": "null-input",
    "f": "from-file",
    "b": "binary",
    "e": "exit-status",
    "h": "help",
    "V": "version",
}
LONG_ONLY = (
    "raw-output0",
    "unbuffered",
    "tab",
    "seq",
    "stream",
    "stream-errors",
    "build-configuration",
)
DIE = """Use jq --help for help with command-line options,
or see the jq manpage, or online docs at https://jqlang.org
"""


class Usage(Exception):
    """A wrong command line: the message for stderr."""


@dataclass(slots=True)
class Options:
    program: str | None = None
    files: list[str] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)
    indent: int = 2
    named: dict[str, Any] = field(default_factory=dict)
    positional: list[Any] = field(default_factory=list)
    search: list[str] | None = None


def looks_like_option(text: str) -> bool:
    return text[:1] == "-" and (text[1:2] == "-" or (text[1:2].isascii() and text[1:2].isalpha()))


class ArgumentReader:
    def __init__(self, process: Process, arguments: list[str]) -> None:
        self.process = process
        self.arguments = arguments
        self.position = 0
        self.options = Options()
        self.rest = ""

    def read(self) -> Options:
        """SysError and Usage if the command line is wrong."""
        done = False
        while self.position < len(self.arguments):
            text = self.arguments[self.position]
            self.position += 1
            if done or not looks_like_option(text):
                self.operand(text)
            elif text == "--":
                done = True
            elif text.startswith("--"):
                self.long(text[2:])
            else:
                self.short(text[1:])
        return self.options

    def operand(self, text: str) -> None:
        options = self.options
        if options.program is None:
            options.program = text
        elif self.rest == "args":
            options.positional.append(replace_undecodable(text))
        elif self.rest == "jsonargs":
            options.positional.append(self.json(text, "--jsonargs"))
        else:
            options.files.append(text)

    def json(self, text: str, option: str) -> Any:
        try:
            return parse_one(replace_undecodable(text))
        except ParseError:
            raise Usage(f"jq: invalid JSON text passed to {option}\n{DIE}") from None

    def parameters(self, count: int, complaint: str) -> list[str]:
        found = self.arguments[self.position : self.position + count]
        if len(found) < count:
            raise Usage(f"{complaint}\n{DIE}")
        self.position += count
        return found

    def short(self, letters: str) -> None:
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter == "L":
                complaint = "-L takes a parameter: (e.g. -L /search/path or -L/search/path)"
                self.library(letters or self.parameters(1, complaint)[0])
                return
            if letter not in FLAGS:
                raise Usage(f"jq: Unknown option -{letter}\n{DIE}")
            self.options.flags.add(FLAGS[letter])

    def library(self, path: str) -> None:
        self.options.search = [*(self.options.search or []), path]

    def long(self, name: str) -> None:
        options = self.options
        if name in FLAGS.values() or name in LONG_ONLY:
            options.flags.add(name)
            if name == "tab":
                options.flags.discard("compact-output")
        elif name in ("args", "jsonargs"):
            self.rest = name
        elif name == "library-path":
            self.library(self.parameters(1, "-L takes a parameter: (e.g. -L /search/path or -L/search/path)")[0])
        elif name == "indent":
            self.indent(self.parameters(1, "jq: --indent takes one parameter")[0])
        elif name == "arg":
            key, value = self.parameters(2, "jq: --arg takes two parameters (e.g. --arg varname value)")
            options.named.setdefault(replace_undecodable(key), replace_undecodable(value))
        elif name == "argjson":
            key, value = self.parameters(2, "jq: --argjson takes two parameters (e.g. --argjson varname text)")
            options.named.setdefault(replace_undecodable(key), self.json(value, "--argjson"))
        elif name in ("slurpfile", "rawfile"):
            complaint = f"jq: --{name} takes two parameters (e.g. --{name} varname filename)"
            key, value = self.parameters(2, complaint)
            options.named.setdefault(replace_undecodable(key), self.load(name, replace_undecodable(key), value))
        else:
            raise Usage(f"jq: Unknown option --{name}\n{DIE}")

    def indent(self, text: str) -> None:
        try:
            size = int(text)
        except ValueError:
            size = 0 if text else -2
        if not -1 <= size <= 7:
            raise Usage(f"jq: --indent takes a number between -1 and 7\n{DIE}")
        if size < 0:
            self.options.flags.add("tab")
        self.options.indent = size

    def load(self, option: str, name: str, path: str) -> Any:
        try:
            data = self.process.read_file(path)
        except SysError as error:
            raise Usage(f"jq: Bad JSON in --{option} {name} {path}: Could not open {path}: {error.reason}\n") from None
        if option == "rawfile":
            return data.decode("utf-8", "replace")
        try:
            return load_all(data)
        except ParseError as error:
            raise Usage(f"jq: Bad JSON in --{option} {name} {path}: {error}\n") from None


def load_all(data: bytes) -> list[Any]:
    """Every value in a file."""
    from belljar.bin.jq.reader import Decoder

    decoder = Decoder()
    return [*decoder.whole(data), *decoder.close()]
