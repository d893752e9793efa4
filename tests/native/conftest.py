"""Native sandboxes for tests: where this machine has no user namespaces, only that this is said."""

from __future__ import annotations

import pytest

from belljar import Sandbox, SandboxError
from tests.reliability.amount import WHOLE

collect_ignore = [] if WHOLE else ["test_debian_real.py"]  # it fetches 150 MB: `make native` runs it


def _why_not() -> str:
    """Why there are no native sandboxes here; "" if there are."""
    try:
        with Sandbox(tier="native") as sandbox:
            sandbox.exec("true")
            return ""
    except SandboxError as error:
        return str(error)


WHY_NOT = _why_not()
needs_native = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
