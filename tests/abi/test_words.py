"""The words everybody shares agree with Linux's: errors, signals, flags of terminals, paths, limits."""

import errno as host
import os
import posixpath
import re
import signal
import termios as linux
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.abi import errno, flags, limits, paths, signals, termios
from belljar.abi.errno import strerror
from belljar.abi.errors import BudgetExceeded, SysError
from belljar.abi.limits import Limits
from belljar.abi.signals import RTMAX, RTMIN, Signal, parse_signal, signal_name

texts = st.text(alphabet="ab./\u00e9\udcff", max_size=12)


# Errors.


def test_an_error_says_what_libc_says() -> None:
    for number in errno.REASONS:
        assert strerror(number) == os.strerror(number)


def test_an_error_has_linuxs_number() -> None:
    for number, name in errno.NAMES.items():
        assert getattr(host, name) == number
        assert errno.from_host(number) == number
    assert errno.from_host(None) == errno.from_host(99_999) == errno.EIO


def test_every_errno_that_our_code_raises_has_words() -> None:
    source = "".join(path.read_text() for path in (Path(__file__).parents[2] / "src/belljar").rglob("*.py"))
    raised = set(re.findall(r"SysError\((E[A-Z0-9]+)", source))
    assert {"ENOENT", "ENOSPC", "EXDEV"} < raised
    assert {name for name in raised if "Unknown" in strerror(getattr(errno, name))} == set()


def test_a_system_error_names_itself() -> None:
    error = SysError(errno.ENOENT, "/f")
    assert (str(error), error.reason, error.name) == ("/f: No such file or directory", error.reason, "ENOENT")
    assert str(SysError(errno.EIO)) == "Input/output error"
    assert str(SysError(9999)) == "Unknown error 9999"


def test_no_handler_of_exceptions_swallows_a_spent_budget() -> None:
    assert not issubclass(BudgetExceeded, Exception)
    assert str(BudgetExceeded("steps", 5)) == "limit reached: steps (5)"


# Numbers.


def test_signals_have_linuxs_numbers() -> None:
    for number in Signal:
        assert number == getattr(signal, f"SIG{number.name}")
    assert (RTMIN, RTMAX) == (signal.SIGRTMIN, signal.SIGRTMAX)
    assert len(signals.DESCRIPTIONS) == len(Signal)


@given(st.integers(1, 64).filter(lambda number: number not in (32, 33)))
def test_a_signals_name_is_read_back(number: int) -> None:
    name = signal_name(number)
    assert parse_signal(name) == parse_signal(f"sig{name}".upper()) == parse_signal(str(number)) == number


@pytest.mark.parametrize("text", ["", "NOPE", "65", "-1", "SIG", "RTMIN+31", "RTMAX-31", "RTMIN+", "1x", "\u0663"])
def test_what_is_no_signal(text: str) -> None:
    assert parse_signal(text) is None


def test_terminals_have_linuxs_flags() -> None:
    names = [
        name for name in dir(termios) if name.isupper() and hasattr(linux, name) and name != "NCCS"
    ]  # libc's is larger
    assert len(names) > 40
    assert {name for name in names if getattr(termios, name) != getattr(linux, name)} == set()


def test_files_have_linuxs_kinds_and_polls() -> None:
    import select
    import stat

    for name in dir(flags):
        for module in (stat, select):
            if name.startswith(("S_", "POLL")) and isinstance(getattr(module, name, None), int):
                assert getattr(flags, name) == getattr(module, name), name


# Paths.


@given(texts)
def test_normalise_is_pythons_but_for_two_slashes(path: str) -> None:
    expected = posixpath.normpath(path)
    assert paths.normalise(path) == (expected[1:] if expected.startswith("//") else expected)


@given(texts, texts)
def test_join_is_pythons(base: str, path: str) -> None:
    if base:
        assert paths.join(base, path) == posixpath.join(base, path)


@given(texts)
def test_dirname_and_basename_take_a_path_apart(path: str) -> None:
    if path.strip("/"):
        whole = paths.normalise(paths.join(paths.dirname(path), paths.basename(path)))
        assert whole == paths.normalise(path)


@given(st.binary(max_size=20))
def test_any_bytes_survive(data: bytes) -> None:
    text = paths.fsdecode(data)
    assert paths.fsencode(text) == data
    assert paths.byte_length(text) == len(data)


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("", errno.ENOENT),
        ("a\0b", errno.EINVAL),
        ("a" * 4096, errno.ENAMETOOLONG),
        ("\u00e9" * 2048, errno.ENAMETOOLONG),
    ],
)
def test_what_is_no_path(path: str, number: int) -> None:
    with pytest.raises(SysError) as caught:
        paths.check_path(path)
    assert caught.value.errno == number


def test_lengths_are_bytes() -> None:
    paths.check_path("a" * 4095)
    paths.check_name("\u00e9" * 127)
    with pytest.raises(SysError):
        paths.check_name("\u00e9" * 128)


# Limits.


def test_every_limit_has_a_default_and_is_explained() -> None:
    source = Path(limits.__file__).read_text()
    for field in fields(Limits):
        assert getattr(Limits(), field.name) > 0
        assert re.search(rf'^    {field.name}: \w+ = .*\n    """.', source, re.M), field.name


@pytest.mark.parametrize("value", [0, -1, True, "5", None, float("nan")])
def test_a_limit_is_a_positive_number(value: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"Limits\.steps must be"):
        Limits(steps=value)  # type: ignore[arg-type]


def test_an_exec_may_ask_for_less_never_for_more() -> None:
    narrow = Limits(steps=10, output_bytes=500).narrowed(Limits(steps=20, output_bytes=5))
    assert (narrow.steps, narrow.output_bytes, narrow.processes) == (10, 5, Limits().processes)
