"""What a page's archives of modules leave out is used by nothing that is in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar.browser.build_host import NOT_THE_KERNELS, PACKAGES, UNUSED, package, sources

pytestmark = pytest.mark.slow
SPARED = ("ctypes", "multiprocessing")
"""What dulwich uses on Windows, and in threads if there are any."""


def imported(name: str, path: Path) -> Iterator[str]:
    """The modules that a module names, wherever it does, but for types only."""
    todo: list[ast.AST] = [ast.parse(path.read_bytes())]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            todo += node.orelse
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = name.split("/")[: -node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from (base, *(f"{base}.{each.name}" for each in node.names))
        else:
            todo += ast.iter_child_nodes(node)


def is_left_out(module: str) -> bool:
    if module.partition(".")[0] in SPARED:
        return False
    return f"{module.replace('.', '/')}.py".startswith((*NOT_THE_KERNELS, *UNUSED)) or any(
        module.replace(".", "/") == each.removesuffix("/") for each in (*NOT_THE_KERNELS, *UNUSED)
    )


def test_nothing_needs_what_was_left_out() -> None:
    files = [*sources(), *(file for name in PACKAGES for file in package(name))]
    modules = [(name, path) for name, path in files if name.endswith(".py")]
    assert {"belljar/shell/main.py", "dulwich/repo.py", "packaging/tags.py"} <= {name for name, _ in modules}
    needed = {f"{name} needs {each}" for name, path in modules for each in imported(name, path) if is_left_out(each)}
    assert needed == set()


def test_left_out_modules_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("def f():\n from . import porcelain\n from dulwich.web import X\n import ssl, traceback\n")
    found = set(imported("dulwich/m.py", path))
    assert {each for each in found if is_left_out(each)} == {"dulwich.porcelain", "dulwich.web", "ssl"}
