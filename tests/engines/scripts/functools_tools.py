import functools, operator


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(fib(90), fib.cache_info().misses)


@functools.singledispatch
def describe(value):
    return f"something {value}"


@describe.register
def _(value: int):
    return f"int {value}"


@describe.register(list)
def _(value):
    return f"list of {len(value)}"


print(describe(1), describe([1]), describe("x"))
print(functools.reduce(operator.mul, range(1, 11)), functools.partial(int, base=2)("1011"))


def traced(function):
    @functools.wraps(function)
    def wrapper(*args):
        print("call", function.__name__, args)
        return function(*args)

    return wrapper


@traced
def area(w, h):
    "Area."
    return w * h


print(area(2, 3), area.__doc__, sorted(["b", "A", "c"], key=functools.cmp_to_key(lambda a, b: (a.lower() > b.lower()) - (a.lower() < b.lower()))))
