"""The settings that the integrations' pages show are taken. Their programs: `test_snippets.py`."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import pytest

from belljar.cli.mcp_host import add_to, read_options

PAGES = Path(__file__).parents[2] / "docs" / "integrations"


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
