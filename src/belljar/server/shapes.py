"""Answers of the API as types, for its OpenAPI document: a test holds what the server says against them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field


class Failure(Struct):
    """An error: its HTTP status, and what is wrong."""

    code: int
    message: str


class Started(Struct, rename="camel"):
    """A sandbox that runs, and the tokens for it."""

    template_id: str = field(name="templateID")
    sandbox_id: str = field(name="sandboxID")
    client_id: str = field(name="clientID")
    envd_version: str
    envd_access_token: str
    traffic_access_token: str
    domain: str | None


class Listed(Struct, rename="camel"):
    template_id: str = field(name="templateID")
    sandbox_id: str = field(name="sandboxID")
    client_id: str = field(name="clientID")
    started_at: datetime
    end_at: datetime
    cpu_count: int
    memory_mb: int = field(name="memoryMB")
    disk_size_mb: int = field(name="diskSizeMB")
    metadata: dict[str, str]
    state: Literal["running", "paused"]
    envd_version: str


class MountShown(Struct):
    name: str
    path: str


class Lifecycle(Struct, rename="camel"):
    auto_resume: bool
    on_timeout: Literal["pause", "kill"]


class Detail(Listed, rename="camel", kw_only=True):
    envd_access_token: str
    domain: str | None
    volume_mounts: list[MountShown]
    allow_internet_access: bool | None
    network: dict[str, Any]
    lifecycle: Lifecycle


class Forked(Struct):
    sandbox: Started


class SnapshotShown(Struct):
    snapshot_id: str = field(name="snapshotID")
    names: list[str]


class Sample(Struct, rename="camel"):
    timestamp: datetime
    timestamp_unix: int
    cpu_count: int
    cpu_used_pct: float
    mem_used: int
    mem_total: int
    mem_cache: int
    disk_used: int
    disk_total: int


class Samples(Struct):
    sandboxes: dict[str, Sample]


class LogEntry(Struct):
    timestamp: datetime
    level: Literal["debug", "info", "warn", "error"]
    message: str
    fields: dict[str, str]


class Logged(Struct):
    timestamp: datetime
    line: str


class Logs(Struct, rename="camel"):
    logs: list[Logged]
    log_entries: list[LogEntry]


class LogsV2(Struct):
    logs: list[LogEntry]


class Link(Struct, rename="camel"):
    """A signed link to a port: by host name where there is one, else by path."""

    url: str
    path_url: str
    expires_at: datetime


class Requested(Struct, rename="camel"):
    template_id: str = field(name="templateID")
    build_id: str = field(name="buildID")
    public: bool
    aliases: list[str]
    names: list[str]
    tags: list[str]


class TemplateListed(Struct, rename="camel"):
    template_id: str = field(name="templateID")
    build_id: str = field(name="buildID")
    cpu_count: int
    memory_mb: int = field(name="memoryMB")
    disk_size_mb: int = field(name="diskSizeMB")
    public: bool
    aliases: list[str]
    names: list[str]
    created_at: datetime
    updated_at: datetime
    created_by: None
    last_spawned_at: datetime | None
    spawn_count: int
    build_count: int
    envd_version: str
    build_status: Literal["waiting", "building", "ready", "error"]


class BuildListed(Struct, rename="camel"):
    build_id: str = field(name="buildID")
    status: Literal["waiting", "building", "ready", "error"]
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    cpu_count: int
    memory_mb: int = field(name="memoryMB")
    envd_version: str


class TemplateShown(Struct, rename="camel"):
    template_id: str = field(name="templateID")
    public: bool
    aliases: list[str]
    names: list[str]
    created_at: datetime
    updated_at: datetime
    last_spawned_at: datetime | None
    spawn_count: int
    builds: list[BuildListed]


class BuildLine(Struct):
    timestamp: datetime
    level: Literal["debug", "info", "warn", "error"]
    message: str
    step: str = ""


class Reason(Struct, rename="camel"):
    message: str
    step: str
    log_entries: list[BuildLine]


class BuildShown(Struct, rename="camel"):
    template_id: str = field(name="templateID")
    build_id: str = field(name="buildID")
    status: Literal["waiting", "building", "ready", "error"]
    logs: list[str]
    log_entries: list[BuildLine]
    reason: Reason | None = None


class BuildLogs(Struct):
    logs: list[BuildLine]


class Upload(Struct):
    present: bool
    url: str


class Alias(Struct, rename="camel"):
    template_id: str = field(name="templateID")
    public: bool


class TagShown(Struct, rename="camel"):
    tag: str
    build_id: str = field(name="buildID")
    created_at: datetime


class Assigned(Struct, rename="camel"):
    build_id: str = field(name="buildID")
    tags: list[str]


class Updated(Struct):
    names: list[str]


class VolumeShown(Struct):
    volume_id: str = field(name="volumeID")
    name: str


class VolumeOpened(VolumeShown):
    token: str


class SecretShown(Struct, rename="camel"):
    secret_id: str = field(name="secretID")
    name: str
    current_version: int
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime
