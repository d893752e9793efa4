"""Builds of templates: one after another in threads, with their logs, into images of the server's store."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.errors import ImageError, SandboxError, printable
from belljar.api.image import Image, Progress, remove_images
from belljar.image.record import check_image_name
from belljar.server.assets_host import Build, Tag, Template
from belljar.server.egress import Egress, Wanted
from belljar.server.errors import ApiError
from belljar.server.guest import HOME, USER, Guest
from belljar.server.recipes import BadStep, Definition, recipe
from belljar.server.service import TEMPLATES, Service

log = logging.getLogger("belljar.server")

_AT_A_TIME: Final = 2
_LINES_MAX: Final = 5000
_LINE_MAX: Final = 2000
_LOGS_KEPT: Final = 200
"""Builds whose logs can still be asked for."""


class Line(Struct, frozen=True):
    """A line of a build's log."""

    at: float
    level: str
    message: str
    step: str


class Builds:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._places = asyncio.Semaphore(_AT_A_TIME)
        self._logs: dict[str, deque[Line]] = {}

    def logs(self, build: str) -> list[Line]:
        return list(self._logs.get(build, ()))

    def _log(self, build: str) -> deque[Line]:
        lines = self._logs[build] = deque(maxlen=_LINES_MAX)
        while len(self._logs) > _LOGS_KEPT:
            del self._logs[next(iter(self._logs))]
        return lines

    def begin(self, template: Template, build: Build, definition: Definition) -> None:
        """Build it in the background. ApiError for what can't be begun."""
        if self._service.store is None:
            raise ApiError(400, "This server keeps no templates: start it with --store")
        build = msgspec.structs.replace(
            build, status="building", start=definition.start_cmd or "", ready=definition.ready_cmd or ""
        )
        self._service.assets.put_build(build)
        self._service.background(self._run(template, build, definition))

    async def _run(self, template: Template, build: Build, definition: Definition) -> None:
        lines, loop = self._log(build.id), asyncio.get_running_loop()

        def say(message: str, level: str = "info", step: str = "") -> None:
            lines.append(Line(self._service.clock.time(), level, printable(message)[:_LINE_MAX], step))

        def hear(message: str, step: str) -> None:
            loop.call_soon_threadsafe(say, message, "info", step)

        step = "base"
        try:
            async with self._places:
                base = await self._base(template.tenant, definition)
                image, numbers, (user, cwd) = recipe(
                    definition, base, lambda number: self._service.uploads.find(template.tenant, number), build.id
                )
                digest = await asyncio.to_thread(self._make, image, _teller(hear, numbers, definition))
                if build.start:
                    step = "finalize"
                    say("Starting the start command", step=step)
                    await self._try_start(digest, build, user, cwd)
            build = msgspec.structs.replace(build, user=user, cwd=cwd, image=digest)
            self._finish(template, msgspec.structs.replace(build, status="ready", finished=self._service.clock.time()))
            say("Build finished")
        except (SandboxError, BadStep, ApiError) as error:
            number = str(error.number) if isinstance(error, BadStep) else _failed_step(error, lines, step)
            why = printable(str(error.__cause__ if isinstance(error, ImageError) and error.__cause__ else error))
            say(why, "error", number)
            failed = msgspec.structs.replace(
                build, status="error", reason=why[:_LINE_MAX], step=number, finished=self._service.clock.time()
            )
            self._service.assets.put_build(failed)
        except Exception:
            log.exception("a build failed", extra={"build": build.id})
            failed = msgspec.structs.replace(
                build, status="error", reason="Internal error", finished=self._service.clock.time()
            )
            self._service.assets.put_build(failed)

    async def _base(self, tenant: str, definition: Definition) -> Image:
        """The image that a definition begins with. ApiError, ImageError."""
        store = self._service.store
        if definition.from_image_registry is not None:
            raise ApiError(400, "this server fetches no images from registries: see `belljar image load`")
        if (name := definition.from_template) is not None:
            found = self._service.find_build(tenant, name)
            if found is not None and found.image is not None:
                return await asyncio.to_thread(Image.find, found.image, store)
            if name in TEMPLATES:
                return Image()
            raise ApiError(404, f"template '{name[:200]}' not found")
        name = definition.from_image or "e2bdev/base"
        if name.startswith("e2bdev/"):
            return Image()
        try:
            check_image_name(name)  # no digest, which may be another tenant's
            return await asyncio.to_thread(Image.find, name, store)
        except ImageError:
            raise ApiError(
                404,
                f"image '{name[:200]}' is not in this server's store, and it fetches none from registries: its "
                "operator can add it (`belljar image load`); or begin with from_base_image()",
            ) from None

    def _make(self, image: Image, hear: Callable[[Progress], None]) -> str:
        config = self._service.config
        network = Egress(config.allow_hosts, Wanted()).network()
        tier: Any = "native" if config.tier == "native" else None
        return image.build(self._service.store, network=network, on_progress=hear, tier=tier).digest

    async def _try_start(self, digest: str, build: Build, user: str, cwd: str) -> None:
        """Whether the start command gets ready. SandboxError, ApiError."""
        options: dict[str, Any] = {"limits": self._service.config.limits, "tier": self._service.config.tier}
        sandbox = AsyncSandbox(image=digest, store=self._service.store, user=USER, cwd=HOME, **options)
        async with sandbox:
            guest = Guest(sandbox, self._service.clock)
            try:
                await guest.launch(build.start, build.ready, user, cwd)
            finally:
                await guest.close()

    def _finish(self, template: Template, build: Build) -> None:
        assets = self._service.assets
        assets.put_build(build)
        for tag in build.tags.split():
            assets.put_tag(template.id, Tag(tag, build.id, self._service.clock.time()))

    async def remove(self, template: Template) -> None:
        """A template, and the images that only it had."""
        images = self._service.assets.drop_template(template.id)
        if images:
            await asyncio.to_thread(remove_images, images, self._service.store)


def _teller(hear: Callable[[str, str], None], numbers: list[int], definition: Definition) -> Callable[[Progress], None]:
    """Turns what a build says into lines of its log."""

    def tell(progress: Progress) -> None:
        number = numbers[progress.number - 1]
        if not number:
            return
        step = definition.steps[number - 1]
        if progress.state == "started" and numbers.index(number) == progress.number - 1:
            hear(
                f"[builder {number}/{len(definition.steps)}] {step.type} {' '.join(step.args)[:200]}".rstrip(),
                str(number),
            )
        elif progress.state == "output":
            for line in progress.output.decode("utf-8", "replace").splitlines():
                hear(line, str(number))

    return tell


def _failed_step(error: Exception, lines: deque[Line], step: str) -> str:
    """The client's number of the step that failed: the last that was begun."""
    if step == "finalize" or not isinstance(error, ImageError):
        return step
    return next((line.step for line in reversed(lines) if line.step), step)
