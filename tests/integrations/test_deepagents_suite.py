"""Deep Agents' own conformance suite for sandbox backends, on ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, cast

import pytest
from deepagents.backends.protocol import SandboxBackendProtocol
from langchain_tests.integration_tests import SandboxIntegrationTests

from belljar.integrations.deepagents import BelljarSandbox
from belljar.remote.choice import make_sandbox

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestRemovedIn10Warning")  # how the suite writes fixtures

DRIFT = (
    "the suite contradicts the backend protocol it tests (glob gives absolute paths of files, write overwrites): "
    "https://github.com/langchain-ai/langchain/pull/40283"
)


def drifted(name: str) -> Callable[..., Any]:
    original: Callable[..., Any] = getattr(SandboxIntegrationTests, name)

    @pytest.mark.xfail(reason=DRIFT, strict=True)
    @wraps(original)
    def test(self: Any, sandbox_backend: SandboxBackendProtocol, sandbox_test_root: str) -> None:
        original(self, sandbox_backend, sandbox_test_root)

    return cast("Callable[..., Any]", test)


class TestBelljarSandbox(SandboxIntegrationTests):
    @pytest.fixture(scope="class")
    def sandbox(self, tier_options: dict[str, Any]) -> Iterator[SandboxBackendProtocol]:
        options: Any = {**tier_options, "env": {"PATH": "/usr/bin:/bin:/opt/bin"}}
        with make_sandbox(options) as sandbox:
            # The suite calls it by this name, which this machine need not have.
            sandbox.files.write("/opt/bin/python", '#!/bin/sh\nexec python3 "$@"\n', mode=0o755)
            yield BelljarSandbox(sandbox=sandbox)

    test_glob = drifted("test_glob")
    test_glob_basic_pattern = drifted("test_glob_basic_pattern")
    test_glob_with_directories = drifted("test_glob_with_directories")
    test_glob_hidden_files_explicitly = drifted("test_glob_hidden_files_explicitly")
    test_glob_with_character_class = drifted("test_glob_with_character_class")
    test_glob_with_question_mark = drifted("test_glob_with_question_mark")
    test_write_existing_file_fails = drifted("test_write_existing_file_fails")
