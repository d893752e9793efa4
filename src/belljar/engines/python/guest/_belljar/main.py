"""Runs a program as `python3` does: its source, its module `__main__`, its end."""

import atexit
import builtins
import gc
import io
import linecache
import os
import sys
import textwrap
import types
import warnings
from itertools import islice

from _belljar import files, hostcalls, processes
from _belljar.native import native
from _belljar.options import Bad, Options

OWN = "/usr/local/lib/python315.zip/_belljar/"
VERSION = "3.15"
SIGINT = 2
WARM_UP_SOURCES = (
    "print(1)",
    "import sys, os, json\nx = json.dumps({'a': [1]})\nprint(x)",
    "1/0",
    "open('/no/such/file')",
    "raise SystemExit(0)",
)
WARM_UP_ROUNDS = 8
"""Rounds: CPython specialises its bytecode as it runs, which in a program would copy page by page."""
WARM_UP_CODE = """
import os, sys
print(1)
os.path.exists("/workspace")
try:
    open("/no/such/file")
except OSError:
    x = [n for n in range(100)]
"""
WARM_UP_PROGRAM = ([b"python3", b"-c", WARM_UP_CODE.encode()], [b"PATH=/usr/bin"], b"/", {}, [1, 0, 0, 0, 0o022, 0])
"""The warm-up program, as `hostcalls.park` returns programs."""
_template = {}
"""The template's modules and sys.path."""
_here = {"directory": b"/", "seeded": False, "environment": None}
"""The C library's working directory and environment, and whether `random` was seeded in this process."""


def run(program):
    """Run the program that START describes. Does not return."""
    argv, environment, directory, engine, numbers = program
    status, signal = 1, 0
    try:
        begin(environment, directory, numbers)
        status, signal = execute(argv, engine)
    except BaseException as error:  # ours: a program's own are caught below
        sys.__excepthook__(type(error), error, error.__traceback__)
    finally:
        error = hostcalls.leave(status, signal)
        hostcalls.leave(unsaid(status, error), signal)


def begin(environment, directory, numbers):
    """Set environment, directory and ids. Steps done by a warm-up in this process are not repeated."""
    files.identity.update(zip(("pid", "ppid", "uid", "gid", "umask"), numbers))
    if environment != _here["environment"]:
        take_environment(environment)
    _here["environment"] = None
    if directory != _here["directory"]:
        try:
            native.chdir(directory)
            _here["directory"] = directory
        except OSError:
            pass
    if not _here["seeded"]:
        seed()
    _here["seeded"] = False
    terminals = numbers[5]
    for fd, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        lines = fd == 2 or bool(terminals >> fd & 1)
        if stream is not None and fd and stream.line_buffering != lines:
            stream.reconfigure(line_buffering=lines)


def take_environment(environment):
    known, variables = processes.variables.copy(), processes.variables
    os.environ._data.clear()
    variables.clear()
    for entry in environment:
        name, _, value = entry.partition(b"=")
        os.environ._data[name] = variables[name] = value
        if known.pop(name, None) != value:
            native.putenv(name, value)
    for name in known:
        native.unsetenv(name)


def seed():
    """Have random numbers be this process's own: its origin's have the same state."""
    if "random" in sys.modules:
        sys.modules["random"].seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()


def seeded():
    """Note that `random` is seeded in this process."""
    _here["seeded"] = True


def execute(argv, engine):
    """The whole of a run: the exit status, and the signal it is to look as if it died of."""
    asks = any(name.startswith(b"PYTHON") for name in os.environ._data)
    try:
        options = Options([word.decode("utf-8", "surrogateescape") for word in argv], os.environ if asks else None)
    except Bad as bad:
        getattr(sys, bad.stream).write(bad.text)
        return finish(bad.status)
    configure(options, engine)
    if engine.get("session"):
        from _belljar import session

        sys.path.insert(0, "")
        return finish(*outcome(session.serve))
    if options.values["inspect"] or (engine.get("terminal") and is_interactive(options)):
        from _belljar import repl

        return repl.interactive(options)
    return finish(*outcome(lambda: run_main(options)))


def is_interactive(options):
    return options.command is None and options.module is None and options.file is None


def configure(options, engine):
    values = options.values
    if engine.get("closed"):
        lose_streams(engine["closed"])
    sys.flags = options.flags()
    sys.argv = options.args
    sys.orig_argv = [options.name, *options.args]
    sys.executable = sys._base_executable = engine.get("executable", "/usr/bin/python3")
    sys.warnoptions[:] = options.warnings
    sys._xoptions.clear()
    sys._xoptions.update(options.xoptions)
    sys.dont_write_bytecode = bool(values["dont_write_bytecode"])
    if options.warnings:
        warnings._processoptions(options.warnings)
    if values["optimize"]:
        from importlib import _bootstrap_external

        _bootstrap_external.SourceLoader.source_to_code.__kwdefaults__["_optimize"] = values["optimize"]
    if options.unbuffered:
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is not None:
                unbuffer(name)
    sys.path[:] = search_path(options, engine.get("site", True))


def lose_streams(closed):
    """Set streams whose descriptors are closed to None."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        if closed >> fd & 1:
            setattr(sys, name, None)
            setattr(sys, f"__{name}__", None)


def unbuffer(name):
    """Make a stream unbuffered."""
    old = getattr(sys, name)
    encoding, errors, lines = old.encoding, old.errors, old.line_buffering
    raw = old.detach().detach()
    new = io.TextIOWrapper(raw, encoding, errors, line_buffering=lines, write_through=True)
    new.mode = "w"
    setattr(sys, name, new)
    setattr(sys, f"__{name}__", new)


def search_path(options, site):
    values = options.values
    found = []
    if not values["ignore_environment"] and b"PYTHONPATH" in os.environ._data:
        found += [os.path.abspath(entry) for entry in os.environ["PYTHONPATH"].split(os.pathsep) if entry]
    found += [files.LIBRARY, f"/usr/local/lib/python{VERSION}"]
    if values["no_site"]:
        return found
    environment = sys.executable.rpartition("/bin/")[0]
    if environment not in ("", "/usr", "/usr/local") and os.path.exists(f"{environment}/pyvenv.cfg"):
        sys.prefix = sys.exec_prefix = environment
        found.append(f"{environment}/lib/python{VERSION}/site-packages")
        with open(f"{environment}/pyvenv.cfg") as file:
            if "include-system-site-packages = true" not in file.read():
                return with_links(found)
    if not values["no_user_site"]:
        home = os.environ.get("HOME")
        if home:
            found.append(f"{home}/.local/lib/python{VERSION}/site-packages")
    found.append(f"/usr/local/lib/python{VERSION}/site-packages")
    return [*(with_links(found) if site else found), files.PACKAGES]


def with_links(found):
    """Add the entries of the .pth files in the last directory: editable installs."""
    try:
        names = [name for name in native.listdir(found[-1]) if name.endswith(".pth")]
    except OSError:
        return found
    before, sys.path[:] = sys.path[:], found
    for name in sorted(names):
        sys.modules["site"].addpackage(found[-1], name, None)
    found, sys.path[:] = sys.path[:], before
    return found


def fresh_main():
    """A new `__main__`, with nothing of ours in it."""
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    module.__dict__["__loader__"] = sys.modules["_frozen_importlib"].BuiltinImporter
    sys.modules["__main__"] = module
    return module.__dict__


def run_main(options):
    """Run what the command line names. Raises what it raises."""
    safe = options.values["safe_path"]
    level = options.values["optimize"] or -1
    if options.command is not None:
        if not safe:
            sys.path.insert(0, "")
        command = textwrap.dedent(options.command) if options.command[:1].isspace() else options.command
        return run_source(command + "\n", "<string>", level)
    if options.module is not None:
        return run_module(options.module, safe)
    if options.file is not None:
        return run_file(options, safe, level)
    if not safe:
        sys.path.insert(0, "")
    return run_source(sys.stdin.buffer.read(), "<stdin>", level)


def run_source(source, name, level, namespace=None):
    namespace = fresh_main() if namespace is None else namespace
    code = compile(source, name, "exec", dont_inherit=True, optimize=level)
    if name == "<string>":
        linecache._register_code(code, source, name)
    exec(code, namespace)


def run_module(name, safe):
    import runpy

    if not safe:
        sys.path.insert(0, os.getcwd())
    namespace = fresh_main()
    try:
        _, spec, code = runpy._get_module_details(name, runpy._Error)
    except runpy._Error as error:
        sys.exit(f"{sys.executable}: {error}")
    # The library is compiled files only; programs look for the name that a source would have.
    sys.argv[0] = spec.origin.removesuffix("c") if spec.origin.startswith(files.OWN) else spec.origin
    runpy._run_code(code, namespace, None, "__main__", spec)


def run_file(options, safe, level):
    path = options.file
    full = path if path.startswith("/") else os.path.join(os.getcwd(), path)
    try:
        if os.path.isdir(full) or full.endswith((".zip", ".pyz")):
            return run_container(path)
        with io.open_code(full) as file:
            source = file.read()
    except OSError as error:
        if isinstance(error, NotADirectoryError) and is_in_archive(full):
            return run_container(path)
        number = hostcalls.TO_LINUX.get(error.errno, error.errno)
        sys.stderr.write(f"{options.name}: can't open file {full!r}: [Errno {number}] {error.strerror}\n")
        raise SystemExit(2) from None
    if not safe:
        sys.path.insert(0, os.path.dirname(os.path.realpath(full)))
    namespace = fresh_main()
    from importlib.machinery import SourceFileLoader, SourcelessFileLoader

    namespace["__file__"] = full
    if full.endswith(".pyc"):
        namespace["__loader__"] = loader = SourcelessFileLoader("__main__", full)
        return exec(loader.get_code("__main__"), namespace)
    namespace["__loader__"] = SourceFileLoader("__main__", full)
    if options.skip_first:
        source = b"\n" + source.partition(b"\n")[2]
    run_source(source, full, level, namespace)


def is_in_archive(path):
    import zipimport

    try:
        zipimport.zipimporter(path)
    except ImportError:
        return False
    return True


def run_container(path):
    import runpy

    sys.path.insert(0, path)
    fresh_main()
    runpy._run_module_as_main("__main__", False)


# The end.


def outcome(body):
    """Run a program; return its exit status, and the signal that killed it (0: none)."""
    try:
        body()
    except SystemExit as end:
        return exit_status(end), 0
    except BaseException as error:
        return report(error)
    return 0, 0


def exit_status(end):
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    sys.stdout.flush()
    print(end.code, file=sys.stderr)
    return 1


def report(error):
    """Print an uncaught exception, without our own frames."""
    trace = error.__traceback__
    while trace is not None and is_own(trace):
        trace = trace.tb_next
    last = step = trace
    while step is not None:
        if not is_own(step):
            last = step
        step = step.tb_next
    if last is not None:
        last.tb_next = None
    error.__traceback__ = trace
    sys.last_exc, sys.last_type, sys.last_value, sys.last_traceback = error, type(error), error, trace
    flush()
    try:
        sys.excepthook(type(error), error, trace)
    except SystemExit as end:
        return exit_status(end), 0
    except BaseException as another:
        sys.stderr.write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(another), another, another.__traceback__)
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(type(error), error, trace)
    return (130, SIGINT) if isinstance(error, KeyboardInterrupt) else (1, 0)


def is_own(trace):
    return trace.tb_frame.f_code.co_filename.startswith(OWN)


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, ValueError):
            pass


def finish(status=0, signal=0):
    """Shut down as CPython does: exit functions, the program's own objects, the streams."""
    threading = sys.modules.get("threading")
    if threading is not None:
        try:
            threading._shutdown()
        except BaseException:
            pass
    atexit._run_exitfuncs()
    clear_modules()
    try:
        if is_plain(sys.stdout) and is_plain(sys.stderr):
            hostcalls.buffer_output()
        flush()
    except OSError as error:
        status = unsaid(status, error)
    return status, signal


def is_plain(stream):
    """Whether nothing but our own code runs when it is flushed."""
    try:
        buffer = stream.buffer if type(stream) is io.TextIOWrapper else None
        return type(buffer) is io.BufferedWriter and type(buffer.raw) is io.FileIO
    except ValueError:  # it was detached
        return False


def unsaid(status, error):
    """The status of a program whose output could not be written at its end."""
    if hostcalls.TO_LINUX.get(error.errno) != 32:
        sys.stderr.write(f"Exception ignored while flushing sys.stdout:\n{type(error).__name__}: {error}\n")
    return status or 120


def clear_modules():
    """Let go of what the program made, as far as it shows: files are flushed, finalisers run."""
    for name in added_modules():
        module = sys.modules.get(name)
        if isinstance(module, types.ModuleType):
            clear(module.__dict__)
    gc.collect()


def added_modules():
    """Return the modules that the program imported, the last first.

    They come after the template's, unless some of those were removed: only then is each of some hundred names looked
    at, which are far apart in memory.
    """
    names, last = _template["modules"], _template["last"]
    added = list(islice(reversed(sys.modules), max(len(sys.modules) - len(names), 0) + 1))
    if last is not None and added[-1] == last:
        added[-1] = "__main__"
        return added
    return reversed([name for name in sys.modules if name not in names or name == "__main__"])


def clear(namespace):
    """Clear a module's namespace in CPython's order: private names first, then the others, never `__builtins__`."""
    for private in (True, False):
        for name, value in list(namespace.items()):
            if value is None or not isinstance(name, str) or name == "__builtins__":
                continue
            if name.startswith("_") and not name.startswith("__") if private else True:
                namespace[name] = None


class AnyModule:
    """A set of module names that contains all: those that a warm-up imports are the template's too."""

    def __contains__(self, name):
        return True

    def __len__(self):
        return len(sys.modules)


def warm_up(program):
    """Warm up the process of a program not known yet."""
    run_warm_up_program((WARM_UP_PROGRAM[0], *program[1:]))
    seeded()
    _here["environment"] = program[1]


def run_warm_up_program(program=WARM_UP_PROGRAM):
    """Run a program to its end without leaving the process."""
    argv, environment, directory, engine, numbers = program
    begin(environment, directory, numbers)
    execute(argv, engine)
    # The interpreter goes on: undo its shutdown.
    sys.modules["threading"]._SHUTTING_DOWN = False
    sys.modules["concurrent.futures.thread"]._shutdown = False


def warm_up_template():
    """Warm up the template: run what every program runs, to fill caches and specialise bytecode for all."""
    import site

    from _belljar import session

    site.setquit()
    site.setcopyright()
    site.sethelper()
    sys.ps1, sys.ps2 = ">>> ", "... "
    del sys.ps1, sys.ps2
    files.identity.update(pid=1, ppid=0, uid=1000, gid=1000, umask=0o022)
    path = list(sys.path)
    _template["modules"], _template["last"] = AnyModule(), None
    gc.freeze()  # what is collected at a program's end need not look at all there is
    for _ in range(WARM_UP_ROUNDS):
        for source in WARM_UP_SOURCES:
            Options(["python3", "-c", source], None).flags()
            outcome(lambda source=source: run_source(source + "\n", "<string>", -1))
        session.run_sources(WARM_UP_SOURCES)
        run_warm_up_program()
    flush()
    sys.path[:] = path
    fresh_main()
    clear(sys.modules["__main__"].__dict__)
    _template["modules"], _template["last"] = frozenset(sys.modules), next(reversed(sys.modules))
    linecache.clearcache()
