"""Skills of an agent as Python packages of its sandbox: `import skills.NAME`."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping
from contextlib import suppress
from posixpath import dirname
from typing import Any, Final

from belljar.abi.base import PYTHON_SITE
from belljar.api.errors import FileError
from belljar.api.sandbox import Sandbox

_PACKAGE: Final = """# The modules of a skill that has no __init__.py.
__path__ = [{path!r}]


def __getattr__(name):
    from importlib import import_module

    try:
        return import_module(f"{{__name__}}.{{name}}")
    except ModuleNotFoundError as error:
        if error.name != f"{{__name__}}.{{name}}":
            raise
        raise AttributeError(f"the skill in {path} has no module {{name!r}}") from None
"""
_ABSENT: Final = """raise ImportError(
    "its files are not in this interpreter's sandbox, which has no {path}: the skills' backend must be the same sandbox"
)
"""


def python_names(skills: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The directories of skills by the names that Python code has for them: web-research is web_research.

    `skills` is what Deep Agents' SkillsMiddleware keeps in an agent's state; of one name the last counts, as there.
    """
    named = {skill["name"].replace("-", "_"): dirname(skill["path"]) for skill in skills}
    return {name: path for name, path in named.items() if name.isidentifier() and not keyword.iskeyword(name)}


def link(sandbox: Sandbox, skills: Mapping[str, str]) -> None:
    """Have the directories be packages of the sandbox's Python. Raises FileError."""
    for name, path in skills.items():
        package = f"{PYTHON_SITE}/skills/{name}"
        with suppress(FileError):  # the first time there is none
            sandbox.files.remove(package, recursive=True)
        if sandbox.files.exists(f"{path}/__init__.py"):
            sandbox.files.mkdir(dirname(package), parents=True)
            sandbox.files.symlink(path, package)
        else:
            there = sandbox.files.exists(path)
            sandbox.files.write(f"{package}/__init__.py", (_PACKAGE if there else _ABSENT).format(path=path))
