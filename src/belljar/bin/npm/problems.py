"""The error that ends an npm command: a message as npm words it, and the status."""

from __future__ import annotations


class NpmError(Exception):
    """`code` and the lines that go to stderr after "npm error "."""

    def __init__(self, code: str, *lines: str, status: int = 1) -> None:
        super().__init__(lines[0] if lines else code)
        self.code = code
        self.lines = lines
        self.status = status


def coded(code: str, *lines: str) -> NpmError:
    """An error whose every line begins with what its code is called for short: `404`, `notarget`, `sha512` ..."""
    short = {"E404": "404", "ETARGET": "notarget", "EBADENGINE": "notsup", "EBADPLATFORM": "notsup"}.get(code, "")
    return NpmError(code, *(f"{short} {line}".rstrip() if short else line for line in lines))


def no_package(folder: str) -> NpmError:
    """There is no package.json where one is needed."""
    return NpmError(
        "ENOENT",
        "syscall open",
        f"path {folder}/package.json",
        "errno -2",
        f"enoent Could not read package.json: Error: ENOENT: no such file or directory, open '{folder}/package.json'",
        "enoent This is related to npm not being able to find a file.",
        "enoent",
    )
