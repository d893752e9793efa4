"""factor - print the prime factors of numbers

Usage: factor [NUMBER]...

Print the prime factors of each specified integer NUMBER. If none are specified, read them from standard input.
"""

from __future__ import annotations

import re
from math import gcd, isqrt

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsdecode
from belljar.bin._kit import flag, utility
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process

_NUMBER = re.compile(r"\s*\+?(\d+)", re.ASCII)
_LONGEST = 1000
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)


@dataclass(frozen=True, slots=True)
class Options:
    exponents: bool = flag("-h", "--exponents", "print repeated factors in form p^e unless e is 1")


@utility("factor", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    words = operands or re.split(r"[\n\t ]+", fsdecode(process.read_file("-")).strip("\n\t "))
    if words == [""] and not operands:
        return 0
    status = 0
    for text in words:
        # A C string ends at a NUL.
        word = text.partition("\0")[0]
        match = _NUMBER.fullmatch(word)
        if match is None or len(match[1]) > _LONGEST:
            process.stdout.flush()
            process.warn(f"{quote(word, process.env)} is not a valid positive integer")
            status = 1
            continue
        number = int(match[1])
        found = factors(process, number)
        if options.exponents:
            texts = [f"{p}^{n}" if (n := found.count(p)) > 1 else str(p) for p in dict.fromkeys(found)]
        else:
            texts = list(map(str, found))
        process.print(" ".join([f"{number}:", *texts]))
    return status


def factors(process: Process, number: int) -> list[int]:
    """Prime factors in order: small ones by division, the rest by Pollard's rho."""
    found: list[int] = []
    for prime in (2, 3):
        while number and number % prime == 0:
            found.append(prime)
            number //= prime
    divisor, step = 5, 2
    while divisor < 2000 and divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += step
        step = 6 - step
    if number > 1:
        pending = [number]
        while pending:
            part = pending.pop()
            if part < 2000 * 2000 or is_prime(process, part):
                found.append(part)
            else:
                divisor = _split(process, part)
                pending += [divisor, part // divisor]
    return sorted(found)


def is_prime(process: Process, number: int) -> bool:
    """Miller and Rabin's test; certain below 3 * 10^24, and beyond all doubt above."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd //= 2
        twos += 1
    for witness in _WITNESSES:
        process.budget.charge(number.bit_length() // 16 + 1)
        x = pow(witness, odd, number)
        if x in (1, number - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % number
            if x == number - 1:
                break
        else:
            return False
    return True


def _split(process: Process, number: int) -> int:
    """A factor of a number that has one, by Pollard's rho as Brent runs it."""
    root = isqrt(number)
    if root * root == number:
        return root
    offset = 1
    while True:
        y, power, product = 2, 1, 1
        divisor = 1
        while divisor == 1:
            x = y
            for _ in range(power):
                y = (y * y + offset) % number
            done = 0
            while done < power and divisor == 1:
                saved = y
                count = min(128, power - done)
                process.budget.charge(count // 2 + 1)
                for _ in range(count):
                    y = (y * y + offset) % number
                    product = product * abs(x - y) % number
                divisor = gcd(product, number)
                done += count
            power *= 2
        if divisor == number:
            divisor = 1
            while divisor == 1:
                process.budget.charge()
                saved = (saved * saved + offset) % number
                divisor = gcd(abs(x - saved), number)
        if divisor != number:
            return divisor
        offset += 1
