import contextlib, sys, traceback


class AppError(Exception):
    pass


def inner():
    try:
        {}["missing"]
    except KeyError as error:
        raise AppError("could not load") from error


try:
    inner()
except AppError as error:
    print(repr(error), repr(error.__cause__))
    print(traceback.format_exception_only(error)[0], end="")
    print([frame.name for frame in traceback.extract_tb(error.__traceback__)])
try:
    raise ExceptionGroup("several", [ValueError(1), TypeError("t"), ExceptionGroup("more", [ValueError(2)])])
except* ValueError as group:
    print("values", group.exceptions)
except* TypeError as group:
    print("types", group.exceptions)


@contextlib.contextmanager
def section(name):
    print("enter", name)
    try:
        yield name.upper()
    except ZeroDivisionError:
        print("swallowed")
    finally:
        print("leave", name)


with section("a") as upper, contextlib.suppress(IndexError):
    print(upper)
    1 / 0
with contextlib.ExitStack() as stack:
    for name in "xy":
        stack.callback(print, "closed", name)
error = ValueError("base")
error.add_note("a note")
print(error.__notes__)
