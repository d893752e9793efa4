"""Runs a compiled awk program over its input."""

from __future__ import annotations

from contextlib import suppress

from belljar.bin.awk.compile import Program
from belljar.bin.awk.errors import ExitProgram, NextFile, NextRecord
from belljar.bin.awk.reader import Reader
from belljar.bin.awk.record import Record, split_blanks
from belljar.bin.awk.runtime import Runtime
from belljar.bin.awk.scope import Code, Frame
from belljar.bin.awk.statements import nothing
from belljar.bin.awk.values import UNINIT


def run_program(program: Program, runtime: Runtime) -> None:
    """Run a program to its end. The exit status is then in the runtime; AwkFatal passes through."""
    with suppress(ExitProgram):
        runtime.section = "BEGIN"
        for code in program.begin:
            code([UNINIT])
        runtime.section = ""
        if program.main is not None or program.end or runtime.input.begin_file or runtime.input.end_file:
            _read_all(program, runtime)
    runtime.section = "END"
    with suppress(ExitProgram):
        for code in program.end:
            code([UNINIT])
    runtime.streams.close_all()


def _read_all(program: Program, runtime: Runtime) -> None:
    source = runtime.input
    body = program.main or nothing
    if "RT" in program.names.mentioned:
        body = _with_terminator(runtime, body)
    while source.reader is not None or source.advance() is not None:
        with suppress(NextFile):
            _read_file(program, runtime, body)
        source.finish_file()


def _with_terminator(runtime: Runtime, body: Code) -> Code:
    source, cell = runtime.input, runtime.cell("RT")

    def run(frame: Frame) -> object:
        if source.reader is not None:
            cell[0] = source.reader.remaining_terminator()
        return body(frame)

    return run


def _read_file(program: Program, runtime: Runtime, body: Code) -> None:
    record, source = runtime.record, runtime.input
    frame: Frame = [UNINIT]
    reader = source.reader
    while reader is not None:
        with suppress(NextRecord):
            _run_records(program, record, reader, body, frame)
        if source.reader is not reader:
            # A getline inside the rules went on to another file.
            reader = source.reader
            if reader is None and (source.ended or (reader := source.advance()) is None):
                return
            continue
        if reader.records.__length_hint__():  # type: ignore[attr-defined]
            continue
        if not reader.refill():
            return
        # A chunk without odd blanks can be split by Python's own split().
        record.splitter = record.general
        if reader.plain and record.general is split_blanks:
            record.splitter = str.split  # type: ignore[assignment]


def _run_records(program: Program, record: Record, reader: Reader, body: Code, frame: Frame) -> None:
    """Run the rules over the records already read."""
    records = reader.records
    if program.counts:
        for record.text in records:
            record.fields = None
            record.nr += 1
            body(frame)
        return
    left = records.__length_hint__()  # type: ignore[attr-defined]
    try:
        if program.eager:
            split = record.splitter
            for text in records:
                record.text = text
                record.fields = split(text)
                body(frame)
        else:
            for record.text in records:
                record.fields = None
                body(frame)
    finally:
        record.nr += left - records.__length_hint__()  # type: ignore[attr-defined]
