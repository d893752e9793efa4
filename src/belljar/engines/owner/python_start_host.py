"""Prepares guest Python for the owner: finds the package, makes the artefact, gives the template's command."""

from __future__ import annotations

import sys
from typing import Literal

from belljar.engines.artefact_host import ArtefactError, ready
from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner.progress_host import progress
from belljar.engines.owner.python_package_host import source, stdlib

Kind = Literal["python", "python-data", "python-replay"]
"""The last one is for replays: its hashes, time and entropy are the same in every run."""


def command(kind: Kind) -> list[str]:
    """The command of a template, with everything it will need prepared. Raises EngineUnavailable."""
    program, library = source(), stdlib()
    try:
        with progress() as show:
            artefact, quality = ready(program, show)
    except ArtefactError as error:
        raise EngineUnavailable(str(error)) from error
    module = "belljar.engines.python.template_host"
    return [sys.executable, "-I", "-m", module, kind, quality, str(artefact), str(library)]
