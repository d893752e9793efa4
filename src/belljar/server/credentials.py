"""Secrets of tenants: written once, never shown again, and put into requests of sandboxes on their way out."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from belljar.server.access import Caller
from belljar.server.assets_host import Credential
from belljar.server.control import Control, page, reply, timestamp
from belljar.server.errors import ApiError
from belljar.server.keys_host import new_id
from belljar.server.service import Service

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_VALUE_MAX: Final = 64 << 10
_METADATA_MAX: Final = 8192
_PER_TENANT: Final = 1000


class NewSecret(Struct):
    name: str
    value: str
    metadata: dict[str, str] | None = None


class SecretUpdate(Struct):
    value: str
    metadata: dict[str, str] | None = None


class Credentials:
    def __init__(self, service: Service, control: Control) -> None:
        self._service = service
        self._control = control

    def routes(self) -> list[tuple[str, str, str, Any]]:
        return [
            ("/secrets", "GET", "", self.list_all),
            ("/secrets", "POST", "secret", self.create),
            ("/secrets/{secret}", "GET", "", self.show),
            ("/secrets/{secret}", "POST", "secret", self.update),
            ("/secrets/{secret}", "DELETE", "delete", self.delete),
        ]

    def _find(self, request: Request, caller: Caller) -> Credential:
        found = self._service.assets.credential(caller.tenant, request.path_params["secret"])
        if found is None:
            raise ApiError(404, "Secret not found")
        return found

    async def list_all(self, request: Request, caller: Caller) -> Response:
        return page(request, self._service.assets.credentials(caller.tenant), lambda each: each.id, _shown)

    async def create(self, request: Request, caller: Caller) -> Response:
        wish = await self._control.body(request, NewSecret)
        if not _NAME.fullmatch(wish.name) or wish.name.lower().startswith("sec_"):
            raise ApiError(
                400, "Invalid secret name: it takes letters, digits, - and _, at most 128, and not sec_ first"
            )
        assets, now = self._service.assets, round(self._service.clock.time(), 3)
        if assets.credential(caller.tenant, wish.name) is not None:
            raise ApiError(409, f"There is a secret '{wish.name.lower()}' already")
        if len(assets.credentials(caller.tenant)) >= _PER_TENANT:
            raise ApiError(429, f"You have reached the maximum number of secrets ({_PER_TENANT})")
        made = Credential(f"sec_{new_id()}", wish.name.lower(), 1, _check(wish.value, wish.metadata), now, now)
        self._service.put_secret(caller.tenant, made, wish.value)
        return reply(_shown(made), 201)

    async def show(self, request: Request, caller: Caller) -> Response:
        return reply(_shown(self._find(request, caller)))

    async def update(self, request: Request, caller: Caller) -> Response:
        known = self._find(request, caller)
        wish = await self._control.body(request, SecretUpdate)
        metadata = _check(wish.value, known.metadata if wish.metadata is None else wish.metadata)
        changed = msgspec.structs.replace(
            known, version=known.version + 1, metadata=metadata, updated=round(self._service.clock.time(), 3)
        )
        self._service.put_secret(caller.tenant, changed, wish.value)
        return reply(_shown(changed))

    async def delete(self, request: Request, caller: Caller) -> Response:
        self._service.drop_secret(caller.tenant, self._find(request, caller))
        return Response(status_code=204)


def _check(value: str, metadata: dict[str, str] | None) -> dict[str, str]:
    """ApiError for what no header can have, or for too much."""
    if not value or len(value) > _VALUE_MAX or not (value.isascii() and value.isprintable()):
        raise ApiError(400, f"Invalid value: it is one line of 1 to {_VALUE_MAX} printable US-ASCII characters")
    found = metadata or {}
    if len(found) > 32 or sum(len(key) + len(text) for key, text in found.items()) > _METADATA_MAX:
        raise ApiError(400, f"Invalid metadata: at most 32 entries and {_METADATA_MAX} bytes")
    return found


def _shown(credential: Credential) -> dict[str, Any]:
    return {
        "secretID": credential.id,
        "name": credential.name,
        "currentVersion": credential.version,
        "metadata": credential.metadata,
        "createdAt": timestamp(credential.created),
        "updatedAt": timestamp(credential.updated),
    }
