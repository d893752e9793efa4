"""Names that every sandbox starts with: its account, and where that account lives and works."""

from typing import Final

AGENT_NAME: Final = "agent"
TAKEN_NAMES: Final = frozenset({"nobody", "nogroup"})
"""Accounts that no sandbox's commands run as."""
HOME: Final = f"/home/{AGENT_NAME}"
WORKSPACE: Final = "/workspace"
