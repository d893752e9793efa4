"""Every snippet of the integrations' pages works as pasted."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from belljar.cli.mcp_host import add_to, read_options

PAGES = Path(__file__).parents[2] / "docs" / "integrations"
SNIPPETS = [
    pytest.param(snippet, id=page.stem)
    for page in sorted(PAGES.glob("*.md"))
    for snippet in re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
]


@pytest.mark.slow
@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippet(snippet: str, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    done = subprocess.run(
        [sys.executable, "-c", snippet], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert (tmp_path / "note.txt").read_text() == "mine"


def test_the_settings_of_the_mcp_page_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (PAGES / "mcp.md").read_text()
    (tmp_path / "repo").mkdir()
    monkeypatch.chdir(tmp_path)
    commands = argparse.ArgumentParser().add_subparsers()
    add_to(commands)
    parser = commands.choices["mcp"]
    (settings,) = re.findall(r"```toml\n(.*?)```", page, re.S)
    Path("belljar.toml").write_text(settings)
    arguments, options = read_options(parser, parser.parse_args(["--config", "belljar.toml"]))
    assert (arguments.http, arguments.most, options["env"]) == ("127.0.0.1:8000", 20, {"CI": "1"})
    assert options["limits"].wall_seconds == 60
    (client,) = re.findall(r"```json\n(.*?)```", page, re.S)
    command, *words = json.loads(client)["mcpServers"]["sandbox"]["args"]
    assert command == "mcp"
    assert list(read_options(parser, parser.parse_args(words))[1]["mounts"]) == ["/work"]
