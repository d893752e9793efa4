"""Memory on the shelf holds what it held, for whoever reads it or writes to it; and nobody can change the shelf."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="zygotes are Linux's")


def test_memory_on_the_shelf() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.worker.shelf"], capture_output=True, text=True, check=True, timeout=60
    )
    found = json.loads(done.stdout)
    if not found["machine"]:
        assert found["moved"] == 0
        return
    assert found["moved"] > found["made"] / 2
    assert found["kept"], "what was moved is what it was"
    assert found["live"], "what is in use can be changed"
    assert found["grown"], "what was moved can be enlarged"
    assert found["branches"] == [True] * 5, "each branch has its own"
    assert found["own"] < found["before"] - found["moved"] / 2, "it is no longer memory of its own"
    assert found["shared"] == 0, "the file can be written to"
