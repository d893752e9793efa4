import math
import statistics
from decimal import ROUND_HALF_UP, Decimal, getcontext
from fractions import Fraction

getcontext().prec = 30
print(Decimal("0.1") + Decimal("0.2"), Decimal(1) / 7, Decimal("2.675").quantize(Decimal("0.01"), ROUND_HALF_UP))
print(sum([Fraction(1, n) for n in range(1, 8)]), Fraction("3.25").limit_denominator(3), float(Fraction(1, 3)))
data = [2, 4, 4, 4, 5, 5, 7, 9]
print(statistics.mean(data), statistics.median(data), statistics.pstdev(data), statistics.mode(data), statistics.quantiles(data))
print(math.isqrt(10**20), math.comb(30, 15), math.gcd(84, 36), math.fsum([0.1] * 10), math.prod(range(1, 8)), round(math.pi, 8))
print(0.1 + 0.2, 1e16 + 1, 2**100, -7 // 2, -7 % 3, divmod(7, -2), (1 + 2j) * 1j, int("ff", 16), bin(10))
