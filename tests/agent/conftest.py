from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import Sandbox
from belljar.native.agent_build_host import agent_program
from tests.agent.running import Talk, sandbox, sanitized_agent, talk
from tests.reliability.amount import WHOLE

collect_ignore = [] if WHOLE else ["test_aarch64.py"]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The agent; with $BELLJAR_SANITIZED one that aborts at a mistake, with $BELLJAR_AGENT the one that is named."""
    if named := os.environ.get("BELLJAR_AGENT"):
        return Path(named)
    return sanitized_agent(tmp_path_factory.mktemp("agent")) if os.environ.get("BELLJAR_SANITIZED") else agent_program()


@pytest.fixture
def agent(program: Path) -> Iterator[Talk]:
    with talk(program) as made:
        yield made


@pytest.fixture
def box(program: Path, tmp_path: Path) -> Iterator[Sandbox]:
    with sandbox(program, cwd=str(tmp_path)) as made:
        yield made
