"""A live sandbox's files by 9P on a Unix socket: `sandbox.export(socket)`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from belljar.abi.paths import join, normalise
from belljar.api.live_tree import LiveTree
from belljar.api.operations import Steps
from belljar.api.request import AnyPath, check_path
from belljar.api.settings import Settings
from belljar.ninep.serve_host import Exported


def export_tree(run: Callable[[Steps[Any]], Any], socket: AnyPath, path: AnyPath, settings: Settings) -> Exported:
    """`run` performs an operation of the sandbox, on any thread. FileError, ExportError."""
    tree = LiveTree(run, normalise(join(settings.cwd, check_path(path))))
    return Exported(tree, check_path(socket, "the path of a socket"), read_only=True, report=_report)


def _report(error: BaseException) -> None:
    logging.getLogger("belljar").warning("an export of a sandbox: %r: clients see an input/output error", error)
