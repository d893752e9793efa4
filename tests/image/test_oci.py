"""OCI layouts and archives of `docker save`: read into a store, written again, and what must not be believed."""

from __future__ import annotations

import json
import tarfile
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from belljar.abi.errors import ImageError
from belljar.image.layer import Meter, apply_layer
from belljar.image.layout_host import open_layout, write_layout
from belljar.image.oci import read_image
from belljar.image.oci_write import layout_files
from belljar.image.record import ImageRecord, config_of, environment_of
from belljar.image.tree import FileTree, Node
from belljar.store.objects import PIECE_BYTES, content_of
from belljar.store.store import Objects, Store
from belljar.store.tree import Kind
from tests.image.archives import (
    INDEX,
    add,
    config,
    directory,
    entry,
    hard_link,
    layer,
    oci,
    pack,
    saved,
    sha256,
    symlink,
    write_directory,
    write_tar,
)


def read(path: Path, objects: Objects, tag: str | None = None) -> ImageRecord:
    with open_layout(path) as layout:
        return read_image(layout, objects, tag)[0]


def listing(objects: Objects, record: ImageRecord) -> dict[str, str]:
    """Every path with what is there: contents, the target of a link, or the kind."""
    found = {}
    for path, node in FileTree.load(objects, record.trees[0]).walk():
        found[path.decode()] = describe(objects, node)
    del found[""]
    return found


def describe(objects: Objects, node: Node) -> str:
    match node.kind:
        case Kind.FILE:
            return "".join(content_of(objects.read([part])).decode() for part in node.parts if part)
        case Kind.SYMLINK:
            return "-> " + node.target.decode()
    return node.kind.name.lower()


def tree_of(tmp_path: Path, *layers: bytes) -> dict[str, str]:
    objects = Objects(Store.memory())
    return listing(objects, read(write_tar(tmp_path / "image.tar", oci(list(layers))), objects))


SIMPLE = layer(
    directory("etc"), entry("etc/conf", b"one", mtime=1.25, uid=5, gid=6, mode=0o4711), symlink("link", "etc/conf")
)


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "tar.zst", "directory"])
@pytest.mark.parametrize("made", ["oci", "docker"])
@pytest.mark.parametrize("how", ["", "gzip", "zstd"])
def test_every_form_gives_the_same_image(tmp_path: Path, kind: str, made: str, how: str) -> None:
    settings: dict[str, Any] = {
        "Env": ["A=1", "B=x=y"],
        "User": "app",
        "WorkingDir": "/etc",
        "Entrypoint": ["run"],
        "Cmd": ["it"],
    }
    files = oci([SIMPLE], how, **settings) if made == "oci" else saved([SIMPLE], **settings)
    if kind == "directory":
        path = write_directory(tmp_path / "image", files)
    else:
        path = write_tar(tmp_path / f"image.{kind}", files, {"tar.gz": "gzip", "tar.zst": "zstd"}.get(kind, ""))
    objects = Objects(Store.memory())
    record = read(path, objects)
    assert listing(objects, record) == {"etc": "directory", "etc/conf": "one", "link": "-> etc/conf"}
    assert environment_of(record) == {"A": "1", "B": "x=y"}
    assert (record.cwd, record.user, record.size) == (b"/etc", "app", 3)
    assert config_of(record).command == ["run", "it"]
    conf = FileTree.load(objects, record.trees[0]).find([b"etc", b"conf"])
    assert conf is not None
    assert (conf.mode, conf.uid, conf.gid, conf.mtime_ns) == (0o4711, 5, 6, 1_250_000_000)


LOWER = layer(
    directory("a"), entry("a/1", b"1"), entry("a/2", b"2"), directory("a/deep"), entry("a/deep/x", b"x"),
    entry("b", b"b"), symlink("bin", "usr/bin"), directory("usr"), directory("usr/bin"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("upper", "gone", "there"),
    [
        (layer(entry("a/.wh.1")), ["a/1"], {}),
        (layer(entry(".wh.a")), ["a", "a/1", "a/2", "a/deep", "a/deep/x"], {}),
        (layer(entry("a/.wh..wh..opq")), ["a/1", "a/2", "a/deep", "a/deep/x"], {}),
        (layer(entry("a/3", b"3"), entry("a/.wh..wh..opq")), ["a/1", "a/2", "a/deep", "a/deep/x"], {"a/3": "3"}),
        (
            layer(entry("a/deep/y", b"y"), entry("a/.wh..wh..opq")),
            ["a/1", "a/2", "a/deep/x"],
            {"a/deep/y": "y"},
        ),
        (layer(entry("a/1", b"new"), entry("a/.wh.1")), [], {"a/1": "new"}),
        (layer(entry("a/.wh.1"), entry("a/1", b"new")), [], {"a/1": "new"}),
        (layer(entry(".wh.a"), directory("a"), entry("a/9", b"9")), ["a/1", "a/2", "a/deep", "a/deep/x"], {"a/9": "9"}),
        (layer(directory("a"), entry("a/9", b"9"), entry(".wh.a")), ["a/1", "a/2", "a/deep", "a/deep/x"], {"a/9": "9"}),
        (layer(entry(".wh.nothing"), entry("no/where/.wh.x"), entry(".wh..wh.plnk")), [], {}),
        (layer(entry("a", b"now a file")), ["a/1", "a/2", "a/deep", "a/deep/x"], {"a": "now a file"}),
        (layer(directory("b"), entry("b/c", b"c")), [], {"b": "directory", "b/c": "c"}),
        (layer(entry("bin/sh", b"sh")), [], {"usr/bin/sh": "sh", "bin": "-> usr/bin"}),
        (layer(directory("bin"), entry("bin/sh", b"sh")), [], {"bin": "directory", "bin/sh": "sh"}),
        (layer(hard_link("h", "b"), entry(".wh.b")), ["b"], {"h": "b"}),
        (layer(entry("dev/null", kind=tarfile.CHRTYPE)), [], {"dev": "directory"}),
        (layer(directory("a"), directory("./a/"), directory("./")), [], {}),
        (layer(entry("new/made/on/the/way", b"w")), [], {
            "new": "directory", "new/made": "directory", "new/made/on": "directory", "new/made/on/the": "directory",
            "new/made/on/the/way": "w",
        }),
    ],
)  # fmt: skip
def test_layers_change_the_ones_below(tmp_path: Path, upper: bytes, gone: list[str], there: dict[str, str]) -> None:
    before = tree_of(tmp_path, LOWER)
    expected = {path: what for path, what in before.items() if path not in gone} | there
    assert tree_of(tmp_path, LOWER, upper) == expected


def test_hard_links_are_one_file(tmp_path: Path) -> None:
    objects = Objects(Store.memory())
    lower = layer(entry("x", b"shared"), hard_link("y", "x"), entry("z", b"shared"))
    record = read(write_tar(tmp_path / "i.tar", oci([lower, layer(hard_link("sub/w", "./y"))])), objects)
    tree = FileTree.load(objects, record.trees[0])
    x, y, w, z = (tree.find(path.encode().split(b"/")) for path in ("x", "y", "sub/w", "z"))
    assert x is y is w
    assert z is not x
    assert record.trees[0].hard_links == [(1, 3)]


def bomb(how: str) -> dict[str, bytes]:
    return oci([layer(entry("zeros", bytes(80 << 20)))], how)


def changed(files: dict[str, bytes], name: str, **fields: Any) -> dict[str, bytes]:
    return {**files, name: json.dumps({**json.loads(files[name]), **fields}).encode()}


def nested(depth: int) -> dict[str, bytes]:
    files = oci([SIMPLE])
    listed = json.loads(files["index.json"])["manifests"][0]
    for _ in range(depth):
        listed = add(files, json.dumps({"schemaVersion": 2, "manifests": [listed]}).encode(), INDEX)
    return {**files, "index.json": json.dumps({"schemaVersion": 2, "manifests": [listed]}).encode()}


def other_bytes(files: dict[str, bytes], part: str) -> dict[str, bytes]:
    """Change one bit of the blob that is a layer, configuration or manifest."""
    manifest = json.loads(files["index.json"])["manifests"][0]["digest"]
    parsed = json.loads(files["blobs/" + manifest.replace(":", "/")])
    digest = {"manifest": manifest, "config": parsed["config"]["digest"], "layer": parsed["layers"][0]["digest"]}[part]
    name = "blobs/" + digest.replace(":", "/")
    data = bytearray(files[name])
    data[len(data) // 2] ^= 1
    return {**files, name: bytes(data)}


def wrong_diff_id() -> dict[str, bytes]:
    files: dict[str, bytes] = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}
    kept = add(files, pack(SIMPLE, "gzip")[0], "application/vnd.oci.image.layer.v1.tar+gzip")
    made = add(files, json.dumps(config([LOWER])).encode(), "application/vnd.oci.image.config.v1+json")
    manifest = {"schemaVersion": 2, "config": made, "layers": [kept]}
    listed = add(files, json.dumps(manifest).encode(), "application/vnd.oci.image.manifest.v1+json")
    return {**files, "index.json": json.dumps({"schemaVersion": 2, "manifests": [listed]}).encode()}


def twice(files: dict[str, bytes]) -> dict[str, bytes]:
    index = json.loads(files["index.json"])
    return changed(files, "index.json", manifests=index["manifests"] * 2)


def _flipped(data: bytes) -> bytes:
    return data[:-20] + bytes(byte ^ 0xFF for byte in data[-20:])


HOSTILE = {
    "absolute": oci([layer(entry("/etc/passwd", b"x"))]),
    "above": oci([layer(entry("../x", b"x"))]),
    "above in the middle": oci([layer(entry("a/../../x", b"x"))]),
    "hard link above": oci([layer(hard_link("x", "../../etc/passwd"))]),
    "hard link absolute": oci([layer(hard_link("x", "/etc/passwd"))]),
    "hard link to nothing": oci([layer(hard_link("x", "nothing"))]),
    "hard link to a directory": oci([layer(directory("d"), hard_link("x", "d"))]),
    "hard link to itself": oci([layer(hard_link("x", "x"))]),
    "file behind an absolute link": oci([layer(symlink("l", "/etc")), layer(entry("l/passwd", b"x"))]),
    "file behind a link that leads out": oci([layer(symlink("l", "../..")), layer(entry("l/passwd", b"x"))]),
    "file behind a link that leads out of a directory": oci(
        [layer(directory("d"), symlink("d/l", "../../x")), layer(entry("d/l/passwd", b"x"))]
    ),
    "file behind links in circles": oci([layer(symlink("l", "m"), symlink("m", "l"), entry("l/x", b"x"))]),
    "hard link behind a link": oci([layer(symlink("l", "/")), layer(hard_link("x", "l/etc/passwd"))]),
    "whiteout behind a link": oci([layer(symlink("l", "/")), layer(entry("l/.wh.etc"))]),
    "file below a file": oci([layer(entry("f", b"f"), entry("f/g", b"g"))]),
    "whiteout of ..": oci([layer(entry(".wh..."))]),
    "whiteout of .": oci([layer(entry("a/.wh.."))]),
    "whiteout of nothing": oci([layer(entry(".wh."))]),
    "file below a whiteout": oci([layer(entry(".wh.a/b", b"x"))]),
    "two entries": oci([layer(entry("x", b"1"), entry("x", b"2"))]),
    "two entries, spelled otherwise": oci([layer(entry("a/x", b"1"), entry("./a//x", b"2"))]),
    "directory and file": oci([layer(directory("x"), entry("x", b"2"))]),
    "two entries by a link": oci([layer(symlink("l", "d"), directory("d"), entry("d/x", b"1"), entry("l/x", b"2"))]),
    "long name": oci([layer(entry("n" * 300, b"x"))]),
    "long path": oci([layer(entry("/".join(["d"] * 3000)[:5000], b"x"))]),
    "large owner": oci([layer(entry("x", b"x", uid=1 << 40))]),
    "unknown kind": oci([layer(entry("x", kind=b"V"))]),
    "empty link": oci([layer(symlink("x", ""))]),
    "large extended header": oci([layer(entry("x", b"x", pax_headers={"comment": "c" * (2 << 20)}))]),
    "gzip bomb": bomb("gzip"),
    "zstd bomb": bomb("zstd"),
    "cut header": oci([SIMPLE[:700]]),
    "cut file": oci([layer(entry("large", b"x" * 5000))[:3000]]),
    "cut padding": oci([layer(entry("small", b"x" * 100))[:700]]),
    "no tar": oci([b"this is no tar archive" * 100]),
    "damaged zstd": oci([_flipped(pack(SIMPLE * 50, "zstd")[0])], ""),
    "damaged gzip": oci([pack(SIMPLE, "gzip")[0][:-20]], ""),
    "other layer": other_bytes(oci([SIMPLE]), "layer"),
    "other config": other_bytes(oci([SIMPLE]), "config"),
    "other manifest": other_bytes(oci([SIMPLE]), "manifest"),
    "wrong diff id": wrong_diff_id(),
    "unknown layout version": changed(oci([SIMPLE]), "oci-layout", imageLayoutVersion="2.0.0"),
    "two images": twice(oci([SIMPLE])),
    "no images": changed(oci([SIMPLE]), "index.json", manifests=[]),
    "no JSON": {**oci([SIMPLE]), "index.json": b"{"},
    "deep JSON": {**oci([SIMPLE]), "index.json": b'{"x":' * 100_000},
    "huge JSON": {**oci([SIMPLE]), "index.json": b'{"schemaVersion": 2, "manifests": [], "x": "' + b"x" * (5 << 20)},
    "nested indexes": nested(10),
    "no image at all": {"hello": b"world"},
    "wrong environment": oci([SIMPLE], Env=["NOTHING"]),
    "relative working directory": oci([SIMPLE], WorkingDir="here"),
    "saved, layer by a path above": {
        **saved([SIMPLE]),
        "manifest.json": json.dumps([{"Config": "c.json", "Layers": ["../../etc/passwd"]}]).encode(),
        "c.json": json.dumps(config([SIMPLE])).encode(),
    },
    "saved, a name to be shown": {
        **saved([SIMPLE]),
        "manifest.json": json.dumps([{"Config": "c.json", "Layers": ["\x1b[2J\n"]}]).encode(),
        "c.json": json.dumps(config([LOWER])).encode(),
        "\x1b[2J\n": SIMPLE,
    },
    "a name to be shown": oci([layer(entry("\x1b[2J\n/../x", b"x"))]),
    "saved, other layer": {**saved([SIMPLE]), f"{sha256(SIMPLE)[7:]}/layer.tar": LOWER},
    "saved, layer missing": {k: v for k, v in saved([SIMPLE]).items() if not k.endswith("layer.tar")},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_of_a_bad_image_is_kept(tmp_path: Path, name: str) -> None:
    store = Store.memory()
    for path in (
        write_tar(tmp_path / "image.tar", HOSTILE[name]),
        write_directory(tmp_path / "image", HOSTILE[name]),
    ):
        with pytest.raises(ImageError) as raised:
            read(path, Objects(store))
        assert str(raised.value).isprintable()
    assert list(store.digests()) == []
    assert store.list() == {}


def test_unknown_manifest_versions_and_types(tmp_path: Path) -> None:
    for fields in ({"schemaVersion": 1}, {"schemaVersion": 3}):
        files = oci([SIMPLE])
        listed = json.loads(files["index.json"])["manifests"][0]
        manifest = json.loads(files["blobs/" + listed["digest"].replace(":", "/")])
        made = add(files, json.dumps({**manifest, **fields}).encode(), listed["mediaType"])
        files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [made]}).encode()
        with pytest.raises(ImageError, match="version"):
            read(write_tar(tmp_path / "image.tar", files), Objects(Store.memory()))
        listed["mediaType"] = "application/vnd.example.other"
        files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [listed]}).encode()
        with pytest.raises(ImageError, match="unknown type"):
            read(write_tar(tmp_path / "image.tar", files), Objects(Store.memory()))


def test_a_directory_does_not_lead_elsewhere(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "image", oci([SIMPLE]))
    (tmp_path / "outside").write_bytes((path / "index.json").read_bytes())
    (path / "index.json").unlink()
    (path / "index.json").symlink_to(tmp_path / "outside")
    with pytest.raises(ImageError, match=r"no file index\.json"):
        read(path, Objects(Store.memory()))


def test_one_of_several_images_is_chosen(tmp_path: Path) -> None:
    files = oci([SIMPLE], tag="one")
    other = oci([LOWER], tag="two")
    both = [each for made in (files, other) for each in json.loads(made["index.json"])["manifests"]]
    files |= other
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": both}).encode()
    path = write_tar(tmp_path / "image.tar", files)
    objects = Objects(Store.memory())
    assert "b" in listing(objects, read(path, objects, "two"))
    assert "b" not in listing(objects, read(path, objects, "one"))
    with pytest.raises(ImageError, match="'one', 'two'"):
        read(path, objects)
    with pytest.raises(ImageError, match="'three'"):
        read(path, objects, "three")


def test_the_same_platform_is_chosen_everywhere(tmp_path: Path) -> None:
    files: dict[str, bytes] = {}
    listed = []
    for architecture, made in (("arm64", SIMPLE), ("amd64", LOWER)):
        one = oci([made])
        files |= one
        manifest = json.loads(one["index.json"])["manifests"][0]
        listed.append({**manifest, "platform": {"os": "linux", "architecture": architecture}})
    index = add(files, json.dumps({"schemaVersion": 2, "manifests": listed}).encode(), INDEX)
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [index]}).encode()
    objects = Objects(Store.memory())
    assert "b" in listing(objects, read(write_tar(tmp_path / "image.tar", files), objects))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    objects = Objects(Store.memory())
    odd = "n\udcff/" + "long" * 40
    made = layer(
        directory("./", mode=0o1777, mtime=7),
        entry(odd, b"odd", mtime=-1.5),
        entry("large", b"x" * (PIECE_BYTES + 5) + bytes(PIECE_BYTES)),
        entry("zeros", bytes(3 * PIECE_BYTES + 1)),
        hard_link("again", "large"), symlink("s", "x" * 200), entry("pipe", kind=tarfile.FIFOTYPE), entry("empty"),
        entry("owner", b"o", uid=3_000_000, gid=4_000_000_000),
    )  # fmt: skip
    record = read(write_tar(tmp_path / "in.tar", oci([made], Env=["B=2", "A=1"], User="u", Cmd=["c"])), objects)
    for target in ("out.tar", "out"):
        write_layout(tmp_path / target, layout_files(objects, record, "app"))
        other = Objects(Store.memory())
        again = read(tmp_path / target, other)
        assert again.trees == record.trees
        assert (again.env, again.user, again.size) == (record.env, record.user, record.size)
    first = (tmp_path / "out.tar").read_bytes()
    write_layout(tmp_path / "out.tar", layout_files(other, again, "app"))
    write_layout(tmp_path / "third.tar", layout_files(other, read(tmp_path / "out", other), "app"))
    assert (tmp_path / "out.tar").read_bytes() == (tmp_path / "third.tar").read_bytes()
    assert len(first) > 5 * PIECE_BYTES
    with pytest.raises(ImageError, match="out"):
        write_layout(tmp_path / "out", layout_files(objects, record, "app"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.tar", "out", "out.tar", "third.tar"]


@pytest.mark.parametrize("seed", range(300))
def test_any_bytes_are_an_image_or_an_error(seed: int) -> None:
    """Headers that were changed at random, with sums that are right again."""
    random = Random(seed)
    data = bytearray(random.choice([SIMPLE, LOWER]))
    for _ in range(random.randrange(1, 6)):
        header = random.randrange(len(data) // 512) * 512
        data[header + random.choice([random.randrange(512), 100 + random.randrange(60), 156])] = random.choice(
            b"\0\x80\xff7xLKgS12/." + random.randbytes(1)
        )
        block = data[header : header + 512]
        data[header + 148 : header + 156] = b"%06o\0 " % (sum(block[:148]) + 256 + sum(block[156:]))
    tree = FileTree()
    with suppress(ImageError):
        apply_layer(tree, [bytes(data)], Meter())
        tree.save()
