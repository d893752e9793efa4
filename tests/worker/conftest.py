"""Sandboxes whose workers can be probed from inside, and engines to talk to."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar.api import workers
from belljar.engines.owner import template_host
from belljar.owner.supervisor_host import Supervisor

HERE = Path(__file__).parent


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    """From here on, sandboxes have the commands of `probe_zygote.py`."""
    supervisor = Supervisor([sys.executable, "-I", str(HERE / "probe_zygote.py")])
    monkeypatch.setattr(workers, "shared", supervisor)
    yield supervisor
    supervisor.close()


@pytest.fixture
def echo_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[template_host.Template]:
    """An engine of the kind "echo"."""
    script = HERE.parent / "engines" / "echo_template.py"
    monkeypatch.setitem(template_host.KINDS, "echo", lambda: [sys.executable, "-I", str(script)])
    template = template_host.template("echo")
    yield template
    template.close()
    del template_host._templates["echo"]
