"""The OpenAPI document of the control API, from the types that requests are read by and answers are held against."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from belljar.abi.version import __version__
from belljar.server import control, credentials, recipes, shapes, templates, volumes
from belljar.server.egress import Wanted

_REF: Final = "#/components/schemas/{name}"
_ID: Final = {"type": "string", "pattern": "^[a-z0-9]{1,40}$"}
_TEXT: Final = {"type": "string", "minLength": 1, "pattern": "^[A-Za-z0-9_-]{1,128}$"}
_PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "id": _ID,
    "port": {"type": "integer", "minimum": 1, "maximum": 65535},
    "name": _TEXT,
    "build": {"type": "string", "format": "uuid"},
    "hash": {"type": "string", "pattern": "^[0-9a-f]{16,128}$"},
    "volume": _ID,
    "secret": _TEXT,
}
_LEVEL: Final = {"type": "string", "enum": ["debug", "info", "warn", "error"]}
_LIMIT: Final = {"type": "integer", "minimum": 1, "maximum": 100}
_NUMBER: Final = {"type": "integer", "minimum": 0, "maximum": 99999999999999}
_PAGES: Final = {"limit": _LIMIT, "nextToken": {"type": "string", "pattern": r"^[0-9]{1,9}\.[a-z0-9_]{1,64}$"}}
_FILTERS: Final = {
    "metadata": {"type": "string"},
    "template": {"type": "string"},
    "startedAfter": {"type": "string", "format": "date-time"},
}

Operation = tuple[str, str, str, Any, int, Any, dict[str, Any]]
"""Path, method, what it does, the type of its body, its status, the type of its answer, and its query."""

_ONE: Final = "/sandboxes/{id}"
_BUILD: Final = "/templates/{name}/builds/{build}"
OPERATIONS: Final[tuple[Operation, ...]] = (
    ("/sandboxes", "POST", "Create a sandbox", control.NewSandbox, 201, shapes.Started, {}),
    ("/v2/sandboxes", "POST", "Create a sandbox", control.NewSandbox, 201, shapes.Started, {}),
    ("/sandboxes", "GET", "List sandboxes that run", None, 200, list[shapes.Listed], _FILTERS),
    ("/v2/sandboxes", "GET", "List sandboxes, by pages", None, 200, list[shapes.Listed],
     {**_FILTERS, **_PAGES, "order": {"type": "string", "enum": ["asc", "desc"]}}),
    ("/sandboxes/metrics", "GET", "Measurements of several sandboxes", None, 200, shapes.Samples,
     {"sandbox_ids": {"type": "string"}}),
    (_ONE, "GET", "A sandbox", None, 200, shapes.Detail, {}),
    (_ONE, "DELETE", "End a sandbox", None, 204, None, {}),
    (f"{_ONE}/timeout", "POST", "Set when it ends", control.Timeout, 204, None, {}),
    (f"{_ONE}/refreshes", "POST", "Have it live longer", control.Refresh, 204, None, {}),
    (f"{_ONE}/pause", "POST", "Pause it", None, 204, None, {}),
    (f"{_ONE}/resume", "POST", "Go on with a paused one", control.Resume, 201, shapes.Started, {}),
    (f"{_ONE}/connect", "POST", "Have it run, and get its tokens", control.Connect, 200, shapes.Started, {}),
    (f"/v2{_ONE}/connect", "POST", "Have it run, and get its tokens", control.Connect, 200, shapes.Started, {}),
    (f"{_ONE}/fork", "POST", "Make branches of it", control.Fork, 201, list[shapes.Forked], {}),
    (f"{_ONE}/snapshots", "POST", "Keep it as it is now", control.NewSnapshot, 201, shapes.SnapshotShown, {}),
    (f"{_ONE}/ports/{{port}}", "POST", "A signed link to a port", control.NewLink, 201, shapes.Link, {}),
    (f"{_ONE}/network", "PUT", "Change its network", Wanted, 204, None, {}),
    (f"{_ONE}/metrics", "GET", "Its measurements", None, 200, list[shapes.Sample], {"start": _NUMBER, "end": _NUMBER}),
    (f"{_ONE}/logs", "GET", "Its log", None, 200, shapes.Logs, {"start": _NUMBER, "limit": _NUMBER}),
    (f"/v2{_ONE}/logs", "GET", "Its log", None, 200, shapes.LogsV2,
     {"cursor": _NUMBER, "limit": _NUMBER, "direction": {"type": "string", "enum": ["forward", "backward"]},
      "level": _LEVEL, "search": {"type": "string"}}),
    ("/snapshots", "GET", "List snapshots", None, 200, list[shapes.SnapshotShown],
     {**_PAGES, "sandboxID": {"type": "string"}, "name": {"type": "string"}}),
    ("/v3/templates", "POST", "Ask for a build of a template", templates.NewTemplate, 202, shapes.Requested, {}),
    ("/templates", "GET", "List templates", None, 200, list[shapes.TemplateListed], {}),
    ("/v2/templates", "GET", "List templates, by pages", None, 200, list[shapes.TemplateListed], _PAGES),
    ("/templates/tags", "POST", "Give a build tags", templates.AssignTags, 201, shapes.Assigned, {}),
    ("/templates/tags", "DELETE", "Remove tags", templates.RemoveTags, 204, None, {}),
    ("/templates/aliases/{name}", "GET", "Whether there is a template", None, 200, shapes.Alias, {}),
    ("/templates/{name}", "GET", "A template and its builds", None, 200, shapes.TemplateShown, {}),
    ("/templates/{name}", "PATCH", "Change a template", templates.Update, 200, shapes.Updated, {}),
    ("/v2/templates/{name}", "PATCH", "Change a template", templates.Update, 200, shapes.Updated, {}),
    ("/templates/{name}", "DELETE", "Remove a template or a snapshot", None, 204, None, {}),
    ("/templates/{name}/tags", "GET", "Tags of a template", None, 200, list[shapes.TagShown], {}),
    ("/templates/{name}/files/{hash}", "GET", "Where to upload files", None, 201, shapes.Upload, {}),
    (f"/v2{_BUILD}", "POST", "Begin a build", recipes.Definition, 202, None, {}),
    (f"{_BUILD}/status", "GET", "How a build is going", None, 200, shapes.BuildShown,
     {"logsOffset": {"type": "integer", "minimum": 0, "maximum": 1 << 31}, "level": _LEVEL,
      "limit": {"type": "integer", "minimum": 0, "maximum": 100}}),
    (f"{_BUILD}/logs", "GET", "The log of a build", None, 200, shapes.BuildLogs,
     {"cursor": _NUMBER, "limit": {"type": "integer", "minimum": 0, "maximum": 100}, "level": _LEVEL,
      "direction": {"type": "string", "enum": ["forward", "backward"]}}),
    ("/volumes", "GET", "List volumes", None, 200, list[shapes.VolumeShown], {}),
    ("/volumes", "POST", "Create a volume", volumes.NewVolume, 201, shapes.VolumeOpened, {}),
    ("/volumes/{volume}", "GET", "A volume, and the token for its files", None, 200, shapes.VolumeOpened, {}),
    ("/volumes/{volume}", "DELETE", "Remove a volume", None, 204, None, {}),
    ("/secrets", "GET", "List secrets", None, 200, list[shapes.SecretShown], _PAGES),
    ("/secrets", "POST", "Create a secret", credentials.NewSecret, 201, shapes.SecretShown, {}),
    ("/secrets/{secret}", "GET", "A secret, but for its value", None, 200, shapes.SecretShown, {}),
    ("/secrets/{secret}", "POST", "Give a secret a new value", credentials.SecretUpdate, 200, shapes.SecretShown, {}),
    ("/secrets/{secret}", "DELETE", "Remove a secret", None, 204, None, {}),
)  # fmt: skip
"""All of the control API. envd's part of the protocol is the SDKs' own business, and has no document."""

_NONE: Final = {"type": "null"}
_NAME: Final = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,128}$"}
_TAGS: Final = {"type": "array", "items": {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"}}
_ADDRESS: Final = r"^(1?\d?\d\.){3}1?\d?\d(/([12]?\d|3[0-2]))?$"
_HOST: Final = r"^(\*\.)?[a-z][a-z0-9]{0,20}(\.[a-z][a-z0-9]{0,20}){1,4}$"
_LINE: Final = {"type": "string", "minLength": 1, "maxLength": 65536, "pattern": "^[ -~]+$"}
_ABOUT: Final = {"type": ["object", "null"], "maxProperties": 32, "additionalProperties": {"type": "string"}}
_STRICTER: Final[dict[str, dict[str, Any]]] = {
    "NewSandbox": {
        "mcp": _NONE,
        "iam": _NONE,
        "autoPauseMemory": {"enum": [True, None], "description": "false is for those with autoPause only"},
        "envVars": {"type": ["object", "null"], "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
                    "additionalProperties": {"type": "string", "pattern": "^[ -~]*$"}},
    },
    "VolumeMount": {"name": _NAME, "path": {"type": "string", "pattern": "^/[a-z]+$"}},
    "Wanted": {
        "egressProxy": _NONE,
        "dnsServers": _NONE,
        "denyOut": {"type": ["array", "null"], "items": {"type": "string", "pattern": _ADDRESS}},
        "allowOut": {"type": ["array", "null"], "items": {"type": "string", "pattern": _HOST}},
        "maskRequestHost": {"type": ["string", "null"], "pattern": "^[A-Za-z0-9.:-]{1,300}$"},
        "rules": {"type": ["object", "null"], "propertyNames": {"pattern": _HOST},
                  "additionalProperties": {"type": "array", "items": {"$ref": _REF.format(name="Rule")}}},
    },
    "Transform": {"headers": {"type": "object", "propertyNames": {"pattern": "^[A-Za-z0-9-]{1,200}$"},
                              "additionalProperties": {"type": "string", "pattern": "^[ -~]*$"}}},
    "Fork": {"count": {"type": "integer", "minimum": 1, "maximum": 100}},
    "NewSnapshot": {"name": {"type": ["string", "null"], "pattern": "^[a-z0-9][a-z0-9_-]{0,127}$"}},
    "NewLink": {"seconds": {"type": "number", "minimum": 1, "maximum": 604800}},
    "NewTemplate": {
        "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,127}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$"},
        "tags": _TAGS,
    },
    "Update": {"public": {"const": False}},
    "AssignTags": {"tags": {**_TAGS, "minItems": 1}},
    "RemoveTags": {"tags": _TAGS},
    "NewVolume": {"name": _NAME},
    "NewSecret": {"name": {"type": "string", "pattern": "^[a-rt-zA-RT-Z0-9][a-zA-Z0-9_-]{0,127}$"}, "value": _LINE,
                  "metadata": _ABOUT},
    "SecretUpdate": {"value": _LINE, "metadata": _ABOUT},
}  # fmt: skip
"""What is checked beyond the types, or looked up: each schema's properties, as narrow as a document can say."""
_REFUSALS: Final = {
    400: "It can't be read, or asks for what can't be",
    401: "No valid key",
    403: "More than the operator or the key allows",
    404: "There is none of yours",
    409: "Not in its present state",
    413: "Too large",
    429: "More than your quota, or too many wrong keys",
    500: "A failure of the server's, which its log has by the id of the request",
    503: "The server is shutting down",
    507: "The store is full",
}


def document(timeout_max: int) -> dict[str, Any]:
    """The whole document. A sandbox may live for so many seconds."""
    types = [each for operation in OPERATIONS for each in (operation[3], operation[5]) if each is not None]
    schemas, components = msgspec.json.schema_components([*types, shapes.Failure], ref_template=_REF)
    for name, properties in _STRICTER.items():
        components[name]["properties"] |= properties
    for schema in components.values():
        for name in ("timeout", "duration"):
            if name in schema.get("properties", {}):
                schema["properties"][name] |= {"minimum": 0, "maximum": timeout_max}
    found = dict(zip(map(str, [*types, shapes.Failure]), schemas, strict=True))
    paths: dict[str, Any] = {}
    for path, method, summary, body, status, answer, query in OPERATIONS:
        operation: dict[str, Any] = {
            "summary": summary,
            "operationId": f"{method.lower()}{re.sub('[^A-Za-z0-9]+', '_', path)}".rstrip("_"),
            "parameters": [
                *({"name": n, "in": "path", "required": True, "schema": _PARAMETERS[n]} for n in _names(path)),
                *({"name": n, "in": "query", "required": False, "schema": schema} for n, schema in query.items()),
            ],
            "responses": _responses(status, None if answer is None else found[str(answer)], path),
        }
        if body is not None:
            needed = any(field.required for field in msgspec.structs.fields(body))
            content = {"application/json": {"schema": found[str(body)]}}
            operation["requestBody"] = {"required": needed, "content": content}
        paths.setdefault(path, {})[method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "belljar serve", "version": __version__, "description": "See docs/server.md and docs/e2b.md"},
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-API-KEY"}},
        },
    }


def _names(path: str) -> list[str]:
    return re.findall(r"\{(\w+)\}", path)


def _responses(status: int, schema: Any, path: str) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "Done"}
    if schema is not None:
        good["content"] = {"application/json": {"schema": schema}}
    refusal = {"application/json": {"schema": {"$ref": _REF.format(name="Failure")}}}
    answers = {str(code): {"description": text, "content": refusal} for code, text in _REFUSALS.items()}
    if path.endswith("/connect"):
        answers["201"] = good
    return {str(status): good, **answers}
