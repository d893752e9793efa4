"""Archives that mean harm: names that climb out, links that lead out, devices, bombs."""

from __future__ import annotations

import io
import tarfile
import zipfile

import pytest

from belljar.abi.limits import Limits
from tests.adapter import FileValue, new_session, put, run, run_command


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info


@pytest.mark.parametrize(
    "members",
    [
        [(member("../evil"), b"x")],
        [(member("a/../../evil"), b"x")],
        [(member("/tmp/evil"), b"x")],
        [(member("l", tarfile.SYMTYPE, ".."), b""), (member("l/evil"), b"x")],
        [(member("l", tarfile.SYMTYPE, "/tmp"), b""), (member("l/evil"), b"x")],
        [(member("l", tarfile.SYMTYPE, "../evil"), b""), (member("l"), b"x")],
        [(member("l", tarfile.SYMTYPE, "../evil"), b""), (member("h", tarfile.LNKTYPE, "l"), b""), (member("h"), b"x")],
    ],
)
def test_tar_stays_in_its_directory(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    files: dict[str, FileValue] = {"/tmp/w/in": ("dir",), "/tmp/w/a.tar": tar_of(*members)}
    script = "cd in; tar xf ../a.tar 2>/dev/null; [ -e ../evil ] || [ -e /tmp/evil ] && echo escaped; true"
    assert run(script, {}, files, b"")[0] == b""


def test_tar_hard_link_outside_is_refused() -> None:
    archive = tar_of((member("h", tarfile.LNKTYPE, "/tmp/secret"), b""))
    out, err, _ = run(
        "cd in; tar xf ../a.tar; [ -e h ] && cat h",
        {},
        {"/tmp/w/in": ("dir",), "/tmp/w/a.tar": archive, "/tmp/secret": "s"},
        b"",
    )
    assert out == b""
    assert b"Removing leading `/' from hard link targets" in err


def test_tar_devices_and_setuid() -> None:
    device = member("dev", tarfile.CHRTYPE)
    device.devmajor, device.devminor = 1, 3
    archive = tar_of((device, b""), (member("s", mode=0o4755), b"x"))
    out, err, _ = run("tar xf a.tar; stat -c %a s 2>/dev/null || ls -l s", {}, {"/tmp/w/a.tar": archive}, b"")
    assert b"dev: Cannot mknod: Operation not permitted" in err
    assert b"4755" not in out
    assert b"rws" not in out


def test_zip_stays_in_its_directory() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("../evil", "x")
        archive.writestr("/tmp/evil", "x")
        link = zipfile.ZipInfo("l")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, "..")
        archive.writestr("l/evil", "x")
    files: dict[str, FileValue] = {"/tmp/w/in": ("dir",), "/tmp/w/a.zip": out.getvalue()}
    script = "cd in; unzip -o ../a.zip >/dev/null 2>&1; [ -e ../evil ] || [ -e /tmp/evil ] && echo escaped; true"
    assert run(script, {}, files, b"")[0] == b""


@pytest.mark.parametrize(("pack", "unpack"), [("gzip", "zcat"), ("bzip2", "bzcat"), ("xz -0", "xzcat")])
def test_a_bomb_ends_at_the_budget(pack: str, unpack: str) -> None:
    session = new_session(limits=Limits(cpu_seconds=20, wall_seconds=60))
    put(session, "/tmp/w", ("dir",))
    made = run_command(session, ["bash", "-c", f"head -c 30000000 /dev/zero | {pack} >/tmp/w/b"])
    assert made.status == 0
    small = new_session(limits=Limits(steps=20_000, wall_seconds=30))
    data = run_command(session, ["cat", "/tmp/w/b"]).stdout
    put(small, "/tmp/b", data)
    assert run_command(small, ["bash", "-c", f"{unpack} </tmp/b >/dev/null"]).status != 0
