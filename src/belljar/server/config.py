"""Settings of a server: what `belljar serve` was told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from belljar.abi.limits import GIB, MIB, Limits

DAY: Final = 86400.0

GUEST_LIMITS: Final = Limits(
    steps=1_000_000_000_000,
    cpu_seconds=DAY,
    wall_seconds=30 * DAY,
    output_bytes=64 * GIB,
)
"""Limits of a sandbox unless told otherwise: commands may run as long as their sandbox, whose end is its timeout."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What one tenant may use at a time."""

    sandboxes: int = 100
    """Sandboxes that run."""
    kept: int = 1000
    """Paused sandboxes and snapshots."""
    execs_per_minute: int = 6000
    """Commands and runs of code."""
    streams: int = 500
    """Answers that are being streamed: commands, watches, runs."""
    memory_mb: int = 1 << 20
    """Memory that all its sandboxes have, in MiB, as it was measured last; beyond it nothing new is started."""
    cpu_seconds_per_hour: int = 1 << 30
    """Processor time; then nothing new is started until the hour is over."""
    disk_mb: int = 1 << 20
    """Files of its sandboxes, paused ones too, as it was measured last; beyond it nothing new is started."""
    volume_mb: int = 10 << 10
    """Files of one volume."""
    egress_mb_per_hour: int = 1 << 30
    """Traffic of its sandboxes with the network; then they have none until the hour is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    host: str = "127.0.0.1"
    port: int = 3000
    tier: str = "virtual"
    store: str | None = None
    """Where paused sandboxes and snapshots are kept; None: nowhere, a sandbox ends with its timeout."""
    data: str | None = None
    """The server's own SQLite file; None: memory."""
    tls_cert: str | None = None
    tls_key: str | None = None
    domain: str | None = None
    """Names below it lead to this server: previews are at `<port>-<id>.<domain>`."""
    insecure: bool = False
    """Listen beyond loopback without TLS."""
    allow_hosts: tuple[str, ...] = ()
    """What sandboxes may reach, unless they ask for less."""
    log: str = "text"
    limits: Limits = field(default=GUEST_LIMITS)
    quota: Quota = field(default=Quota())
    timeout_max: float = DAY
    idle_seconds: float | None = None
    """Pause (or end) sandboxes that nobody used for so long."""
    checkpoint_seconds: float | None = None
    """Keep sandboxes that run this often, so that a crash of the server loses no more than that."""
    drain_seconds: float = 30.0
    session_seconds: float = 60.0
    """How long a client of our own protocol may be without a connection until it is taken for gone."""
    upload_bytes: int = 1 * GIB
    json_bytes: int = 1 * MIB
    starts: int = 8
    """Sandboxes that are started at a time, and half as many of one tenant."""
