"""Each adapter needs its framework only when it is imported, and says what to install when it is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import belljar.integrations

EXTRAS = {
    "deepagents": ("deepagents", "langchain"),
    "deepagents_state": ("deepagents", "langchain"),
    "inspect_ai": ("inspect_ai", "inspect"),
    "langchain": ("langchain", "langchain"),
    "mcp": ("mcp", "mcp"),
    "openai_agents": ("agents", "openai-agents"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai"),
    "smolagents": ("smolagents", "smolagents"),
}
WITHOUT = {"commands", "conversations", "extras", "shown", "skills", "steps"}
"""What needs no framework."""
FILES = {path.stem for path in Path(belljar.integrations.__path__[0]).glob("*.py")} - {"__init__"}


def test_every_file_is_one_or_the_other() -> None:
    assert {*EXTRAS, *WITHOUT, "deepagents_code", "mcp_clients"} == FILES


@pytest.mark.parametrize("adapter", EXTRAS)
def test_a_missing_framework_is_named_with_its_extra(adapter: str) -> None:
    framework, extra = EXTRAS[adapter]
    program = f"import sys; sys.modules[{framework!r}] = None; import belljar.integrations.{adapter}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=240)
    said = done.stderr.splitlines()[-1]
    assert said.startswith(f"ModuleNotFoundError: {framework}")
    assert said.endswith(f"is missing; in belljar's checkout, run: pip install -e '.[{extra}]'")


def test_nothing_else_needs_a_framework() -> None:
    frameworks = sorted({framework for framework, _ in EXTRAS.values()} | {"langgraph", "pydantic", "openai"})
    block = "; ".join(f"sys.modules[{name!r}] = None" for name in frameworks)
    imports = "; ".join(f"import belljar.integrations.{name}" for name in sorted(WITHOUT))
    program = f"import sys; {block}; import belljar.api.names; import belljar.cli.__main__; {imports}"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=240)
