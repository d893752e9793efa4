"""Warm sandboxes of images: the next ones from the same image are branches of them, made ahead.

An image that was used twice with the same settings gets a template: a sandbox that has run a command, so that what a
first command reads of the image is there. Templates are few, and so are the branches that wait; they end with the
process, or when other images take their place.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

from belljar.api.errors import SandboxError

if TYPE_CHECKING:
    from belljar.api.link_host import Link
    from belljar.api.sandbox import Sandbox
    from belljar.api.state import State

TEMPLATES_MAX: Final = 4
SPARES: Final = 2
"""Branches of one template that wait to be taken."""
_WARM_UPS: Final = 3
"""Commands after which a template asks for nothing more of the image."""
_KEYS_MAX: Final = 64

Key = tuple[object, ...]


class _Template:
    def __init__(self, make: Callable[[], Sandbox]) -> None:
        self._make = make
        self._sandbox: Sandbox | None = None
        self._spares: list[Sandbox] = []
        self._ended = False

    def prepare(self) -> None:
        """Make the template, and branches until there are enough. On the thread that does so for all. SandboxError.

        Each runs a command: what a first one reads of the image, and the memory it writes to, are then there.
        """
        if self._sandbox is None:
            self._sandbox = self._make()
            for _ in range(_WARM_UPS):
                self._sandbox.exec("true")
        while len(self._spares) < SPARES and not self._ended:
            spare = self._sandbox.fork()
            spare.exec("true")
            self._spares.append(spare)
        if self._ended:
            self.close()

    def take(self) -> tuple[Link, State | None] | None:
        """A branch that is ready, else None."""
        while self._spares:
            spare = self._spares.pop()
            link = spare._link
            if not link.closed:  # it has a thread that sees its worker end
                del spare._link  # it is another sandbox's from now on
                return link, spare._state
            spare.close()
        return None

    def close(self) -> None:
        self._ended = True
        while self._spares:
            self._spares.pop().close()
        if self._sandbox is not None:
            self._sandbox.close()


class Templates:
    """The templates of this process, by image and settings; the ones used last are kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._templates: OrderedDict[Key, _Template] = OrderedDict()
        self._seen: OrderedDict[Key, None] = OrderedDict()
        self._work: SimpleQueue[_Template] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def take(self, key: Key, make: Callable[[], Sandbox]) -> tuple[Link, State | None] | None:
        """A worker that is what `make` gives; None if there is none yet: the caller makes one by itself."""
        with self._lock:
            template = self._templates.get(key)
            if template is None:
                if key not in self._seen:
                    self._remember(key)
                    return None
                template = self._templates[key] = _Template(make)
                while len(self._templates) > TEMPLATES_MAX:
                    self._templates.popitem(last=False)[1].close()
            self._templates.move_to_end(key)
            ready = template.take()
            self._work.put(template)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="belljar-images", daemon=True)
                self._thread.start()
            return ready

    def _remember(self, key: Key) -> None:
        self._seen[key] = None
        if len(self._seen) > _KEYS_MAX:
            self._seen.popitem(last=False)

    def _run(self) -> None:
        while True:
            template = self._work.get()
            try:
                template.prepare()
            except (SandboxError, OSError):
                self._drop(template)  # whoever comes next makes a sandbox as the first one did

    def _drop(self, template: _Template) -> None:
        with self._lock:
            for key in [key for key, each in self._templates.items() if each is template]:
                del self._templates[key]
        template.close()

    def close(self) -> None:
        """End all templates; sandboxes that were made from them live on."""
        with self._lock:
            while self._templates:
                self._templates.popitem()[1].close()
            self._seen.clear()

    def forget(self) -> None:
        """Drop the templates, in a forked child of the owner: they are the parent's."""
        self.__init__()  # type: ignore[misc]


templates: Final = Templates()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=templates.forget)
