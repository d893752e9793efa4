"""Source archives and project directories as packages, for the common backends whose packages are plain Python.

Nothing of theirs is run: what a build would copy is read from pyproject.toml, setup.cfg, the literal arguments of
setup.py, and what the backend itself left in the archive (PKG-INFO, egg-info). A package that needs more is refused.
"""

from __future__ import annotations

import ast
import configparser
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from belljar.abi.dataclass import dataclass, field
from belljar.bin.pip.problems import Unbuildable
from belljar.bin.pip.wheel import Item, Package

_PLAIN: Final = {
    "setuptools": "setuptools",
    "flit_core": "flit",
    "flit": "flit",
    "hatchling": "hatchling",
    "poetry": "poetry",
    "pdm": "pdm",
    "uv_build": "uv",
}
"""Backends by the first word of their module."""
_COMPILED: Final = (".c", ".cc", ".cpp", ".cxx", ".pyx", ".pxd", ".rs", ".f", ".f90", ".go")
_NOT_PACKAGES: Final = ("test", "tests", "docs", "doc", "examples", "example", "build", "dist", "benchmarks", "scripts")


@dataclass(frozen=True, slots=True)
class Tree:
    """The files of a project: their names, and how to read one."""

    names: tuple[str, ...]
    read: Callable[[str], bytes]

    def text(self, name: str) -> str | None:
        return self.read(name).decode("utf-8", "replace") if name in self.names else None


@dataclass(slots=True)
class Project:
    """A project's metadata before it is built."""

    name: str = ""
    version: str = ""
    summary: str = ""
    requires: list[str] = field(default_factory=list)
    extras: dict[str, list[str]] = field(default_factory=dict)
    requires_python: str = ""
    scripts: dict[str, str] = field(default_factory=dict)
    entry_points: str = ""
    metadata: bytes = b""
    """As the backend wrote it, if it did."""
    tops: list[tuple[str, str]] = field(default_factory=list)
    """The packages and modules to install: where in the tree, and under what name."""
    root: str = ""
    """The directory that an editable install puts on sys.path."""

    def metadata_text(self) -> bytes:
        if self.metadata:
            return self.metadata
        lines = ["Metadata-Version: 2.1", f"Name: {self.name}", f"Version: {self.version}"]
        lines += [f"Summary: {self.summary}"] if self.summary else []
        lines += [f"Requires-Python: {self.requires_python}"] if self.requires_python else []
        lines += [f"Requires-Dist: {text}" for text in self.requires]
        for extra, texts in self.extras.items():
            lines.append(f"Provides-Extra: {extra}")
            lines += [f"Requires-Dist: {_with_extra(text, extra)}" for text in texts]
        return ("\n".join(lines) + "\n").encode()

    def entry_points_text(self) -> str:
        if self.entry_points or not self.scripts:
            return self.entry_points
        return "[console_scripts]\n" + "".join(f"{name} = {target}\n" for name, target in self.scripts.items())


def open_source(tree: Tree, *, editable: bool = False, location: str = "") -> Package:
    """The package a project would be built to. Unbuildable, with why."""
    project = read_project(tree)
    info = f"{canonicalize_name(project.name).replace('-', '_')}-{project.version}.dist-info"
    text = project.metadata_text()
    points = project.entry_points_text()
    if editable:
        root = f"{location}/{project.root}".rstrip("/")
        stem = canonicalize_name(project.name).replace("-", "_")
        link = Item("purelib", f"__editable__.{stem}-{project.version}.pth", f"{root}\n".encode())
        return Package(info, text, points, lambda: _with_info(iter([link]), info, text, points), editable_root=location)
    return Package(info, text, points, lambda: _with_info(_contents(tree, project), info, text, points))


def read_project(tree: Tree) -> Project:
    """Everything needed to install it, without running any of it. Unbuildable."""
    settings = _toml(tree)
    requires = settings.get("build-system", {}).get("requires", [])
    backend = str(settings.get("build-system", {}).get("build-backend", "setuptools")).split(":")[0]
    kind = _PLAIN.get(backend.split(".")[0])
    if kind is None:
        raise Unbuildable(f"its build backend {backend!r} compiles or is not known here")
    helpers = [
        str(text)
        for text in requires
        if re.match(r"(?i)(cython|cffi|pybind11|nanobind|setuptools.rust|numpy)\b", str(text))
    ]
    if helpers:
        raise Unbuildable(f"building it needs {helpers[0]}, which means a compiler")
    project = Project()
    table = settings.get("project", {})
    _from_table(project, table, tree)
    _from_archive(project, tree)
    if kind == "poetry":
        _from_poetry(project, settings.get("tool", {}).get("poetry", {}))
    if kind == "setuptools":
        _from_setup_cfg(project, tree)
        _from_setup_py(project, tree)
    if not project.name:
        raise Unbuildable("it does not say its name without running its code")
    project.version = project.version or _version_in_code(tree, project, settings)
    try:
        project.version = str(Version(project.version))
    except InvalidVersion:
        raise Unbuildable("it does not say its version without running its code") from None
    if not project.tops:
        _find_tops(project, tree, settings, kind)
    compiled = next(
        (n for n in tree.names if n.endswith(_COMPILED) and any(n.startswith(f"{at}/") for at, _ in project.tops)), None
    )
    if compiled and kind == "setuptools" and "ext_modules" in (tree.text("setup.py") or ""):
        raise Unbuildable(f"it has parts to be compiled ({compiled})")
    if not project.tops:
        raise Unbuildable(f"no package or module called {project.name!r} was found in it")
    return project


def _toml(tree: Tree) -> dict[str, Any]:
    try:
        return tomllib.loads(tree.text("pyproject.toml") or "")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Unbuildable(f"its pyproject.toml can't be read: {error}") from None


def _from_table(project: Project, table: Mapping[str, Any], tree: Tree) -> None:
    project.name = str(table.get("name", ""))
    project.version = str(table.get("version", ""))
    project.summary = str(table.get("description", "")).replace("\n", " ")
    project.requires = [str(text) for text in table.get("dependencies", [])]
    project.extras = {str(k): [str(t) for t in v] for k, v in table.get("optional-dependencies", {}).items()}
    project.requires_python = str(table.get("requires-python", ""))
    project.scripts = {str(k): str(v) for k, v in table.get("scripts", {}).items()}


def _from_archive(project: Project, tree: Tree) -> None:
    """Read the metadata in a source archive, and for setuptools the list of what it would install."""
    text = tree.text("PKG-INFO")
    if text is None:
        return
    named = re.search(r"(?m)^Name: (.+)$", text)
    version = re.search(r"(?m)^Version: (.+)$", text)
    if named is None or version is None:
        return
    project.name, project.version = named[1].strip(), version[1].strip()
    info = next((name.rpartition("/")[0] for name in tree.names if name.endswith(".egg-info/SOURCES.txt")), None)
    if info is None:
        project.metadata = text.encode()
        return
    needs = tree.text(f"{info}/requires.txt")
    if needs is not None and "Requires-Dist:" not in text:
        project.requires, project.extras = _egg_requires(needs)
        head, _, body = text.rstrip().partition("\n\n")
        more = [f"Requires-Dist: {need}" for need in project.requires]
        more += [f"Requires-Dist: {_with_extra(need, e)}" for e, needs_ in project.extras.items() for need in needs_]
        text = "\n".join([head, *more]) + "\n\n" + body
    project.metadata = text.encode()
    project.entry_points = tree.text(f"{info}/entry_points.txt") or ""
    above = info.rpartition("/")[0]
    for name in (tree.text(f"{info}/top_level.txt") or "").split():
        place = _locate(tree, name.replace(".", "/"), (above, "", "src", "lib"))
        if place is not None:
            project.tops.append((place, place.rpartition("/")[2]))
            project.root = place.rpartition("/")[0]


def _egg_requires(text: str) -> tuple[list[str], dict[str, list[str]]]:
    plain: list[str] = []
    extras: dict[str, list[str]] = {}
    section, marker = "", ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section, _, marker = line[1:-1].partition(":")
        elif line:
            need = f"{line} ; {marker}" if marker else line
            (extras.setdefault(section, []) if section else plain).append(need)
    return plain, extras


def _with_extra(text: str, extra: str) -> str:
    need, semicolon, marker = text.partition(";")
    return (
        f'{need.strip()} ; ({marker.strip()}) and extra == "{extra}"' if semicolon else f'{need} ; extra == "{extra}"'
    )


def _from_poetry(project: Project, table: Mapping[str, Any]) -> None:
    if table.get("build"):
        raise Unbuildable("it runs a build script of its own")
    project.name = project.name or str(table.get("name", ""))
    project.version = project.version or str(table.get("version", ""))
    project.scripts = project.scripts or {
        str(k): str(v) for k, v in table.get("scripts", {}).items() if isinstance(v, str)
    }
    for entry in table.get("packages", []):
        if isinstance(entry, dict) and "include" in entry and not project.tops:
            place = "/".join(filter(None, (str(entry.get("from", "")), str(entry["include"]))))
            project.tops.append((place, str(entry["include"])))
            project.root = str(entry.get("from", ""))
    if not project.requires and not project.metadata:
        for name, need in table.get("dependencies", {}).items():
            if name != "python":
                project.requires.append(_poetry_need(str(name), need))


def _poetry_need(name: str, need: Any) -> str:
    text = need if isinstance(need, str) else str(need.get("version", "*")) if isinstance(need, dict) else "*"
    if text == "*":
        return name
    if text.startswith("^"):
        parts = [int(part) for part in re.findall(r"\d+", text)] or [0]
        keep = next((i for i, part in enumerate(parts) if part), len(parts) - 1)
        upper = ".".join(map(str, [*parts[:keep], parts[keep] + 1]))
        return f"{name}>={text[1:]},<{upper}"
    if text.startswith("~") and not text.startswith("~="):
        return f"{name}~={text[1:]}" if text.count(".") else f"{name}=={text[1:]}.*"
    return f"{name}{text}" if text[0] in "<>=!~" else f"{name}=={text}"


def _from_setup_cfg(project: Project, tree: Tree) -> None:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(tree.text("setup.cfg") or "")
    except configparser.Error as error:
        raise Unbuildable(f"its setup.cfg can't be read: {error.message.splitlines()[0]}") from None
    if not parser.has_section("metadata") and not parser.has_section("options"):
        return
    get: Callable[[str, str], str] = lambda section, name: parser.get(section, name, fallback="").strip()  # noqa: E731
    project.name = project.name or get("metadata", "name")
    version = get("metadata", "version")
    if not project.version and version and ":" not in version:
        project.version = version
    project.requires_python = project.requires_python or get("options", "python_requires")
    if not project.metadata and not project.requires:
        project.requires = [line.strip() for line in get("options", "install_requires").splitlines() if line.strip()]
    if parser.has_section("options.entry_points") and not project.entry_points:
        lines = [f"[{key}]\n{value.strip()}\n" for key, value in parser.items("options.entry_points")]
        project.entry_points = "".join(lines)


def _from_setup_py(project: Project, tree: Tree) -> None:
    """The literal arguments of the call of setup()."""
    text = tree.text("setup.py")
    if text is None:
        return
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    call = next((n for n in ast.walk(module) if isinstance(n, ast.Call) and _called(n.func) == "setup"), None)
    given: dict[str, Any] = {}
    for keyword in call.keywords if call is not None else []:
        try:
            given[keyword.arg or ""] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    if call is not None and any(
        keyword.arg in ("ext_modules", "cffi_modules", "rust_extensions") for keyword in call.keywords
    ):
        raise Unbuildable("its setup.py has extension modules to be compiled")
    project.name = project.name or str(given.get("name", ""))
    project.version = project.version or str(given.get("version", ""))
    if not project.metadata and not project.requires:
        needs = given.get("install_requires", [])
        project.requires = needs.split() if isinstance(needs, str) else [str(need) for need in needs]
    points = given.get("entry_points")
    if isinstance(points, dict) and not project.entry_points and not project.scripts:
        for entry in points.get("console_scripts", []):
            name, _, target = str(entry).partition("=")
            project.scripts[name.strip()] = target.strip()
    if not project.tops:
        names = [*given.get("packages", []), *given.get("py_modules", [])]
        root = str((given.get("package_dir") or {}).get("", ""))
        for top in dict.fromkeys(str(name).split(".")[0] for name in names):
            place = _locate(tree, top, (root,))
            if place is not None:
                project.tops.append((place, place.rpartition("/")[2]))
                project.root = root


def _called(function: ast.expr) -> str:
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _version_in_code(tree: Tree, project: Project, settings: Mapping[str, Any]) -> str:
    """`__version__ = "1.0"` in the package, where the backend would look for it."""
    named = settings.get("tool", {}).get("hatch", {}).get("version", {}).get("path")
    stem = canonicalize_name(project.name).replace("-", "_")
    for name in ([named] if named else []) + [
        f"{root}{stem}{file}"
        for root in ("src/", "")
        for file in ("/__about__.py", "/_version.py", "/version.py", "/__init__.py", ".py")
    ]:
        found = re.search(
            r"""(?m)^(?:__version__|VERSION|version)\s*(?::\s*str\s*)?=\s*["']([^"']+)["']""", tree.text(name) or ""
        )
        if found:
            return found[1]
    return ""


def _find_tops(project: Project, tree: Tree, settings: Mapping[str, Any], kind: str) -> None:
    """Where the backend would look for the package if nothing says so."""
    tool = settings.get("tool", {})
    wheel = tool.get("hatch", {}).get("build", {}).get("targets", {}).get("wheel", {})
    named = [str(name) for name in wheel.get("packages", wheel.get("only-include", []))] if kind == "hatchling" else []
    if kind == "flit" and "name" in tool.get("flit", {}).get("module", {}):
        named = [str(tool["flit"]["module"]["name"])]
    if kind == "setuptools":
        options = tool.get("setuptools", {})
        listed = options.get("packages", [])
        names = [*(listed if isinstance(listed, list) else []), *options.get("py-modules", [])]
        root = str((options.get("package-dir") or {}).get("", ""))
        named = ["/".join(filter(None, (root, str(name).split(".")[0]))) for name in names]
    stem = canonicalize_name(project.name).replace("-", "_")
    for name in dict.fromkeys(named or [stem, project.name, project.name.replace("-", "_")]):
        place = _locate(tree, name.removeprefix("./"), ("", "src"))
        if place is not None and (place, place.rpartition("/")[2]) not in project.tops:
            project.tops.append((place, place.rpartition("/")[2]))
            project.root = place.rpartition("/")[0]
        if place is not None and not named:
            break
    if not project.tops and kind == "setuptools":
        _find_flat(project, tree)


def _find_flat(project: Project, tree: Tree) -> None:
    """setuptools' own discovery: what is in src/, else the packages, else the modules at the top."""
    for root in ("src/", ""):
        packages = sorted(
            {
                n.removeprefix(root).split("/")[0]
                for n in tree.names
                if n.startswith(root) and n.count("/") == root.count("/") + 1 and n.endswith("/__init__.py")
            }
        )
        packages = [name for name in packages if root or not any(fnmatchcase(name, word) for word in _NOT_PACKAGES)]
        modules = [
            n.removeprefix(root)
            for n in tree.names
            if n.startswith(root) and n.count("/") == root.count("/") and n.endswith(".py")
        ]
        modules = [name for name in modules if name not in ("setup.py", "conftest.py", "noxfile.py")]
        for name in packages or (modules if root or len(modules) == 1 else []):
            project.tops.append((root + name, name))
            project.root = root.rstrip("/")
        if project.tops:
            return


def _locate(tree: Tree, name: str, roots: tuple[str, ...]) -> str | None:
    """A package's directory or a module's file below one of the roots."""
    for root in roots:
        base = f"{root}/{name}" if root else name
        if any(file.startswith(f"{base}/") and file.endswith(".py") for file in tree.names):
            return base
        if f"{base}.py" in tree.names:
            return f"{base}.py"
    return None


def _contents(tree: Tree, project: Project) -> Iterator[Item]:
    for place, name in project.tops:
        if place in tree.names:
            yield Item("purelib", name, tree.read(place))
            continue
        for file in tree.names:
            if file.startswith(f"{place}/") and "/__pycache__/" not in file and not file.endswith(".pyc"):
                yield Item("purelib", name + file.removeprefix(place), tree.read(file))


def _with_info(items: Iterator[Item], info: str, metadata: bytes, points: str) -> Iterator[Item]:
    yield from items
    yield Item("purelib", f"{info}/METADATA", metadata)
    yield Item(
        "purelib",
        f"{info}/WHEEL",
        b"Wheel-Version: 1.0\nGenerator: belljar\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    )
    if points:
        yield Item("purelib", f"{info}/entry_points.txt", points.encode())
