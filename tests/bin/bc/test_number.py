"""bc's arithmetic against exact arithmetic, and its limits."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belljar.abi.limits import MIB, Limits
from belljar.bin.bc.number import Arithmetic, Number, NumberError, length
from tests.adapter import new_session

do = Arithmetic(lambda steps: None, lambda size: None)
numbers = st.builds(Number, st.integers(-(10**30), 10**30), st.integers(0, 25))
scales = st.integers(0, 30)


def exact(number: Number) -> Fraction:
    return Fraction(number.value, 10**number.scale)


def cut(value: Fraction, scale: int) -> Fraction:
    shifted = abs(value) * 10**scale
    whole = Fraction(shifted.numerator // shifted.denominator, 10**scale)
    return -whole if value < 0 else whole


@given(numbers, numbers)
def test_sums_are_exact(left: Number, right: Number) -> None:
    assert exact(do.add(left, right)) == exact(left) + exact(right)
    assert exact(do.subtract(left, right)) == exact(left) - exact(right)
    assert do.compare(left, right) == (exact(left) > exact(right)) - (exact(left) < exact(right))


@given(numbers, numbers, scales)
def test_products_and_quotients_are_cut_off(left: Number, right: Number, scale: int) -> None:
    product = do.multiply(left, right, scale)
    assert product.scale == min(left.scale + right.scale, max(scale, left.scale, right.scale))
    assert exact(product) == cut(exact(left) * exact(right), product.scale)
    if right:
        assert exact(do.divide(left, right, scale)) == cut(exact(left) / exact(right), scale)


@given(numbers, numbers.filter(bool), scales)
def test_quotient_and_remainder_make_the_whole(left: Number, right: Number, scale: int) -> None:
    quotient, rest = do.divide(left, right, scale), do.modulo(left, right, scale)
    assert exact(quotient) * exact(right) + exact(rest) == exact(left)


@given(numbers.filter(lambda number: number.value >= 0), scales)
def test_roots(number: Number, scale: int) -> None:
    root = do.sqrt(number, scale)
    unit = Fraction(1, 10**root.scale)
    assert exact(root) ** 2 <= exact(number) < (exact(root) + unit) ** 2


@given(numbers)
def test_decimal_text_reads_back(number: Number) -> None:
    text = do.text(number)
    assert Fraction(Decimal(text)) == exact(number)
    digits = text.lstrip("-").replace(".", "")
    assert length(number) == (len(digits) if number else max(1, number.scale))


@given(st.integers(0, 10**40), st.integers(2, 16))
def test_other_bases_read_back(value: int, base: int) -> None:
    text = do.text(Number(value), base)
    assert int(text, base) == value
    assert len(text) == 1 or do.parse(text, base) == Number(value)


def test_numbers_beyond_what_python_spells() -> None:
    text = do.text(Number(7**20_000))
    assert len(text) == 16_902
    assert do.parse(text, 10) == Number(7**20_000)


def test_impossible_operations() -> None:
    with pytest.raises(NumberError, match="Divide by zero"):
        do.divide(Number(1), Number(0), 0)
    with pytest.raises(NumberError, match="Modulo by zero"):
        do.modulo(Number(1), Number(0), 0)
    with pytest.raises(NumberError, match="Square root"):
        do.sqrt(Number(-1), 0)
    with pytest.raises(NumberError, match="divide by zero"):
        do.power(Number(0), -1, 0)


HOSTILE = {
    "a tower": "2^2^30\n",
    "an endless loop": "while(1) x+=1\n",
    "an endless for": "for(;;) x=x\n",
    "squaring": "x=3\nwhile(1) x=x*x\n",
    "a large scale": "scale=999999999\n1/3\n",
    "a long sine": "scale=3000\nwhile(1) s(1)\n",
    "a large exponential": "e(10^9)\n",
    "a long number in another base": "obase=2\n3^900000\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_stopped(name: str) -> None:
    limits = Limits(steps=200_000, expansion_bytes=1 * MIB, wall_seconds=200)
    session = new_session(limits=limits)
    assert session.exec(["bc", "-l"], stdin=HOSTILE[name].encode()).limit in ("steps", "expansion_bytes")
    assert session.exec(["bc"], stdin=b"1+1\n").stdout == b"2\n"


@pytest.mark.parametrize("program", ["[lax]sa lax", "[d*lax]sa 3lax", "2 2 30^^p", "[1lax]sa lax"])
def test_dc_is_stopped(program: str) -> None:
    limits = Limits(steps=200_000, expansion_bytes=1 * MIB, wall_seconds=200)
    assert new_session(limits=limits).exec(["dc", "-e", program]).limit in ("steps", "expansion_bytes")


TOKENS = (
    "define auto if else while for break continue return print length( sqrt( scale ibase obase last ( ) { } [ ] ; , "
    '+ - * / % ^ = += == < ! && || ++ -- x y f( a[ 1 2 .5 FF "s" \\ # /* */ @'
).split()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([*TOKENS, "\n"]), max_size=30).map(" ".join))
def test_bc_never_crashes(text: str) -> None:
    limits = Limits(steps=20_000, expansion_bytes=1 * MIB, wall_seconds=200)
    with suppress(UnicodeDecodeError):
        result = new_session(limits=limits).exec(["bc"], stdin=(text + "\n").encode())
        assert result.limit or result.status in (0, 1)
        assert b"bug" not in result.stderr


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="0123456789.+-*/%^|~vpnfPcdrRkioKIOzZXax?qQsSlL:;<>=[]#ab _", max_size=30))
def test_dc_never_crashes(text: str) -> None:
    limits = Limits(steps=20_000, expansion_bytes=1 * MIB, wall_seconds=200)
    result = new_session(limits=limits).exec(["dc", "-e", text])
    assert result.limit or result.status in (0, 1)
    assert b"bug" not in result.stderr
