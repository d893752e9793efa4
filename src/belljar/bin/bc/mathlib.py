"""bc -l: sine, cosine, arctangent, logarithm, exponential and Bessel functions, to the precision GNU's give.

The working scales are part of the behaviour (they show in the last digits), so they follow GNU's; the series are
the textbook ones.
"""

from __future__ import annotations

from belljar.bin.bc.number import ONE, ZERO, Arithmetic, Number, length, whole_part

TWO = Number(2)
FIFTH = Number(2, 1)
HALF = Number(5, 1)

# Digits of pi/4 and of atan(1/5), enough for the scales GNU answers without a series.
_QUARTER_PI = "785398163397448309615660845819875721049292349843776455243736"
_ATAN_FIFTH = "197395559849880758370049765194790293447585103787852101517688"


class MathLibrary:
    """The functions of `bc -l` over one arithmetic; each takes the scale wanted."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.arithmetic = arithmetic

    def exponential(self, x: Number, scale: int) -> Number:
        """e(x): halve x until it is small, sum the series, square back."""
        do = self.arithmetic
        negative = x.value < 0
        x = Number(abs(x.value), x.scale)
        growth = do.multiply(Number(44, 2), x, scale)
        work = 6 + scale + whole_part(growth)
        do.charge_size(work)
        halvings = 0
        step = x.scale + 1
        while do.compare(x, ONE) > 0:
            halvings += 1
            x = do.divide(x, TWO, step)
            step += 1
        total, term, factorial, count = do.add(ONE, x), x, 1, 2
        while True:
            do.charge(2)
            term = do.multiply(term, x, work)
            factorial *= count
            part = do.divide(term, Number(factorial), work)
            if not part.value:
                break
            total = do.add(total, part)
            count += 1
        for _ in range(halvings):
            total = do.multiply(total, total, work)
        return do.divide(ONE, total, scale) if negative else do.divide(total, ONE, scale)

    def logarithm(self, x: Number, scale: int) -> Number:
        """l(x): take roots until x is near 1, then the series of the inverse hyperbolic tangent."""
        do = self.arithmetic
        if x.value <= 0:
            return do.divide(do.subtract(ONE, Number(10**scale)), ONE, scale)
        work = scale + 6
        factor = 2
        while do.compare(x, TWO) >= 0 or do.compare(x, HALF) <= 0:
            do.charge(2)
            factor *= 2
            x = do.sqrt(x, work)
        ratio = do.divide(do.subtract(x, ONE), do.add(x, ONE), work)
        total, power, square, odd = ratio, ratio, do.multiply(ratio, ratio, work), 3
        while True:
            do.charge(2)
            power = do.multiply(power, square, work)
            part = do.divide(power, Number(odd), work)
            if not part.value:
                break
            total = do.add(total, part)
            odd += 2
        return do.divide(do.multiply(Number(factor), total, work), ONE, scale)

    def sine(self, x: Number, scale: int) -> Number:
        do = self.arithmetic
        wide = whole_part(do.add(do.multiply(Number(11, 1), Number(scale), 1), TWO))
        quarter = self.arctangent(ONE, wide)
        negative = x.value < 0
        x = Number(abs(x.value), x.scale)
        turns = whole_part(do.divide(do.add(do.divide(x, quarter, 0), TWO), Number(4), 0))
        x = do.subtract(x, Number(quarter.value * 4 * turns, quarter.scale))
        if turns % 2:
            x = Number(-x.value, x.scale)
        work = scale + 2
        total = part = x
        square = do.multiply(Number(-x.value, x.scale), x, work)
        odd = 3
        while True:
            do.charge(2)
            part = do.multiply(part, do.divide(square, Number(odd * (odd - 1)), work), work)
            if not part.value:
                break
            total = do.add(total, part)
            odd += 2
        return do.divide(Number(-total.value, total.scale) if negative else total, ONE, scale)

    def cosine(self, x: Number, scale: int) -> Number:
        do = self.arithmetic
        work = whole_part(do.multiply(Number(scale), Number(12, 1), 1))
        shifted = do.add(x, do.multiply(self.arctangent(ONE, work), TWO, work))
        return do.divide(self.sine(shifted, work), ONE, scale)

    def arctangent(self, x: Number, scale: int) -> Number:
        """a(x): subtract atan(1/5) until x is small, then the series."""
        do = self.arithmetic
        sign = Number(-1 if x.value < 0 else 1)
        x = Number(abs(x.value), x.scale)
        for known, digits in ((ONE, _QUARTER_PI), (FIFTH, _ATAN_FIFTH)):
            if scale <= 60 and do.compare(x, known) == 0:
                count = 25 if scale <= 25 else 40 if scale <= 40 else 60
                return do.divide(Number(int(digits[:count]), count), sign, scale)
        base = ZERO
        if do.compare(x, FIFTH) > 0:
            base = self.arctangent(FIFTH, scale + 5)
        work = scale + 3
        steps = 0
        while do.compare(x, FIFTH) > 0:
            do.charge(2)
            steps += 1
            x = do.divide(do.subtract(x, FIFTH), do.add(ONE, do.multiply(x, FIFTH, work)), work)
        total = power = x
        square = do.multiply(Number(-x.value, x.scale), x, work)
        odd = 3
        while True:
            do.charge(2)
            power = do.multiply(power, square, work)
            part = do.divide(power, Number(odd), work)
            if not part.value:
                break
            total = do.add(total, part)
            odd += 2
        return do.divide(do.add(Number(base.value * steps, base.scale), total), sign, scale)

    def bessel(self, order: Number, x: Number, scale: int) -> Number:
        do = self.arithmetic
        n = whole_part(order)
        negative = n < 0 and n % 2 == 1
        n = abs(n)
        do.charge(1 + n)
        do.charge_size(n)
        factorial = 1
        for count in range(2, n + 1):
            do.charge(1 + (factorial.bit_length() >> 10))
            factorial *= count
        work = whole_part(do.multiply(Number(15, 1), Number(scale), 1))
        factor = do.divide(do.divide(do.power(x, n, work), Number(2**n), work), Number(factorial), work)
        square = do.divide(do.multiply(Number(-x.value, x.scale), x, work), Number(4), work)
        wide = work + length(factor) - factor.scale
        total = part = ONE
        count = 1
        while True:
            do.charge(2)
            part = do.multiply(part, square, wide)
            part = do.divide(do.divide(part, Number(count), wide), Number(n + count), wide)
            if not part.value:
                break
            total = do.add(total, part)
            count += 1
        sign = Number(-factor.value, factor.scale) if negative else factor
        return do.divide(do.multiply(sign, total, wide), ONE, scale)
