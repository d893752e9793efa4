"""The commands of docs/containers.md run as pasted."""

import re
from pathlib import Path

import pytest

from belljar import Sandbox

GUIDE = Path(__file__).parents[2] / "docs" / "containers.md"


@pytest.mark.slow
def test_the_commands_run_as_pasted() -> None:
    (block,) = re.findall(r"```\n(sudo docker .*?)```", GUIDE.read_text(), re.S)
    with Sandbox(files={"/workspace/site/index.html": "hello\n"}) as sandbox:
        lines = block.splitlines()
        said = [sandbox.exec(line, check=True).stdout for line in lines[:2]]
        assert said[0] == "hi\n"
        sandbox.port(8080).wait(240)
        assert sandbox.exec("curl -s localhost:8080/index.html").stdout == "hello\n"
        said += [sandbox.exec(line, check=True).stdout for line in lines[2:]]
        assert said[2] == "index.html\n"
        assert "GET /index.html" in said[3]
        assert said[4:] == ["web\n", "web\n"]
