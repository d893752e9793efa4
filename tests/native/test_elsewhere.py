"""The native tier where there is no Linux."""

from __future__ import annotations

import sys

import pytest

from belljar import Sandbox, SandboxCreationError


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_it_is_said_what_to_use_instead(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import belljar.api.native  # noqa: F401 - importable there

    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(SandboxCreationError, match="virtual"):
        Sandbox(tier="native")
