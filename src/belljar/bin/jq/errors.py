"""The two ways a jq program leaves what it is doing: an error that can be caught, and `break`."""

from typing import Any


class JqError(Exception):
    """An error a jq program can catch; `value` is what `catch` sees."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


class Break(Exception):
    """Leaves the `label` whose activation is `label`."""

    def __init__(self, label: object) -> None:
        super().__init__()
        self.label = label
