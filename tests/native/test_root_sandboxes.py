"""Native sandboxes over roots of each kind: what programs in them see."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from belljar import Image, Sandbox, Store
from belljar.native.launch_host import owner_ids
from tests.image.archives import directory, entry, layer, saved, symlink, write_directory, write_tar
from tests.native.conftest import needs_native
from tests.native.debian_mirror import entries
from tests.native.test_debian_configure import programs

pytestmark = needs_native


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BELLJAR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def small_archive(place: Path, **settings: object) -> Path:
    """What `docker save` writes of an image with a shell and a few programs."""
    lower = layer(
        *entries(programs()),
        symlink("bin", "usr/bin"),
        symlink("lib", "usr/lib"),
        entry("usr/bin/setuid-id", Path(shutil.which("id") or "").read_bytes(), mode=0o4755),
        directory("tmp", mode=0o1777),
        entry("srv/private", b"secret", mode=0o600),
        entry("srv/mine", b"mine", mode=0o600, uid=1234, gid=1234),
        entry("etc/passwd", b"root:x:0:0::/root:/bin/sh\napp:x:1234:1234::/srv:/bin/sh\n"),
    )
    upper = layer(entry("usr/bin/.wh.sleep", b""), entry("srv/greeting", b"hello\n"))
    return write_tar(place / "app.tar", saved([lower, upper], **settings))


def test_what_docker_saved(tmp_path: Path) -> None:
    path = small_archive(tmp_path, Env=["GREETING=/srv/greeting", "PATH=/usr/bin"], WorkingDir="/srv", User="app")
    image = Image.oci(path).build(Store.memory())
    with Sandbox(tier="native", image=image) as sandbox:
        said = sandbox.exec("id -un; id -u; pwd; cat $GREETING mine; setuid-id -u; ls /usr/bin/sleep; cat private")
        # Where the owner has one id to give, all files of the image are its user's.
        separate = owner_ids().base is not None
        assert said.stdout == "app\n1234\n/srv\nhello\nmine1234\n" + ("" if separate else "secret")
        assert said.stderr.count("No such file") == 1
        assert said.stderr.count("Permission denied") == int(separate)
        sandbox.exec("rm greeting; echo new > /tmp/x").check()
    with Sandbox(tier="native", image=image) as sandbox:
        assert sandbox.exec("cat greeting; ls /tmp").stdout == "hello\n"


def test_a_recipe_is_built_when_the_sandbox_is_made(tmp_path: Path) -> None:
    store = Store.memory()
    image = Image.oci(small_archive(tmp_path)).files({"/srv/more": "more"}).env(PATH="/usr/bin")
    with Sandbox(tier="native", image=image, store=store) as sandbox:
        assert sandbox.exec("cat /srv/more; id -u").stdout == "more0\n"
    assert len(store.list("image/")) == 1


def test_commands_of_a_recipe_run_in_the_image(tmp_path: Path) -> None:
    image = Image.oci(small_archive(tmp_path, Env=["PATH=/usr/bin"])).run(
        "sed s/l/L/g /srv/greeting > /srv/loud; rm /srv/mine"
    )
    built = image.build(Store.memory(), tier="native")
    assert built.digest == image.build(Store.memory(), tier="native").digest
    with Sandbox(tier="native", image=built) as sandbox:
        assert sandbox.exec("cat /srv/loud; ls /srv").stdout == "heLLo\ngreeting\nloud\nprivate\n"


def test_a_directory(tmp_path: Path) -> None:
    place = tmp_path / "rootfs"
    for path, value in programs().items():
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(value, str):
            target.symlink_to(value)
        elif isinstance(value, tuple):
            target.write_bytes(value[0])
            target.chmod(value[1])
    (place / "bin").symlink_to("usr/bin")
    (place / "lib").symlink_to("usr/lib")
    write_directory(place, {"srv/file": b"as it was"})
    with Sandbox(tier="native", image=Image.directory(place), env={"PATH": "/usr/bin"}) as sandbox:
        assert sandbox.exec("cat /srv/file; id -u; stat -c %u /srv/file").stdout == "as it was0\n0\n"
        sandbox.exec("echo changed > /srv/file; rm -r /usr/bin/ls; echo new > /new").check()
    assert (place / "srv/file").read_bytes() == b"as it was"
    assert (place / "usr/bin/ls").exists()
    assert not (place / "new").exists()


@pytest.mark.skipif(not os.path.exists("/usr/bin/gcc"), reason="no compiler here")
def test_this_machines_programs(tmp_path: Path) -> None:
    (tmp_path / "tool").mkdir()
    (tmp_path / "tool/hello").write_text("#!/bin/sh\necho hello from $0\n")
    (tmp_path / "tool/hello").chmod(0o755)
    os.chmod(tmp_path, 0o755)
    image = Image.host(also=[tmp_path / "tool"]).files({"/workspace/a.c": "int main(void) { return 42; }"})
    with Sandbox(tier="native", image=image) as sandbox:
        assert sandbox.exec("gcc a.c && ./a.out").exit_code == 42
        assert sandbox.exec([str(tmp_path / "tool/hello")]).stdout == f"hello from {tmp_path}/tool/hello\n"
        for path in ("/usr/bin/new", "/bin/sh", str(tmp_path / "tool/new")):
            assert sandbox.exec(["touch", path]).exit_code == 1
        hidden = "/root/.ssh /etc/shadow /etc/machine-id /etc/ssh /var/lib/dpkg /home/user /run/systemd /etc/sudoers"
        assert sandbox.exec(f"ls -d {hidden} 2>/dev/null").stdout == ""
        assert sandbox.exec("cat /etc/hostname").stdout == "belljar\n"


def test_roots_are_released(cache: Path, tmp_path: Path) -> None:
    from belljar.native.root_cache_host import RootCache

    with Sandbox(tier="native", image=Image.oci(small_archive(tmp_path)), store=Store.memory()) as sandbox:
        RootCache(str(cache / "roots"), 0).trim()
        assert sandbox.exec("/usr/bin/ls /srv").ok
    RootCache(str(cache / "roots"), 0).trim()
    assert os.listdir(cache / "roots") == ["work"]
