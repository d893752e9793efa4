"""yq's command line."""

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errors import SysError
from belljar.kernel.process import Process

FORMATS = {
    "yaml": "yaml",
    "y": "yaml",
    "yml": "yaml",
    "json": "json",
    "j": "json",
    "csv": "csv",
    "c": "csv",
    "tsv": "tsv",
    "t": "tsv",
    "props": "props",
    "p": "props",
    "auto": "auto",
    "a": "auto",
}
LONG = {
    "output-format": "o",
    "input-format": "p",
    "inplace": "i",
    "in-place": "i",
    "unwrapScalar": "r",
    "raw-output": "r",
    "prettyPrint": "P",
    "indent": "I",
    "null-input": "n",
    "exit-status": "e",
    "no-doc": "N",
    "tojson": "j",
    "colors": "C",
    "no-colors": "M",
    "version": "V",
    "help": "h",
    "from-file": "f",
    "verbose": "v",
}
WITH_VALUE = "opIf"
FLAGS = "irPneNjCMVhv"


class Usage(Exception):
    """A wrong command line."""


@dataclass(slots=True)
class Options:
    expression: str = ""
    files: list[str] = field(default_factory=list)
    output: str = "auto"
    input: str = "auto"
    flags: set[str] = field(default_factory=set)
    indent: int = 2
    unwrap: bool | None = None
    all: bool = False
    asked: str = ""


def format_named(text: str) -> str:
    try:
        return FORMATS[text.removeprefix("=")]
    except KeyError:
        raise Usage(f"unknown format '{text}' please use [yaml|json|csv|tsv|props]") from None


def read_options(process: Process, arguments: list[str]) -> Options:
    options = Options()
    operands: list[str] = []
    position = 0
    expression_file: str | None = None
    done = False
    while position < len(arguments):
        text = arguments[position]
        position += 1
        if done or text == "-" or not text.startswith("-"):
            operands.append(text)
            continue
        if text == "--":
            done = True
            continue
        if text.startswith("--"):
            name, equals, value = text[2:].partition("=")
            letter = LONG.get(name)
            if letter is None:
                raise Usage(f"unknown flag: --{name}")
            letters = letter
        else:
            letters, equals, value = text[1:], "", ""
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in WITH_VALUE:
                if letters:
                    value, letters = letters.removeprefix("="), ""
                elif not equals:
                    if position >= len(arguments):
                        raise Usage(f"flag needs an argument: '{letter}' in {text}")
                    value = arguments[position]
                    position += 1
                if letter == "f":
                    expression_file = value
                else:
                    set_value(options, letter, value)
            elif letter in FLAGS:
                if letter == "r":
                    if letters.startswith("="):
                        value, letters = letters[1:], ""
                    options.unwrap = value != "false"
                options.flags.add(letter)
            else:
                raise Usage(f"unknown shorthand flag: '{letter}' in {text}")
    finish(process, options, operands, expression_file)
    return options


def set_value(options: Options, letter: str, value: str) -> None:
    if letter == "o":
        options.output = format_named(value)
    elif letter == "p":
        options.input = format_named(value)
    else:
        if not value.isdecimal() or int(value[:9]) > 64:
            raise Usage(f'invalid argument "{value}" for "-I, --indent" flag')
        options.indent = int(value)


def finish(process: Process, options: Options, operands: list[str], expression_file: str | None) -> None:
    if "h" in options.flags:
        options.asked = "help"
    elif "V" in options.flags:
        options.asked = "version"
    if operands and operands[0] in ("eval", "e", "eval-all", "ea"):
        options.all = operands.pop(0) in ("eval-all", "ea")
    if expression_file is not None:
        try:
            options.expression = process.read_file(expression_file).decode("utf-8", "replace")
        except SysError as error:
            raise Usage(f"open {expression_file}: {error.reason.lower()}") from None
    elif operands and not (operands[0] == "-" or process.fs.is_file(operands[0])):
        options.expression = operands.pop(0)
    options.files = operands
    if "j" in options.flags:
        options.output = "json"
    if options.input == "auto":
        named_json = bool(operands) and operands[0].endswith(".json")
        options.input = "json" if named_json else "yaml"
    if options.output == "auto":
        options.output = options.input
