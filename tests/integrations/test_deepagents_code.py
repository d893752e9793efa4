"""Deep Agents Code finds belljar by its entry point, and its own code makes, uses and ends sandboxes of it.

It is an application whose requirements contradict those of the newest frameworks: `make` puts it, without them, where
only this test looks.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import deepagents
import pytest

APPLICATION = Path(deepagents.__file__).parents[4] / "deepagents-code"

PROGRAM = """
import asyncio
from deepagents_code.integrations.sandbox_factory import create_sandbox, verify_sandbox_deps
from deepagents_code.integrations.sandbox_provider import SandboxNotFoundError
from deepagents_code.integrations.sandbox_registry import SandboxRegistry

registry = SandboxRegistry()
assert "belljar" in registry.available_providers()
metadata = registry.get_metadata("belljar")
assert (metadata.name, metadata.working_dir, metadata.install.name) == ("belljar", "/workspace", "belljar")
verify_sandbox_deps("belljar")

with create_sandbox("belljar", setup_script_path="setup.sh", params={"env": {"CI": "1"}}) as one:
    assert one.execute("cat made; echo $CI; pwd").output == "by the script\\n1\\n/workspace\\n"
    one.write("/workspace/f", "kept")
    with create_sandbox("belljar", sandbox_id=one.id) as again:
        assert again.read("/workspace/f").file_data["content"] == "kept"
    assert one.execute("cat f").output == "kept"  # who only came to visit does not end it

provider = registry.create_provider("belljar")
try:
    provider.get_or_create(sandbox_id=one.id)
except SandboxNotFoundError as error:
    assert one.id in str(error)
else:
    raise AssertionError("it should be gone")

async def main():
    made = await provider.aget_or_create()
    assert (await made.aexecute("echo $((6 * 7))")).output == "42\\n"
    await provider.adelete(sandbox_id=made.id)
    await provider.adelete(sandbox_id=made.id)

asyncio.run(main())
print("all of it")
"""


def test_the_entry_point_is_there() -> None:
    (found,) = entry_points(group="deepagents_code.sandbox_providers", name="belljar")
    assert found.value == "belljar.integrations.deepagents_code:BelljarProvider"


@pytest.mark.skipif(not APPLICATION.is_dir(), reason="only where `make` installed Deep Agents Code")
def test_its_own_code_uses_it(tmp_path: Path) -> None:
    (tmp_path / "setup.sh").write_text("echo by the script > /workspace/made")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(APPLICATION), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={**environment, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("all of it\n")
