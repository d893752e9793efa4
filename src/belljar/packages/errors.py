"""The one error of packages."""

from belljar.abi.errors import SandboxError


class PackageError(SandboxError):
    """A package, catalog or registry can't be read, trusted, resolved or installed; says what, where and why."""
