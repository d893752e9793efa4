"""Path resolution: symlinks, `..`, mounts, unions and search permission, one component at a time."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from belljar.abi.errno import EACCES, ELOOP, ENOENT, ENOTDIR
from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFDIR, S_IFLNK, S_IFMT, SYMLINK_MAX
from belljar.abi.paths import check_path
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.namespace import Namespace, Place


class Viewer(Protocol):
    """The mount table, root, working directory and credentials that a path is resolved with."""

    namespace: Namespace
    root: Place
    cwd: Place
    credentials: Credentials


class Slot(NamedTuple):
    """The directory and name that a path's last component stands for, whether or not it exists.

    `name` is "" if that component is the root, `.` or `..`: then `directory` is the thing itself, `last` says which.
    """

    directory: Place
    name: str
    slash: bool
    """The path ended in a slash: what it names must be a directory."""
    last: str = "/"
    holder: Place | None = None
    """Of `..`: the directory it is in."""


def step(directory: Place, name: str) -> Place:
    """The entry `name` of a directory, before mounts on it are entered. In a union the first that has it."""
    mount, node = directory
    if mount.members and node is mount.root:
        for member in mount.members:
            try:
                return Place(member.mount, member.mount.server.walk(member.node, name))
            except SysError as error:
                if error.errno != ENOENT:
                    raise
        raise SysError(ENOENT)
    return Place(mount, mount.server.walk(node, name))


def parent(viewer: Viewer, place: Place) -> Place:
    """The target of `..`: out of mounts, never above the viewer's root."""
    mount, node = place
    while node is mount.root and place != viewer.root:
        if mount.point is None:
            return place
        place = mount, node = mount.point
    if place == viewer.root:
        return viewer.namespace.enter(place)
    above = mount.server.locate(node)
    if above is None:
        return place
    up = Place(mount, above[0])
    if up.node is mount.root and mount.point is not None:
        return viewer.namespace.enter(mount.point)
    return viewer.namespace.enter(up)


def resolve(
    viewer: Viewer,
    path: str,
    *,
    follow: bool = True,
    start: Place | None = None,
    visited: list[Place] | None = None,
) -> Place:
    """The place a path names. `follow` says what a symlink as last component means.

    `visited` collects the directories that were looked into, also when nothing is found.
    ENOENT, ENOTDIR, EACCES, ELOOP, ENAMETOOLONG.
    """
    place, _ = _walk(viewer, path, start, follow=follow, stop_before_last=False, visited=visited)
    return place


def resolve_slot(viewer: Viewer, path: str, *, start: Place | None = None) -> Slot:
    """The directory and name for a path's last component, which need not exist and is not followed."""
    place, slot = _walk(viewer, path, start, follow=False, stop_before_last=True)
    return slot if slot is not None else Slot(place, "", slash=True)


def _walk(
    viewer: Viewer,
    path: str,
    start: Place | None,
    *,
    follow: bool,
    stop_before_last: bool,
    visited: list[Place] | None = None,
) -> tuple[Place, Slot | None]:
    check_path(path)
    namespace = viewer.namespace
    place = viewer.root if path[0] == "/" else (start if start is not None else viewer.cwd)
    trailing = path[-1] == "/"
    # The components still to do, the next one last; symlinks push their own on top. The first is the path's last one.
    todo = path.rstrip("/").split("/")
    todo.reverse()
    links = 0
    uid = viewer.credentials.uid
    while todo:
        name = todo.pop()
        if not name:
            continue
        mount, node = place
        mode = node.mode
        if mode & S_IFMT != S_IFDIR:
            raise SysError(ENOTDIR, path)
        if visited is not None:
            visited.append(place)
        if uid != 0 and not viewer.credentials.may(node, 1):
            raise SysError(EACCES, path)
        last = not todo
        if name == ".":
            if last and stop_before_last:
                return place, Slot(place, "", trailing, ".")
            continue
        if name == "..":
            if last and stop_before_last:
                return place, Slot(parent(viewer, place), "", trailing, "..", place)
            place = parent(viewer, place)
            continue
        if last and stop_before_last:
            return place, Slot(place, name, trailing)
        try:
            child = step(place, name) if mount.members else Place(mount, mount.server.walk(node, name))
        except SysError as error:
            raise SysError(error.errno, path) from None
        child_node = child[1]
        if child_node in namespace.tops:
            child = namespace.enter(child)
            child_node = child[1]
        if child_node.mode & S_IFMT == S_IFLNK and (not last or follow or trailing):
            links += 1
            if links > SYMLINK_MAX:
                raise SysError(ELOOP, path)
            jump = child[0].server.magic_link(child_node)
            if jump is not None:
                place = jump
                continue
            target = child[0].server.readlink(child_node)
            if not target:
                raise SysError(ENOENT, path)
            if target[0] == "/":
                place = viewer.root
            pushed = target.rstrip("/").split("/")
            pushed.reverse()
            todo += pushed
            trailing = trailing or (last and target[-1] == "/")
            continue
        place = child
    if trailing and place[1].mode & S_IFMT != S_IFDIR:
        raise SysError(ENOTDIR, path)
    return place, None


def path_of(viewer: Viewer, place: Place, visited: list[Place] | None = None) -> str | None:
    """The absolute path of a directory as the viewer sees it; None if it was removed or lies outside.

    `visited` collects the directories above it.
    """
    names: list[str] = []
    while place != viewer.root:
        mount, node = place
        if node is mount.root:
            if mount.point is None:
                return None
            place = mount.point
            continue
        above = mount.server.locate(node)
        if above is None or not above[1]:
            return None
        names.append(above[1])
        place = Place(mount, above[0])
        if visited is not None:
            visited.append(place)
    names.reverse()
    return "/" + "/".join(names)
