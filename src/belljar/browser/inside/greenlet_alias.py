"""The top-level module `greenlet` of a page, for `kernel/fiber.py`."""

from belljar.browser.inside.greenlet import getcurrent as getcurrent
from belljar.browser.inside.greenlet import greenlet as greenlet
