"""An interpreter that its owner drives: runs what comes on descriptor 3, answers on 4 (see api/dialogue.py)."""

import _signal  # not `signal`, which tells the kernel, where nothing changes
import asyncio
import builtins
import inspect
import linecache
import os
import sys
import traceback
from ast import Expr, Expression, PyCF_ALLOW_TOP_LEVEL_AWAIT, PyCF_ONLY_AST
from builtins import compile, eval, exec  # as they are now: what a guest makes of them is for its own code

from _belljar import main, tools
from _belljar.tools import HostError
from _belljar.values import NotPlain, dumps, loads

INPUT, OUTPUT = 3, 4
PIECE = 1 << 20
READY = '{"op":"ready"}'
TEXT_MAX = 200_000
"""Characters of one object's text, shown."""
OWN = main.OWN
FLAGS = PyCF_ALLOW_TOP_LEVEL_AWAIT
WARM_UP_SOURCES = ("x = [n * 2 for n in range(10)]\ndef f(n):\n    return {str(n): n}\ny = f(1)\nNone", "None")
"""Warm-up code of a copy of a prefix; it has no value, which would be kept."""


class Closed(BaseException):
    """The owner closed the session."""


class Session:
    """`read(size)` and `write(data)` move bytes, `converse(data, size)` writes and reads; `park()` comes back in a copy
    of this process."""

    handler = _signal.default_int_handler
    """SIGINT handler during a run."""
    number = 0
    """Number of the current run: each line to the owner begins with it."""

    def __init__(self, read, write, converse, park):
        self.read = read
        self.write = write
        self.converse = converse
        self.park = park
        self.buffer = b""
        self.answers = {}
        self.calls = 0
        self.bound = set()
        """The names of host functions."""
        self.namespace = main.fresh_main()
        self.namespace["__name__"] = "__main__"
        builtins.display = self.display

    # The conversation.

    def send(self, **message):
        self.put(dumps(message))

    def put(self, line):
        data = f"{self.number} {line}\n".encode("ascii")
        while data:
            data = data[self.write(data[:PIECE]) :]

    def answer(self, line):
        """Send a line, and receive the owner's next message: in one trip to the kernel, if it is not here yet."""
        if self.buffer or len(line) >= PIECE:
            self.put(line)
        else:
            self.buffer = self.converse(f"{self.number} {line}\n".encode("ascii"), PIECE)
            if not self.buffer:
                raise Closed
        return self.receive()

    def receive(self):
        """The owner's next message."""
        parts = [self.buffer]
        while b"\n" not in parts[-1]:
            data = self.read(PIECE)
            if not data:
                raise Closed
            parts.append(data)
        line, _, self.buffer = b"".join(parts).partition(b"\n")
        return loads(line)

    def serve(self):
        try:
            message = self.answer(READY)
            while True:
                if message["op"] == "branched":
                    reseed()
                if message["op"] != "run":
                    message = self.receive()  # an answer that came too late
                    continue
                self.number = message["run"]
                done = self.run(message)
                main.flush()
                if message["mode"] == "prefix" and '"ok":true' in done:
                    self.put(done)
                    self.buffer = b""
                    self.park()
                    done, self.number = READY, 0
                message = self.answer(done)
        except Closed:
            return

    # A run.

    def run(self, message):
        """Run code; return the result line."""
        for name in message["globals"]:
            self.namespace[name] = tools.bound[name] = self.function(name)
            self.bound.add(name)
        if message["mode"] in ("save", "load"):
            return self.keep(message["mode"], message["values"])
        buffer_lines("live" in message)
        self.namespace.update(message["values"])
        sys.modules["__main__"].__dict__.pop("__all__", None)
        code, file = message["code"], message["file"]
        linecache.cache[file] = (len(code), None, code.splitlines(True), file)
        try:
            body, last = self.compile(code, file)
        except SyntaxError as error:
            return self.failed("SYNTAX_ERROR", error)
        except (ValueError, MemoryError, RecursionError) as error:
            return self.failed("SYNTAX_ERROR", error)
        try:
            try:
                _signal.signal(_signal.SIGINT, self.handler)
                value = self.execute(body, last)
            finally:
                self.handler = _signal.signal(_signal.SIGINT, too_late)
            return self.ended(value, last is not None)
        except SystemExit as end:
            if end.code in (None, 0):
                return self.ended(None, False)
            return self.failed("RUNTIME_ERROR", end)
        except Closed:
            raise
        except MemoryError as error:
            return self.failed("MEMORY_LIMIT", error)
        except BaseException as error:
            return self.failed("RUNTIME_ERROR", error)

    def keep(self, mode, options):
        """Write the variables down, or take them from there."""
        from _belljar import state

        try:
            if mode == "load":
                exports = {"lost": state.load(self, options["data"])}
            else:
                data, left_out = state.save(self, options["max_bytes"], options["leave_out"])
                used = [name for name in ("numpy", "pandas", "matplotlib") if name in sys.modules]
                exports = {
                    "data": data,
                    "left_out": left_out,
                    "begins_with": "".join(f"import {name}\n" for name in used),
                }
        except MemoryError as error:
            return self.failed("MEMORY_LIMIT", error)
        except Exception as error:
            return self.failed("RUNTIME_ERROR", error)
        return dumps({"op": "done", "ok": True, "exports": exports, "unsent": {}})

    def compile(self, code, file):
        """Compile to (code to execute, expression to evaluate then); either may be None."""
        # A line may well be one expression: that is found out sooner than by its tree. Not where the attempt could
        # warn, which the next would do again.
        if "\n" not in code and "\\" not in code and not code[:1].isspace():
            try:
                return None, compile(code, file, "eval", FLAGS, dont_inherit=True)
            except SyntaxError:
                pass
        tree = compile(code, file, "exec", PyCF_ONLY_AST, dont_inherit=True)
        last = None
        if tree.body and isinstance(tree.body[-1], Expr):
            last = compile(Expression(tree.body.pop().value), file, "eval", FLAGS, dont_inherit=True)
        return compile(tree, file, "exec", FLAGS, dont_inherit=True), last

    def execute(self, body, last):
        if any(code is not None and code.co_flags & inspect.CO_COROUTINE for code in (body, last)):
            return asyncio.run(self.execute_async(body, last))
        if body is not None:
            exec(body, self.namespace)
        return eval(last, self.namespace) if last is not None else None  # noqa: S307 - the guest's own code

    async def execute_async(self, body, last):
        value = None
        for code in (body, last):
            if code is not None:
                value = eval(code, self.namespace)  # noqa: S307 - as above
                if code.co_flags & inspect.CO_COROUTINE:
                    value = await value
        return value if last is not None else None

    def ended(self, value, expression):
        names = self.namespace.get("__all__", [])
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise TypeError("__all__ must be a list of names")
        exports, unsent = [], {}
        for name in names:
            if name not in self.namespace:
                raise NameError(f"__all__ names {name!r}, which the run did not define")
            exports.append(f"{dumps(name)}:{dumps(self.namespace[name], name)}")
        if expression:
            if value is not None:
                builtins._ = value
            try:
                exports.append(f'"default":{dumps(value, "the last expression")}')
            except NotPlain as error:
                unsent["default"] = str(error)
                self.display(value)
        return (
            f'{{"op":"done","ok":true,"exports":{{{",".join(exports)}}},"unsent":{dumps(unsent) if unsent else "{}"}}}'
        )

    def failed(self, code, error):
        trace = step = error.__traceback__
        while step is not None:
            frame, step = step.tb_frame.f_code, step.tb_next
            if frame.co_filename.startswith(OWN) and frame.co_name == "execute_async":
                trace = step  # before it are frames of asyncio
        while trace is not None and trace.tb_frame.f_code.co_filename.startswith(OWN):
            trace = trace.tb_next
        if code == "SYNTAX_ERROR":
            trace = None
        try:
            stack = "".join(traceback.format_exception(type(error), error, trace))
        except BaseException as another:
            stack = f"(the traceback could not be formatted: {type(another).__name__})\n"
        name = type(error).__name__
        try:
            message = str(error)
            if type(error) is HostError:
                name, message = error.name, error.message
        except BaseException:
            message = "(its text could not be had)"
        error = None
        told = {"code": code, "name": name, "message": message[:TEXT_MAX], "stack": stack[:TEXT_MAX]}
        return dumps({"op": "done", "ok": False, "error": told})

    # What a run shows.

    def display(self, *objects):
        """Show objects to the owner: what has an HTML or PNG form in that, and everything as text."""
        for shown in objects:
            html = self.form(shown, "_repr_html_")
            if html is not None:
                self.send(op="output", mime="text/html", data=html)
            image = self.form(shown, "_repr_png_")
            if image is not None:
                self.send(op="output", mime="image/png", data=image)
            text = shown if isinstance(shown, str) else repr(shown)
            self.send(op="output", mime="text/plain", data=text[:TEXT_MAX])

    def form(self, shown, name):
        method = getattr(type(shown), name, None)
        if method is None:
            return None
        try:
            made = method(shown)
        except Exception:
            return None
        return made if isinstance(made, (str, bytes)) else None

    # Host functions.

    def function(self, name):
        def call(*args, **kwargs):
            self.calls += 1
            number = self.calls
            positional, named = dumps(args, f"{name}() args"), dumps(kwargs, f"{name}() kwargs")
            line = f'{{"op":"call","id":{number},"name":{dumps(name)},"args":{positional},"kwargs":{named}}}'
            # Not by get_running_loop(), whose exception would be part of what the host function raises.
            if asyncio._get_running_loop() is None:
                self.take(self.answer(line))
                return self.result(number)
            self.put(line)
            return self.result_later(number)

        call.__name__ = call.__qualname__ = name
        call.host_name = name
        call.__doc__ = f"{name}(...): a function of the host. In async code it gives an awaitable."
        return call

    def result(self, number):
        while number not in self.answers:
            self.take(self.receive())
        answer = self.answers.pop(number)
        if "error" in answer:
            raise HostError(answer["error"]["name"], answer["error"]["message"])
        return answer["value"]

    def take(self, message):
        if message.get("op") == "answer":
            self.answers[message["id"]] = message

    async def result_later(self, number):
        await asyncio.sleep(0)  # what runs beside this gets to make its calls first
        return self.result(number)


def too_late(number, frame):
    """Ignore SIGINT between runs: it was meant for one that has ended."""


def buffer_lines(live):
    """Have standard output flushed after each line, or not; a guest may have closed or replaced it."""
    try:
        if sys.__stdout__.line_buffering != live:
            sys.__stdout__.reconfigure(line_buffering=live)
    except Exception:
        return


def reseed():
    """Reseed random number generators, in a copy of the interpreter, as Python does after fork."""
    random = sys.modules.get("random")
    if random is not None:
        random.seed()
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        numbers.seed()


def show_figures():
    """Have matplotlib give its figures to the owner."""
    os.environ["MPLBACKEND"] = "module://_belljar.figures"
    figures = sys.modules.get("matplotlib")
    if figures is not None:
        figures.rcParams._set("backend", "module://_belljar.figures")
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:
            pyplot._backend_mod = None


def run_sources(sources):
    """Run sources in a session without an owner."""
    run = {"op": "run", "run": 0, "mode": "repl", "file": "<run>", "globals": ["look"], "values": {"x": 1}}
    lines = [dumps({**run, "code": source}).encode() + b"\n" for source in sources]

    def read(size):
        return lines.pop(0) if lines else b""

    Session(read, len, lambda data, size: read(size), None).serve()
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    del builtins.display
    tools.bound.clear()


def warm_up_run():
    """Warm up a copy that waits for its run, leaving nothing behind.

    Memory that any run writes to is then the copy's own. The prefix's code can't notice it.
    """
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return
    stand_in = Session.__new__(Session)
    run = {"op": "run", "run": 0, "mode": "module", "file": "<warm-up>", "globals": [], "values": {}}
    lines = [dumps({**run, "code": source}).encode() + b"\n" for source in WARM_UP_SOURCES]
    stand_in.read, stand_in.write = (lambda size: lines.pop(0)), len
    stand_in.buffer, stand_in.namespace = b"", {"__name__": "__main__", "__builtins__": builtins}
    try:
        stand_in.send(op="ready")
        while lines:
            stand_in.put(stand_in.run(stand_in.receive()))
    except BaseException:
        pass  # what is wrong here is wrong in the run, which says so
    linecache.cache.pop("<warm-up>", None)
    main.seed()
    main.seeded()


def serve():
    """Serve runs until the owner closes descriptor 3."""
    from _belljar import hostcalls

    def write(data):
        return hostcalls.call("write", OUTPUT, data)[0]

    def read(size):
        return hostcalls.call("read", INPUT, size)[0]

    def converse(data, size):
        status, got = hostcalls.converse(OUTPUT, data, INPUT, size)
        return read(size) if status else got

    def park():
        program, real = hostcalls.park()
        while not real:
            warm_up_run()
            program, real = hostcalls.park()
        _, environment, directory, _, numbers = program
        main.begin(environment, directory, numbers)

    show_figures()
    Session(read, write, converse, park).serve()
