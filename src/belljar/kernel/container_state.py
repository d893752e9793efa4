"""Containers as snapshots keep them: without their processes, and with their files elsewhere."""

from __future__ import annotations

from typing import Final

from belljar.abi.container_state import ContainerState, wrong_container
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.signals import Signal
from belljar.kernel.containers import Contained, ContainerImage, Request, VolumeRequest
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.status import ExitStatus

_KILLED: Final = ExitStatus(signal=Signal.KILL)
"""The status of one that runs: it ends with its sandbox."""

Pairs = tuple[tuple[str, str], ...]


def keep(contained: Contained) -> tuple[ContainerState | None, str]:
    """Return a container's state for a snapshot, None if it has none, and a description of what is lost, or ""."""
    name = f"the container {contained.name}"
    if contained.request.remove:
        return None, f"{name}, which is removed when it ends (--rm)"
    state = _state_of(contained)
    if wrong := wrong_container(state):
        return None, f"{name}: {wrong}"
    inner = contained.box.space.containers if contained.box is not None and contained.state == "running" else None
    return state, f"the containers in {name}" if inner is not None and inner.list() else ""


def _state_of(contained: Contained) -> ContainerState:
    request, image = contained.request, contained.image
    running = contained.state == "running"
    status = _KILLED if running else contained.status
    return ContainerState(
        id=contained.id,
        name=contained.name,
        image=fsencode(request.image),
        image_digest=image.digest,
        image_env=_encode_pairs(image.env),
        image_cwd=fsencode(image.cwd),
        image_user=fsencode(image.user),
        image_command=[fsencode(word) for word in image.command],
        argv=[fsencode(word) for word in request.argv],
        hostname=fsencode(request.hostname),
        env=_encode_pairs(request.env),
        cwd=fsencode(request.cwd),
        user=fsencode(request.user),
        volumes=[(fsencode(each.source), fsencode(each.target), each.read_only) for each in request.volumes],
        ports=list(request.ports),
        memory=request.memory,
        pids=request.pids,
        connected=request.connected,
        read_only=request.read_only,
        status=None if status is None else (status.code, status.signal),
        limit="" if running else contained.limit,
        created=contained.created,
        ended=0 if running else contained.ended,
    )


def contained_of(state: ContainerState, root: OverlayServer, now: int) -> Contained:
    """The container that a snapshot had, over the files it had; its own layer is empty again."""
    assert isinstance(root.upper, MemoryServer)
    request = Request(
        fsdecode(state.image),
        tuple(map(fsdecode, state.argv)),
        state.name,
        fsdecode(state.hostname),
        _decode_pairs(state.env),
        fsdecode(state.cwd),
        fsdecode(state.user),
        tuple(VolumeRequest(fsdecode(source), fsdecode(target), only) for source, target, only in state.volumes),
        tuple(state.ports),
        state.memory,
        state.pids,
        connected=state.connected,
        read_only=state.read_only,
    )
    image = ContainerImage(
        root.lower,
        _decode_pairs(state.image_env),
        fsdecode(state.image_cwd),
        fsdecode(state.image_user),
        tuple(map(fsdecode, state.image_command)),
        state.image_digest,
    )
    contained = Contained(state.id, state.name, request, image, root, root.upper)
    contained.created = state.created
    if state.status is not None:
        contained.status, contained.limit = ExitStatus(*state.status), state.limit
        contained.ended = state.ended or now
    return contained


def _encode_pairs(pairs: Pairs) -> list[tuple[bytes, bytes]]:
    return [(fsencode(name), fsencode(value)) for name, value in pairs]


def _decode_pairs(pairs: list[tuple[bytes, bytes]]) -> Pairs:
    return tuple((fsdecode(name), fsdecode(value)) for name, value in pairs)
