"""`git interpret-trailers`: trailers added to a message, or read from it."""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import flag, many
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import add_trailer, text_of, trailer_lines


@dataclass(frozen=True, slots=True)
class Options:
    trailers: tuple[str, ...] = many("--trailer", "add a trailer", metavar="TOKEN=VALUE")
    only: bool = flag("--only-trailers", "leave the message out")
    parse: bool = flag("--parse", "only the trailers, each in one line")
    unfold: bool = flag("--unfold", "each trailer in one line")
    in_place: bool = flag("--in-place", "change the files themselves")
    accepted: bool = flag("--only-input", "--trim-empty", "--no-divider", "(accepted)")


def interpret_trailers(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(Options, args)
    for name in operands or ["-"]:
        message = text_of(repo.process.read_file(name))
        for trailer in options.trailers:
            token, _, content = re.sub(r"\s*[=:]\s*", "=", trailer, count=1).partition("=")
            message = add_trailer(message, f"{token}: {content}")
        if options.only or options.parse:
            rows = trailer_lines(message)
            if options.parse or options.unfold:
                rows = [re.sub(r"\n\s+", " ", row) for row in rows]
            message = "".join(f"{row}\n" for row in rows)
        if options.in_place:
            repo.process.write_file(name, fsencode(message))
        else:
            repo.process.stdout.write(fsencode(message))
    return 0
