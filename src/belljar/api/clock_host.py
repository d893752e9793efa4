"""The owner's clock, and names for things."""

import time
import uuid

monotonic = time.monotonic
wall_time = time.time


def new_id() -> str:
    return uuid.uuid4().hex[:12]
