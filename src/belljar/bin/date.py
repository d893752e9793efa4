"""date - print or set the system date and time

Usage: date [OPTION]... [+FORMAT]

Display the date and time in the given FORMAT; %-sequences as strftime has them, with GNU's flags and widths.
"""

from collections.abc import Iterator, Mapping

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.abi.records import NANO
from belljar.bin._kit import UsageError, flag, line_batches, utility, value
from belljar.bin._kit.choices import pick
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.dates import BadDate, parse_date
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process
from belljar.libc.calendar import EARLIEST, LATEST
from belljar.libc.zones import UTC

_RFC_3339 = {"date": "%Y-%m-%d", "seconds": "%Y-%m-%d %H:%M:%S%:z", "ns": "%Y-%m-%d %H:%M:%S.%N%:z"}
_ISO_8601 = {
    "hours": "%Y-%m-%dT%H%:z",
    "minutes": "%Y-%m-%dT%H:%M%:z",
    "date": "%Y-%m-%d",
    "seconds": "%Y-%m-%dT%H:%M:%S%:z",
    "ns": "%Y-%m-%dT%H:%M:%S,%N%:z",
}


@dataclass(frozen=True, slots=True)
class Options:
    date: str | None = value("-d", "--date", "display time described by STRING, not 'now'", metavar="STRING")
    debug: bool = flag("--debug", "annotate the parsed date on standard error")
    file: str | None = value("-f", "--file", "like --date; once for each line of DATEFILE", metavar="DATEFILE")
    iso: str | None = value("-I", "--iso-8601", "output date/time in ISO 8601 format", metavar="FMT", bare="date")
    resolution: bool = flag("--resolution", "output the available resolution of timestamps")
    email: bool = flag("-R", "--rfc-email", "--rfc-822", "--rfc-2822", "output date and time in RFC 5322 format")
    rfc: str | None = value("--rfc-3339", "output date/time in RFC 3339 format", metavar="FMT")
    reference: str | None = value("-r", "--reference", "display the last modification time of FILE", metavar="FILE")
    set: str | None = value("-s", "--set", "set time described by STRING", metavar="STRING")
    utc: bool = flag("-u", "--utc", "--universal", "print or set Coordinated Universal Time (UTC)")


@utility("date", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    template = _template(process, options, operands)
    if options.set is not None or (operands and not operands[0].startswith("+")):
        if operands and not operands[0].startswith("+"):
            raise UsageError(
                f"invalid date {quote(operands[0], process.env)}" if not operands[0].isdecimal() else _CANT_SET,
                hint=False,
            )
        raise UsageError(_CANT_SET, hint=False)
    sources = [options.date is not None, options.file is not None, options.reference is not None]
    if sum(sources) > 1:
        raise UsageError("the options to specify dates for printing are mutually exclusive")
    env = {**process.env, "TZ": "UTC0"} if options.utc else process.env
    zone = UTC if options.utc else zone_of(env)
    if options.resolution:
        process.print("0.000000001")
        return 0
    status = 0
    for text, moment in _moments(process, options, env):
        if moment is None:
            process.warn(f"invalid date {quote(text, process.env)}")
            status = 1
            continue
        if not EARLIEST <= moment // NANO <= LATEST:
            process.warn(f"time {quote(str(moment // NANO), process.env)} is out of range")
            status = 1
            continue
        process.print(format_time(template, moment, zone))
    return status


_CANT_SET = "cannot set date: Operation not permitted"


def _template(process: Process, options: Options, operands: list[str]) -> str:
    if len(operands) > 1:
        raise UsageError(f"extra operand {quote(operands[1], process.env)}")
    formats = [
        options.rfc is not None,
        options.iso is not None,
        options.email,
        bool(operands) and operands[0][0:1] == "+",
    ]
    if sum(formats) > 1:
        raise UsageError("multiple output formats specified", hint=False)
    if options.rfc is not None:
        return _named(process, options.rfc, _RFC_3339, "--rfc-3339")
    if options.iso is not None:
        return _named(process, options.iso, _ISO_8601, "--iso-8601")
    if options.email:
        return "%a, %d %b %Y %H:%M:%S %z"
    if operands and operands[0].startswith("+"):
        return operands[0][1:]
    return "%a %b %e %H:%M:%S %Z %Y"


def _named(process: Process, text: str, table: dict[str, str], option: str) -> str:
    return table[pick(process, option, text, {name: () for name in table})]


def _moments(process: Process, options: Options, env: Mapping[str, str]) -> Iterator[tuple[str, int | None]]:
    """Each time to print, in ns; None for a text that is no date."""
    now = process.kernel.now()
    if options.reference is not None:
        try:
            yield "", process.fs.stat(options.reference).mtime
        except SysError as error:
            raise UsageError(f"{options.reference}: {error.reason}", hint=False) from None
    elif options.file is not None:
        try:
            for line in line_batches(process, options.file).lines():
                yield fsdecode(line), _parse(fsdecode(line), now, env)
        except SysError as error:
            raise UsageError(f"{options.file}: {error.reason}", hint=False) from None
    elif options.date is not None:
        yield options.date, _parse(options.date, now, env)
    else:
        yield "", now


def _parse(text: str, now: int, env: Mapping[str, str]) -> int | None:
    try:
        return parse_date(text, now, env)
    except BadDate:
        return None
