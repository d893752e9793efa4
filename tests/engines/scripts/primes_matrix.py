def primes(limit):
    sieve = bytearray([1]) * (limit + 1)
    sieve[:2] = b"\0\0"
    for n in range(2, int(limit**0.5) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, limit + 1, n)))
    return [n for n, flag in enumerate(sieve) if flag]


def multiply(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def power(matrix, n):
    result = [[int(i == j) for j in range(len(matrix))] for i in range(len(matrix))]
    while n:
        if n & 1:
            result = multiply(result, matrix)
        matrix, n = multiply(matrix, matrix), n >> 1
    return result


found = primes(100_000)
print(len(found), found[-1], sum(found) % 10007)
print(power([[1, 1], [1, 0]], 200)[0][1])
print([list(row) for row in zip(*[[1, 2], [3, 4], [5, 6]])])
