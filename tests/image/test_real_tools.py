"""Images beside skopeo and umoci: they read what we write, we read what they write, and the trees are the same."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import pytest

from belljar.image.layout_host import open_layout, write_layout
from belljar.image.oci import read_image
from belljar.image.oci_write import layout_files
from belljar.image.record import ImageRecord
from belljar.image.tree import FileTree
from belljar.store.objects import PIECE_BYTES, content_of
from belljar.store.store import Objects, Store
from belljar.store.tree import Kind
from tests.image.archives import directory, entry, hard_link, layer, oci, symlink, write_tar
from tests.image.tools import run

Listing = dict[str, tuple[object, ...]]

TREE = layer(
    directory("./", mode=0o755, mtime=3), directory("dir", mode=0o2750, mtime=4), entry("dir/f", b"data", mtime=5.25),
    entry("dir/script", b"#!/bin/sh\n", mode=0o755), symlink("link", "dir/f"), symlink("away", "/etc/passwd"),
    hard_link("hard", "dir/f"), entry("fifo", kind=tarfile.FIFOTYPE), entry("empty"), directory("no files"),
    entry("large", os.urandom(1000) * 5000, mtime=1e9), entry("é/" + "long" * 50, b"deep"),
)  # fmt: skip


def stored(objects: Objects, record: ImageRecord) -> Listing:
    found: Listing = {}
    first: dict[int, str] = {}
    for path, node in FileTree.load(objects, record.trees[0]).walk():
        name = path.decode() or "."
        content: object = node.target.decode()
        if node.kind is Kind.FILE:
            content = b"".join(
                content_of(objects.read([part])) if part else bytes(min(PIECE_BYTES, node.size)) for part in node.parts
            )
        mode = 0 if node.kind is Kind.SYMLINK else node.mode
        link = "" if node.is_directory else first.setdefault(id(node), name)
        time = 0 if node.kind is Kind.SYMLINK else node.mtime_ns // 10**9
        found[name] = node.kind, mode, content, link, time
    return found


def on_disk(root: Path) -> Listing:
    found: Listing = {}
    first: dict[int, str] = {}
    for path in sorted([root, *root.rglob("*")], key=lambda path: path.relative_to(root).parts):
        name = str(path.relative_to(root))
        status = path.lstat()
        link = "" if path.is_dir() and not path.is_symlink() else first.setdefault(status.st_ino, name)
        mode, time = status.st_mode & 0o7777, int(status.st_mtime)
        if path.is_symlink():
            found[name] = Kind.SYMLINK, 0, os.readlink(path), link, 0
        elif path.is_dir():
            found[name] = Kind.DIRECTORY, mode, "", link, time
        elif path.is_fifo():
            found[name] = Kind.FIFO, mode, "", link, time
        else:
            found[name] = Kind.FILE, mode, path.read_bytes(), link, time
    return found


def read(path: Path, objects: Objects, tag: str | None = None) -> ImageRecord:
    with open_layout(path) as layout:
        return read_image(layout, objects, tag)[0]


@pytest.fixture
def image(tmp_path: Path) -> tuple[Objects, ImageRecord]:
    objects = Objects(Store.memory())
    settings = {"Env": ["A=1"], "User": "0:0", "WorkingDir": "/dir", "Cmd": ["sh", "-c", "true"]}
    return objects, read(write_tar(tmp_path / "in.tar", oci([TREE], **settings)), objects)  # type: ignore[arg-type]


def test_umoci_unpacks_the_same_tree(tmp_path: Path, image: tuple[Objects, ImageRecord]) -> None:
    objects, record = image
    write_layout(tmp_path / "layout", layout_files(objects, record, "app"))
    run("umoci", "unpack", "--rootless", "--image", "layout:latest", "bundle", cwd=tmp_path)
    assert on_disk(tmp_path / "bundle" / "rootfs") == stored(objects, record)
    config = json.loads((tmp_path / "bundle" / "config.json").read_text())["process"]
    assert config["cwd"] == "/dir"
    assert config["args"] == ["sh", "-c", "true"]
    assert "A=1" in config["env"]


@pytest.mark.parametrize("form", ["docker-archive", "oci-archive", "oci", "dir"])
def test_skopeo_takes_an_archive_and_gives_others(
    tmp_path: Path, image: tuple[Objects, ImageRecord], form: str
) -> None:
    objects, record = image
    write_layout(tmp_path / "app.tar", layout_files(objects, record, "app:v1"))
    shown = json.loads(run("skopeo", "inspect", "--config", "oci-archive:app.tar:v1", cwd=tmp_path))
    assert shown["config"]["WorkingDir"] == "/dir"
    shown = json.loads(run("skopeo", "inspect", "--config", "docker-archive:app.tar", cwd=tmp_path))
    assert shown["config"]["Cmd"] == ["sh", "-c", "true"]
    target = {
        "docker-archive": "docker-archive:out:app:v2", "oci-archive": "oci-archive:out:v2", "oci": "oci:out:v2",
        "dir": "dir:out",
    }[form]  # fmt: skip
    run("skopeo", "--insecure-policy", "copy", "oci-archive:app.tar:v1", target, cwd=tmp_path)
    if form == "dir":
        return  # a form of skopeo's own: that it was written is all there is to see
    other = Objects(Store.memory())
    assert read(tmp_path / "out", other, "v2").trees == record.trees


def test_skopeo_takes_an_image_without_a_name(tmp_path: Path, image: tuple[Objects, ImageRecord]) -> None:
    for form in ("docker-archive:app.tar", "oci-archive:app.tar", "oci-archive:app.tar.gz"):
        write_layout(tmp_path / form.partition(":")[2], layout_files(*image, ""))
        shown = json.loads(run("skopeo", "inspect", "--config", form, cwd=tmp_path))
        assert shown["config"]["WorkingDir"] == "/dir"


def test_layers_of_umoci(tmp_path: Path) -> None:
    """Files changed, deleted and replaced between two layers, as a tool writes them."""
    run("umoci", "init", "--layout", "layout", cwd=tmp_path)
    run("umoci", "new", "--image", "layout:one", cwd=tmp_path)
    run("umoci", "unpack", "--rootless", "--image", "layout:one", "bundle", cwd=tmp_path)
    root = tmp_path / "bundle" / "rootfs"
    for name in ("a/x", "a/y", "b/z", "keep", "gone", "to-dir"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(name)
    os.link(root / "keep", root / "kept twice")
    run("umoci", "repack", "--image", "layout:one", "bundle", cwd=tmp_path)
    run("umoci", "unpack", "--rootless", "--image", "layout:one", "second", cwd=tmp_path)
    root = tmp_path / "second" / "rootfs"
    (root / "gone").unlink()
    (root / "b" / "z").unlink()
    (root / "b").rmdir()
    (root / "b").symlink_to("a")
    (root / "to-dir").unlink()
    (root / "to-dir").mkdir()
    (root / "to-dir" / "inside").write_text("new")
    (root / "a" / "x").write_text("changed")
    run("umoci", "repack", "--image", "layout:two", "second", cwd=tmp_path)
    run("umoci", "unpack", "--rootless", "--image", "layout:two", "third", cwd=tmp_path)
    objects = Objects(Store.memory())
    record = read(tmp_path / "layout", objects, "two")
    assert stored(objects, record) == on_disk(tmp_path / "third" / "rootfs")
    assert "gone" not in stored(objects, record)
