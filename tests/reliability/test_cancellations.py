"""The whole battery's cancellations; a sample of them is in tests/api/test_cancellation.py."""

import pytest

from tests.api.test_cancellation import cancel_many
from tests.reliability.amount import WHOLE

pytestmark = [pytest.mark.skipif(not WHOLE, reason="tests/api has a sample"), pytest.mark.slow]


def test_ten_thousand_cancellations() -> None:
    cancel_many(10_000)
