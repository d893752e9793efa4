"""Checks that only `*_host.py` files touch the host, and that no file runs code it was handed as data.

Usage: check_host.py [PACKAGE_DIR]

The check reads syntax, not behaviour: it keeps honest code honest, it is not a wall against hostile code.
There is no comment to switch it off. What must touch the host goes into a `*_host.py` file.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path("src/belljar")

# The places that find utilities and builtins by file name, so that adding one is adding one file.
DISCOVERY = frozenset({"bin/_kit/discovery.py", "shell/builtins/__init__.py"})
# The place that keeps this installation's own modules in memory, for workers that can no longer open their files.
MODULES = frozenset({"worker/archive_host.py"})
# The public names, each loaded from its module by a table.
PUBLIC_NAMES = frozenset({"__init__.py"})
# The place that runs a user's own recipe, a Python file, in that user's own process.
RECIPES = frozenset({"cli/image_host.py"})

# Runs inside the guest interpreter, where the only host is the sandbox's kernel.
GUEST = ("engines/python/guest/", "native/guest/", "browser/guest/")

# Above the worker, `async def` and asyncio's waiting are the API itself.
ASYNC_PACKAGES = frozenset({"api", "browser", "cli", "cluster", "harness", "integrations", "remote", "server"})


def words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


# Modules no file may import: they turn data into running code.
DATA_AS_CODE = words("pickle _pickle marshal shelve dill cloudpickle jsonpickle joblib code codeop runpy builtins")
# Modules that import by name. Two of their children only read files, which makes them host contact.
IMPORT_BY_NAME = words("importlib pkgutil zipimport imp")
READ_PACKAGE_FILES = ("importlib.resources", "importlib.metadata")

# Builtins no file may name, and builtins that reach the host.
CODE_BUILTINS = words("eval exec compile __import__ __builtins__")
HOST_BUILTINS = words("open input breakpoint")

HOST_MODULES = words(
    # the kernel's doors
    "posix nt signal select selectors fcntl termios tty pty mmap resource ctypes _ctypes cffi",
    # processes and threads
    "subprocess multiprocessing threading _thread concurrent asyncio",
    # sockets and what speaks through them
    "socket _socket socketserver ssl http.client http.server http.cookiejar urllib.request ftplib smtplib",
    "poplib imaplib nntplib telnetlib xmlrpc webbrowser requests httpx aiohttp urllib3",
    # files by name (sqlite3: SQL can ATTACH any file)
    "shutil tempfile glob fileinput linecache dbm sqlite3 _io fsspec wasmtime",
    # who and where we are
    "pwd grp spwd getpass platform sysconfig locale syslog readline curses",
    # entropy
    "secrets",
)


@dataclass(frozen=True, slots=True)
class Names:
    """Which names of a module that is only partly host contact may be used."""

    allowed: re.Pattern[str]
    instead: str


def only(names: str, instead: str) -> Names:
    return Names(re.compile(names.replace(" ", "|")), instead)


def all_but(names: str, instead: str) -> Names:
    return Names(re.compile(rf"(?!({names.replace(' ', '|')})$).*"), instead)


CLOCK = "take the clock as an argument"
ENTROPY = "take the random source as an argument"
FILES = "work on bytes or on an open file you were given"

# Modules of which some names are pure. Their other names are host contact.
PARTLY_HOST: dict[str, Names] = {
    "os": only(r"[A-Z][A-Z0-9_]* PathLike", "only constants (`from os import O_RDONLY`) are free"),
    "os.path": only(r"", "guest paths have their own type; host paths belong in a *_host.py file"),
    "posixpath": only(
        "basename commonprefix dirname isabs join normpath split splitext",
        "only pure string functions are free",
    ),
    "pathlib": only("PurePath PurePosixPath PureWindowsPath", "use PurePosixPath or the guest path type"),
    "io": all_but("open open_code FileIO", FILES),
    "codecs": all_but("open", FILES),
    "gzip": all_but("open", FILES),
    "bz2": all_but("open", FILES),
    "lzma": all_but("open", FILES),
    "datetime.datetime": all_but("now utcnow today", CLOCK),
    "datetime.date": all_but("today", CLOCK),
    "time": only("struct_time gmtime strftime strptime asctime", CLOCK),
    "random": only("Random", ENTROPY),
    "uuid": only("UUID uuid3 uuid5 SafeUUID NAMESPACE_.* RFC_4122 RESERVED_.*", ENTROPY),
    "sys": all_but(
        "stdin stdout stderr __stdin__ __stdout__ __stderr__ modules path meta_path path_hooks",
        "streams arrive as arguments",
    ),
}
# For these an `import module` is already too much: the module object is the door.
NO_MODULE_OBJECT = frozenset({"os", "os.path"})


@dataclass(frozen=True, slots=True)
class Arity:
    """How many arguments make a call pure; with fewer it asks the host."""

    least: int
    instead: str
    keyword: str | None = None


IMPURE_WHEN_SHORT: dict[str, Arity] = {
    "time.gmtime": Arity(1, CLOCK),
    "time.asctime": Arity(1, CLOCK),
    "time.strftime": Arity(2, CLOCK),
    "datetime.datetime.fromtimestamp": Arity(2, "give it a time zone, or it takes the host's"),
    "random.Random": Arity(1, ENTROPY),
    "tarfile.open": Arity(99, "give it fileobj=", keyword="fileobj"),
    "gzip.GzipFile": Arity(99, "give it fileobj=", keyword="fileobj"),
}
IMPURE_CALLS: dict[str, str] = {
    "zoneinfo.ZoneInfo": "it reads the host's zone files; use ZoneInfo.from_file on a guest's",
    "zoneinfo.available_timezones": "it lists the host's zone files",
}


@dataclass(frozen=True, slots=True)
class Finding:
    line: int
    what: str
    instead: str


def check_source(source: str, relative: str) -> list[Finding]:
    """Every violation in one file; `relative` is its path inside the package."""
    try:
        tree = ast.parse(source, relative)
    except SyntaxError as error:
        return [Finding(error.lineno or 1, f"is not Python: {error.msg}", "repair it, then check again")]
    return sorted(Reader(relative).read(tree), key=lambda finding: finding.line)


class Reader:
    """Walks one file's syntax, knowing which local names stand for which imported ones."""

    def __init__(self, relative: str) -> None:
        self.host_file = relative.endswith("_host.py")
        self.may_import_by_name = relative in DISCOVERY | MODULES | PUBLIC_NAMES | RECIPES
        self.async_file = relative.split("/")[0] in ASYNC_PACKAGES
        self.imported: dict[str, str] = {}

    def read(self, tree: ast.Module) -> Iterator[Finding]:
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.imported[alias.asname or alias.name.split(".")[0]] = (
                        alias.name if alias.asname else alias.name.split(".")[0]
                    )
                    yield from self.check_import(node, alias.name)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    self.imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                    yield from self.check_import_from(node, node.module, alias.name)
        for node in nodes:
            if isinstance(node, ast.Attribute):
                yield from self.check_attribute(node)
            elif isinstance(node, ast.Call):
                yield from self.check_call(node)
        for name in free_names(tree, frozenset(module_definitions(tree))):
            yield from self.check_builtin(name)

    def check_import(self, node: ast.stmt, module: str) -> Iterator[Finding]:
        yield from self.check_module(node, module)
        if not self.host_file and module in NO_MODULE_OBJECT:
            yield Finding(node.lineno, f"imports `{module}`", PARTLY_HOST[module].instead)

    def check_import_from(self, node: ast.stmt, module: str, name: str) -> Iterator[Finding]:
        findings = list(self.check_module(node, f"{module}.{name}"))
        yield from findings or self.check_name(node, module, name)

    def check_module(self, node: ast.stmt, module: str) -> Iterator[Finding]:
        parents = {module.rsplit(".", cut)[0] for cut in range(module.count(".") + 1)}
        if parents & DATA_AS_CODE:
            yield Finding(node.lineno, f"imports `{module}`", "it runs data as code; use msgspec or json")
        elif module.startswith(READ_PACKAGE_FILES):
            if not self.host_file:
                yield Finding(node.lineno, f"imports `{module}`", "it reads files; move it to a *_host.py file")
        elif parents & IMPORT_BY_NAME and not self.may_import_by_name:
            what = (
                "import by name is for the modules that find utilities, builtins and modules; write an import statement"
            )
            yield Finding(node.lineno, f"imports `{module}`", what)
        elif parents & HOST_MODULES and not self.host_file and not (self.async_file and "asyncio" in parents):
            what = "host contact: move it to a *_host.py file and pass what you need as an argument"
            yield Finding(node.lineno, f"imports `{module}`", what)

    def check_name(self, node: ast.stmt | ast.expr, module: str, name: str) -> Iterator[Finding]:
        rule = PARTLY_HOST.get(module)
        if rule and not self.host_file and (name == "*" or not rule.allowed.fullmatch(name)):
            yield Finding(node.lineno, f"uses `{module}.{name}`", f"host contact: {rule.instead}")

    def check_builtin(self, node: ast.Name) -> Iterator[Finding]:
        if node.id in CODE_BUILTINS:
            yield Finding(node.lineno, f"uses the builtin `{node.id}`", "it runs data as code; parse it instead")
        elif node.id in HOST_BUILTINS and not self.host_file:
            what = "host contact: move it to a *_host.py file and pass what you need as an argument"
            yield Finding(node.lineno, f"uses the builtin `{node.id}`", what)

    def check_attribute(self, node: ast.Attribute) -> Iterator[Finding]:
        if module := self.origin(node.value):
            yield from self.check_name(node, module, node.attr)

    def check_call(self, node: ast.Call) -> Iterator[Finding]:
        name = self.origin(node.func)
        if self.host_file or name is None:
            return
        if instead := IMPURE_CALLS.get(name):
            yield Finding(node.lineno, f"calls `{name}`", f"host contact: {instead}")
        if (rule := IMPURE_WHEN_SHORT.get(name)) and not enough_arguments(node, rule):
            yield Finding(node.lineno, f"calls `{name}` with too little", f"host contact: {rule.instead}")

    def origin(self, node: ast.expr) -> str | None:
        """The imported dotted name an expression stands for: `dt.now` -> `datetime.datetime.now`."""
        match node:
            case ast.Name(id=name):
                return self.imported.get(name)
            case ast.Attribute(value=value, attr=attr):
                parent = self.origin(value)
                return f"{parent}.{attr}" if parent else None
            case _:
                return None


def enough_arguments(node: ast.Call, rule: Arity) -> bool:
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return True
    given = {keyword.arg for keyword in node.keywords}
    return len(node.args) + len(given) >= rule.least or rule.keyword in given or None in given


def free_names(node: ast.AST, bound: frozenset[str]) -> Iterator[ast.Name]:
    """Names that are read but bound neither by the module nor by a function around: builtins, if anything."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load) and node.id not in bound:
            yield node
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        inside = bound | frozenset(bound_names(node))
        body = node.body if isinstance(node.body, list) else [node.body]
        for child in ast.iter_child_nodes(node):
            # Decorators, annotations and defaults (`def f(open=open)`) are read outside the function.
            yield from free_names(child, inside if child in body else bound)
    else:
        for child in ast.iter_child_nodes(node):
            yield from free_names(child, bound)


def bound_names(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        match node:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if node is not function:
                yield name


def module_definitions(tree: ast.Module) -> Iterator[str]:
    """Names a module defines or imports at its top level: a shell builtin called `eval` is ours to call."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name for alias in names)


def check_package(package: Path) -> list[str]:
    """Messages for a whole package: file:line, what is wrong, what to do."""
    return [
        f"{path}:{finding.line}: {finding.what}: {finding.instead}"
        for path in sorted(package.rglob("*.py"))
        if not path.relative_to(package).as_posix().startswith(GUEST)
        for finding in check_source(path.read_text("utf-8"), path.relative_to(package).as_posix())
    ]


def main(arguments: list[str]) -> int:
    package = Path(arguments[0]) if arguments else PACKAGE
    if not package.is_dir():
        print(f"check_host: {package}: no such directory; run it from the repository's root", file=sys.stderr)
        return 2
    messages = check_package(package)
    print("\n".join(messages) or f"check_host: {package}: only *_host.py files touch the host")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
