"""Images as bytes: cpio archives, module order, qcow2."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.vm import cpio, modules
from belljar.vm.disks_host import disk_name, trim_disks
from belljar.vm.parts_host import boot_directory, directory, find_parts, run_tool, trim_directory
from belljar.vm.qcow2 import Layout, Qcow2Error, Reader, used_clusters


def test_cpio_is_what_other_programs_read(tmp_path: Path) -> None:
    data = cpio.pack_cpio([cpio.directory("d"), cpio.file("d/f", b"hello\n", 0o755), cpio.file("odd", b"abc")])
    listed = subprocess.run(
        ["python3", "-c", _READ_CPIO], input=data, capture_output=True, check=True, text=False
    ).stdout.decode()
    assert listed == "d 40755 0\nd/f 100755 6\nodd 100644 3\nTRAILER!!! 0 0\n"


_READ_CPIO = """
import sys
data, at = sys.stdin.buffer.read(), 0
while at < len(data):
    field = lambda n: int(data[at + 6 + 8 * n : at + 14 + 8 * n], 16)
    assert data[at : at + 6] == b"070701"
    name = data[at + 110 : at + 110 + field(11) - 1].decode()
    print(name, oct(field(1))[2:], field(6))
    at += -(-(110 + field(11)) // 4) * 4 + -(-field(6) // 4) * 4
"""


def test_modules_come_after_what_they_need() -> None:
    found = {
        "virtio_net": b"\0depends=net-failover\0",
        "net_failover": b"\0depends=failover\0",
        "failover": b"\0depends=\0",
    }
    assert modules.load_order(["virtio_net", "ext4"], found) == ["failover", "net_failover", "virtio_net"]


SIZES = st.integers(1, 40).map(lambda count: count * 512 * 7)


@given(st.dictionaries(st.integers(0, 200), st.binary(min_size=1, max_size=64), max_size=20), SIZES)
def test_qcow2_reads_back_what_was_written(writes: dict[int, bytes], size: int) -> None:
    disk = bytearray(size)
    for at, data in writes.items():
        place = at * 613 % size
        disk[place : place + len(data)] = data[: size - place]

    def read(offset: int, length: int) -> bytes:
        return bytes(disk[offset : offset + length])

    layout = Layout(size, list(used_clusters(size, 512, read)), 512)
    image = b"".join([*layout.metadata(), *layout.data(read)])
    assert len(image) == layout.file_size
    reader = Reader(lambda offset, length: image[offset : offset + length])
    assert reader.size == size
    assert reader.read(0, size) == bytes(disk)


@pytest.mark.parametrize("cluster_size", [512, 4096, 65_536, 2 << 20])
def test_qemu_takes_our_qcow2(tmp_path: Path, cluster_size: int) -> None:
    size = 64 << 20
    pieces = {3 << 20: b"a" * 100_000, 40 << 20: b"b", size - 10: b"end"}
    disk = bytearray(size)
    for at, data in pieces.items():
        disk[at : at + len(data)] = data

    def read(offset: int, length: int) -> bytes:
        return bytes(disk[offset : offset + length])

    layout = Layout(size, list(used_clusters(size, cluster_size, read)), cluster_size)
    image, raw = tmp_path / "image.qcow2", tmp_path / "raw"
    image.write_bytes(b"".join([*layout.metadata(), *layout.data(read)]))
    parts = find_parts()
    checked = run_tool(parts, ["qemu-img", "check", "-f", "qcow2", str(image)])
    assert checked.returncode == 0, checked.stdout + checked.stderr
    run_tool(parts, ["qemu-img", "convert", "-f", "qcow2", "-O", "raw", str(image), str(raw)], check=True)
    assert raw.read_bytes() == bytes(disk)


@pytest.mark.parametrize("data", [b"", b"QFI\xfb", bytes(200), b"QFI\xfb" + b"\xff" * 200])
def test_what_is_no_image_is_refused(data: bytes) -> None:
    with pytest.raises(Qcow2Error):
        Reader(lambda offset, length: data[offset : offset + length])


def test_disks_used_least_recently_are_removed_the_built_in_never(tmp_path: Path) -> None:
    names = [disk_name(f"image {number}") for number in range(12)]
    for age, name in enumerate([*names, disk_name("builtin")]):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    trim_disks(str(tmp_path), ["image 11", "builtin"])
    assert {path.name for path in tmp_path.iterdir()} == {*names[:8], names[11], disk_name("builtin")}


HOLD = "import sys; from belljar.vm.parts_host import held_directory; held_directory(sys.argv[1]); print(); input()"


def test_boots_used_least_recently_are_removed_those_in_use_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BELLJAR_CACHE", str(tmp_path))
    kernel = tmp_path / "vmlinux"
    kernel.touch()
    place = Path(directory())
    for number in range(12):
        (place / f"boot-{number:02}").mkdir()
        os.utime(place / f"boot-{number:02}", (1e9 - number, 1e9 - number))
    (place / "parts-1").mkdir()
    words = [sys.executable, "-c", HOLD, "boot-11"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        boot = boot_directory("new", b"first", str(kernel))
        assert (boot / "initrd").read_bytes() == b"first"
        kept = {f"boot-{number:02}" for number in range(5)}
        assert {path.name for path in place.iterdir()} == {*kept, "boot-new", "boot-11", "parts-1"}
        other.communicate(b"\n")
    trim_directory(str(place), 0, (), prefix="boot-")
    assert {path.name for path in place.iterdir()} == {"boot-new", "parts-1"}
    shutil.rmtree(boot)
    assert (boot_directory("new", b"first", str(kernel)) / "initrd").read_bytes() == b"first"
    trim_directory(str(place), 0, (), prefix="boot-")
    assert boot.exists()
