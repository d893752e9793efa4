"""Templates of the control API: requested, built from the SDKs' definitions, tagged, listed and removed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Final

from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response

from belljar.server.access import Access, Caller
from belljar.server.assets_host import DEFAULT_TAG, Build, Tag, Template
from belljar.server.builds import Builds, Line
from belljar.server.control import ENVD_VERSION, Control, page, reply, timestamp
from belljar.server.errors import ApiError
from belljar.server.keys_host import build_id, new_id
from belljar.server.recipes import Definition
from belljar.server.service import TEMPLATES, Service
from belljar.server.uploads_host import is_hash

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,127}")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_LOGS: Final = 100
_UPLOAD_SECONDS: Final = 3600
_LEVELS: Final = ("debug", "info", "warn", "error")


class NewTemplate(Struct, rename="camel"):
    name: str
    tags: list[str] = []
    cpu_count: int | None = None
    memory_mb: int | None = field(default=None, name="memoryMB")


class AssignTags(Struct):
    target: str
    tags: list[str]


class RemoveTags(Struct):
    name: str
    tags: list[str]


class Update(Struct):
    public: bool = False


class Templates:
    def __init__(self, service: Service, access: Access, control: Control) -> None:
        self._service = service
        self._access = access
        self._control = control
        self._uploads = service.uploads
        self._builds = Builds(service)

    def routes(self) -> list[tuple[str, str, str, Any]]:
        """Path, method, what the audit log calls it, and who answers."""
        one, build = "/templates/{name}", "/templates/{name}/builds/{build}"
        return [
            ("/v3/templates", "POST", "template", self.create),
            ("/v2/templates", "GET", "", self.list_pages),
            ("/templates", "GET", "", self.list_all),
            ("/templates/tags", "POST", "tag", self.assign_tags),
            ("/templates/tags", "DELETE", "tag", self.remove_tags),
            ("/templates/aliases/{name:path}", "GET", "", self.alias),
            (f"{one}/files/{{hash}}", "GET", "", self.upload_link),
            (f"/v2{build}", "POST", "build", self.start_build),
            (f"{build}/status", "GET", "", self.status),
            (f"{build}/logs", "GET", "", self.logs),
            ("/templates/{name:path}/tags", "GET", "", self.tags),
            ("/templates/{name:path}", "GET", "", self.show),
            ("/templates/{name:path}", "PATCH", "template", self.update),
            ("/v2/templates/{name:path}", "PATCH", "template", self.update),
            ("/templates/{name:path}", "DELETE", "delete", self.delete),
        ]

    def _find(self, caller: Caller, name: str) -> Template:
        found = self._service.assets.template(caller.tenant, name.removeprefix(f"{caller.tenant}/"))
        if found is None:
            raise ApiError(404, f"the template '{name[:200]}' wasn't found")
        return found

    def _build(self, request: Request, caller: Caller) -> tuple[Template, Build]:
        template = self._find(caller, request.path_params["name"])
        build = self._service.assets.build(template.id, request.path_params["build"])
        if build is None:
            raise ApiError(404, f"the build '{request.path_params['build'][:64]}' of the template wasn't found")
        return template, build

    async def create(self, request: Request, caller: Caller) -> Response:
        wish = await self._control.body(request, NewTemplate)
        name, _, tag = wish.name.removeprefix(f"{caller.tenant}/").partition(":")
        tags = list(dict.fromkeys([*([tag] if tag else []), *wish.tags])) or [DEFAULT_TAG]
        if not _NAME.fullmatch(name):
            raise ApiError(400, "Invalid template name: it takes lower-case letters, digits, - and _, at most 128")
        _check_tags(tags)
        if name in TEMPLATES or self._service.names_image(name):
            raise ApiError(409, f"There is a template '{name}' of this server's already")
        if self._service.names_snapshot(caller.tenant, name):
            raise ApiError(409, f"There is a snapshot '{name}' already")
        if self._service.store is None:
            raise ApiError(400, "This server keeps no templates: start it with --store")
        assets, now = self._service.assets, round(self._service.clock.time(), 3)
        template = assets.template(caller.tenant, name)
        if template is None:
            self._service.check_kept(caller.tenant)
            template = Template(new_id(), caller.tenant, name, now, None, 0)
            assets.add_template(template)
        build = Build(build_id(), template.id, "waiting", now, tags=" ".join(tags))
        assets.put_build(build)
        made = {
            "templateID": template.id,
            "buildID": build.id,
            "public": False,
            "aliases": [name],
            "names": [name],
            "tags": tags,
        }
        return reply(made, 202)

    async def upload_link(self, request: Request, caller: Caller) -> Response:
        """Where to put an archive of files: at this server, with a signature that holds for an hour."""
        template, number = self._find(caller, request.path_params["name"]), request.path_params["hash"]
        if not is_hash(number):
            raise ApiError(400, "Invalid hash of files")
        until = int(self._service.clock.time()) + _UPLOAD_SECONDS
        token = self._service.tokens.link("upload", caller.tenant, number, str(until))
        url = f"{request.base_url}uploads/{template.id}/{number}?until={until}&token={token}"
        return reply({"present": self._uploads.find(caller.tenant, number) is not None, "url": url}, 201)

    async def upload(self, request: Request) -> Response:
        """Keep an archive that a link was given for."""
        number, until = request.path_params["hash"], request.query_params.get("until", "")
        template = self._service.assets.template_by_id(request.path_params["name"])
        tenant = "" if template is None else template.tenant
        expected = self._service.tokens.link("upload", tenant, number, until)
        self._access.check_link(request, request.query_params.get("token", ""), expected, until)
        if template is None:
            raise ApiError(404, "the template wasn't found")
        await self._uploads.write(tenant, number, self._bounded(request, tenant))
        return Response(status_code=200)

    async def _bounded(self, request: Request, tenant: str) -> AsyncIterator[bytes]:
        most = self._service.config.upload_bytes - self._uploads.size(tenant)
        size = 0
        async for piece in request.stream():
            size += len(piece)
            if size > most:
                raise ApiError(413, "the files of templates are larger than this server takes", {"Connection": "close"})
            yield piece
        self._service.count(tenant, "bytes_in", size)

    async def start_build(self, request: Request, caller: Caller) -> Response:
        template, build = self._build(request, caller)
        definition = await self._control.body(request, Definition)
        if build.status != "waiting":
            raise ApiError(400, "build is not in waiting state")
        self._builds.begin(template, build, definition)
        return Response(status_code=202)

    async def status(self, request: Request, caller: Caller) -> Response:
        template, build = self._build(request, caller)
        first, most = _number(request, "logsOffset", 0, 1 << 31), _number(request, "limit", _LOGS, _LOGS)
        lines = [line for line in self._builds.logs(build.id) if _shown(request, line)]
        info: dict[str, Any] = {
            "templateID": template.id,
            "buildID": build.id,
            "status": build.status,
            "logs": [],
            "logEntries": [_entry(line) for line in lines[first : first + most]],
        }
        if build.status == "error":
            info["reason"] = {"message": build.reason, "step": build.step, "logEntries": []}
        return reply(info)

    async def logs(self, request: Request, caller: Caller) -> Response:
        _, build = self._build(request, caller)
        most = _number(request, "limit", _LOGS, _LOGS)
        cursor = request.query_params.get("cursor", "")
        backward = request.query_params.get("direction") == "backward"
        after = int(cursor[:15]) / 1e3 if cursor.isascii() and cursor.isdigit() else (None if backward else 0.0)
        lines = [line for line in self._builds.logs(build.id) if _shown(request, line)]
        if backward:
            lines = [line for line in reversed(lines) if after is None or line.at <= after]
        else:
            lines = [line for line in lines if line.at >= (after or 0.0)]
        return reply({"logs": [_entry(line) for line in lines[:most]]})

    def _listed(self, template: Template) -> dict[str, Any]:
        builds, limits = self._service.assets.builds(template.id), self._service.config.limits
        return {
            "templateID": template.id,
            "buildID": next((build.id for build in builds if build.image is not None), str(builds[0].id)),
            "cpuCount": 1,
            "memoryMB": limits.memory_bytes >> 20,
            "diskSizeMB": limits.file_bytes >> 20,
            "public": False,
            "aliases": [template.name],
            "names": [template.name],
            "createdAt": timestamp(template.created),
            "updatedAt": timestamp(builds[0].finished or builds[0].created),
            "createdBy": None,
            "lastSpawnedAt": None if template.spawned is None else timestamp(template.spawned),
            "spawnCount": template.spawns,
            "buildCount": len(builds),
            "envdVersion": ENVD_VERSION,
            "buildStatus": builds[0].status,
        }

    async def list_all(self, request: Request, caller: Caller) -> Response:
        return reply([self._listed(template) for template in self._service.assets.templates(caller.tenant)])

    async def list_pages(self, request: Request, caller: Caller) -> Response:
        return page(request, self._service.assets.templates(caller.tenant), lambda each: each.id, self._listed)

    async def show(self, request: Request, caller: Caller) -> Response:
        template, limits = self._find(caller, request.path_params["name"]), self._service.config.limits
        builds = self._service.assets.builds(template.id)
        shown = {name: self._listed(template)[name] for name in _SHOWN}
        shown["builds"] = [
            {
                "buildID": build.id,
                "status": build.status,
                "createdAt": timestamp(build.created),
                "updatedAt": timestamp(build.finished or build.created),
                "finishedAt": None if build.finished is None else timestamp(build.finished),
                "cpuCount": 1,
                "memoryMB": limits.memory_bytes >> 20,
                "envdVersion": ENVD_VERSION,
            }
            for build in builds[:_LOGS]
        ]
        return reply(shown)

    async def update(self, request: Request, caller: Caller) -> Response:
        template = self._find(caller, request.path_params["name"])
        if (await self._control.body(request, Update)).public:
            raise ApiError(400, "Templates of this server are their tenant's own: none can be public")
        return reply({"names": [template.name]})

    async def delete(self, request: Request, caller: Caller) -> Response:
        """A template, or a snapshot, which the protocol takes for one."""
        name = request.path_params["name"]
        if self._service.names_snapshot(caller.tenant, name):
            return await self._control.delete_snapshot(request, caller)
        await self._builds.remove(self._find(caller, name))
        return Response(status_code=204)

    async def alias(self, request: Request, caller: Caller) -> Response:
        name = request.path_params["name"]
        if name in TEMPLATES or self._service.names_image(name):
            return reply({"templateID": name, "public": True})
        return reply({"templateID": self._find(caller, name.partition(":")[0]).id, "public": False})

    async def tags(self, request: Request, caller: Caller) -> Response:
        template = self._find(caller, request.path_params["name"])
        return reply(
            [
                {"tag": tag.name, "buildID": tag.build, "createdAt": timestamp(tag.created)}
                for tag in self._service.assets.tags(template.id)
            ]
        )

    async def assign_tags(self, request: Request, caller: Caller) -> Response:
        wish = await self._control.body(request, AssignTags)
        name, _, tag = wish.target.partition(":")
        _check_tags(wish.tags)
        template = self._find(caller, name)
        build = self._service.assets.tagged(template.id, tag or DEFAULT_TAG)
        if build is None:
            raise ApiError(404, f"tag '{(tag or DEFAULT_TAG)[:128]}' does not exist for template '{name[:128]}'")
        for each in wish.tags:
            self._service.assets.put_tag(template.id, Tag(each, build.id, self._service.clock.time()))
        return reply({"buildID": build.id, "tags": wish.tags}, 201)

    async def remove_tags(self, request: Request, caller: Caller) -> Response:
        wish = await self._control.body(request, RemoveTags)
        template = self._find(caller, wish.name)
        there = {tag.name for tag in self._service.assets.tags(template.id)}
        for each in wish.tags:
            if each == DEFAULT_TAG:
                raise ApiError(400, f"The tag '{DEFAULT_TAG}' can't be removed")
            if each not in there:
                raise ApiError(404, f"tag '{each[:128]}' does not exist for template '{template.name}'")
        for each in wish.tags:
            self._service.assets.drop_tag(template.id, each)
        return Response(status_code=204)


_SHOWN: Final = (
    "templateID", "public", "aliases", "names", "createdAt", "updatedAt", "lastSpawnedAt", "spawnCount",
)  # fmt: skip


def _check_tags(tags: list[str]) -> None:
    if not tags:
        raise ApiError(400, "No tags")
    for tag in tags:
        if not _TAG.fullmatch(tag):
            raise ApiError(400, f"Invalid tag {tag[:40]!r}: it takes letters, digits, ., - and _, at most 128")


def _entry(line: Line) -> dict[str, Any]:
    entry = {"timestamp": timestamp(line.at), "level": line.level, "message": line.message}
    return {**entry, "step": line.step} if line.step else entry


def _shown(request: Request, line: Line) -> bool:
    level = request.query_params.get("level", "debug")
    if level not in _LEVELS:
        raise ApiError(400, "Invalid level parameter")
    return _LEVELS.index(line.level) >= _LEVELS.index(level)


def _number(request: Request, name: str, usual: int, most: int) -> int:
    text = request.query_params.get(name, str(usual))
    if not (text.isascii() and text.isdigit() and int(text[:12]) <= most):
        raise ApiError(400, f"Invalid {name}: 0 to {most}")
    return int(text)
