"""Calls of all kinds cancelled at random moments."""

import pytest

from tests.api.test_cancellation import cancel_many
from tests.reliability.amount import amount

pytestmark = pytest.mark.slow


@pytest.mark.battery
def test_many_cancellations_leave_nothing() -> None:
    cancel_many(amount(600, 10_000))
