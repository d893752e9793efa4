"""The state of a container in a snapshot, without its files."""

import re
from typing import Final

from msgspec import Struct

CONTAINERS_MAX: Final = 100
"""Containers of one sandbox."""
_TEXT_MAX: Final = 100_000
"""Bytes of all texts of a container: its environment, its command and so on."""
_INT64: Final = 1 << 63
_ID: Final = re.compile(r"[0-9a-f]{12}")
CONTAINER_NAME: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}")


class ContainerState(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, kw_only=True):
    """A container that is not running: it exited, or was never started."""

    id: str
    name: str
    image: bytes
    """The name of its image; the other fields of the image are as they were when it was made."""
    image_digest: str = ""
    image_env: list[tuple[bytes, bytes]] = []
    image_cwd: bytes = b"/"
    image_user: bytes = b"root"
    image_command: list[bytes] = []
    argv: list[bytes] = []
    hostname: bytes = b""
    env: list[tuple[bytes, bytes]] = []
    cwd: bytes = b""
    user: bytes = b""
    volumes: list[tuple[bytes, bytes, bool]] = []
    """Sources, targets, and whether each is read-only."""
    ports: list[tuple[int, int]] = []
    memory: int = 0
    pids: int = 0
    connected: bool = True
    read_only: bool = False
    status: tuple[int, int] | None = None
    """The exit code and the signal that it ended with; None: it was never started."""
    limit: str = ""
    created: int = 0
    """Nanoseconds since 1970."""
    ended: int = 0
    """0: it ran, and has ended with its sandbox."""


def wrong_container(state: ContainerState) -> str:
    """Reason why this is no container of a snapshot; "" if it is one."""
    if not CONTAINER_NAME.fullmatch(state.name) or not _ID.fullmatch(state.id):
        return "its name makes no sense"
    pairs, volumes = state.env + state.image_env, state.volumes
    texts = [state.image, state.image_cwd, state.image_user, state.hostname, state.cwd, state.user]
    texts += [*state.argv, *state.image_command, *(text for pair in pairs for text in pair)]
    texts += [text for source, target, _ in volumes for text in (source, target)]
    if sum(len(text) + 1 for text in texts) + len(state.image_digest) + len(state.limit) > _TEXT_MAX:
        return f"its environment, command and options take more than {_TEXT_MAX} bytes"
    if any(b"\0" in text for text in texts):
        return "a text has a zero byte"
    if any(not name or b"=" in name for name, _ in pairs):
        return "its environment makes no sense"
    if not state.argv and not state.image_command:
        return "it has no command"
    if not state.image_cwd.startswith(b"/") or state.cwd[:1] not in (b"", b"/"):
        return "a path is not absolute"
    if any(not source or not target.startswith(b"/") for source, target, _ in volumes):
        return "a volume makes no sense"
    code, signal = state.status or (0, 0)
    numbers = (state.memory, state.pids, state.created, state.ended)
    ports = [port for pair in state.ports for port in pair]
    if not all(0 <= number < _INT64 for number in numbers) or not all(0 < port < 65536 for port in ports):
        return "a number is out of range"
    if len(ports) > _TEXT_MAX or not 0 <= code < 256 or not 0 <= signal <= 64:
        return "a number is out of range"
    return ""
