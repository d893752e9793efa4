"""pkg in a sandbox: packages come and go, whole or not at all, and leave nothing behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from belljar.bin.pkg.transaction import Transaction
from belljar.kernel.vfs.view import View
from belljar.packages.archive import compress
from tests.packages.kit import World, package, registry


@pytest.fixture
def world() -> World:
    return World()


def test_a_package_comes_is_used_upgraded_and_goes_without_a_trace(world: World, tmp_path: Path) -> None:
    made = registry(tmp_path, package("hello"), package("words"), package("hello", "1.1.0", words="^1"))
    world.use(made)
    before = world.tree()
    assert world.ok("pkg install hello@1.0.0") == "installed hello 1.0.0\n"
    assert world.ok("hello 'a  b'") == "hello 1.0.0 a b\n"
    assert world.refused("pkg remove words").startswith("pkg: words is not installed")
    assert world.ok("pkg upgrade") == "nothing to do\n"  # 1.0.0 was asked for
    said = world.ok("pkg install hello@^1 && pkg upgrade")
    assert "installed words 1.0.0\ninstalled hello 1.1.0, which replaces 1.0.0\n" in said
    assert (
        world.ok("hello; words; pkg list") == "hello 1.1.0\nwords 1.0.0\nhello 1.1.0\nwords 1.0.0  (needed by others)\n"
    )
    assert "words is needed by hello 1.1.0" in world.refused("pkg remove words")
    assert world.ok("pkg remove hello") == "removed hello 1.1.0\nremoved words 1.0.0\n"
    assert world.tree() == before


def test_files_belong_to_packages_and_can_be_verified(world: World, tmp_path: Path) -> None:
    files = {"share/a": "a", "share/deep/b": "b"}
    world.use(registry(tmp_path, package("data", manifest='[files]\n"share" = "/usr/local/share/data"\n', files=files)))
    world.ok("pkg install data")
    assert world.ok("cat /usr/local/share/data/a /usr/local/share/data/deep/b") == "ab"
    listed = world.ok("pkg files data").splitlines()
    assert listed == ["/usr/local/lib/pkg/data/package.toml", "/usr/local/share/data/a", "/usr/local/share/data/deep/b"]
    assert world.ok("cd /usr/local/share; pkg owns data/a") == "/usr/local/share/data/a: data 1.0.0\n"
    assert world.ok("pkg verify") == "1 package: all is as it was installed\n"
    world.ok("sudo rm /usr/local/share/data/a; echo x | sudo tee -a /usr/local/share/data/deep/b")
    assert world.run("pkg verify data") == (
        1,
        "data 1.0.0: /usr/local/share/data/a is missing\ndata 1.0.0: /usr/local/share/data/deep/b was changed\n",
    )
    world.ok("pkg remove data; test ! -e /usr/local/share")


def test_what_goes_together_is_installed_and_the_reason_given_if_nothing_does(world: World, tmp_path: Path) -> None:
    made = registry(tmp_path, package("b"), package("b", "2.0.0"), package("a", "2.0.0", b="<2"), package("c", b=">=2"))
    world.use(made)
    world.ok("pkg install a")
    assert world.refused("pkg install c") == (
        "pkg: these can't be had together:\n"
        "  installed: a\n  you asked for c\n  a 2.0.0 needs b <2\n  c 1.0.0 needs b >=2\n"
    )
    assert "no nothing is offered" in world.refused("pkg install nothing")
    world.ok("pkg remove a && pkg install c && b")


def test_two_packages_with_one_file_are_refused_with_both_names(world: World, tmp_path: Path) -> None:
    other = package("other", manifest='[commands]\nhello = "x.sh"\n', files={"x.sh": "echo other"})
    world.use(registry(tmp_path, package("hello"), other))
    both = "pkg: /usr/local/bin/hello is in hello 1.0.0 and in other 1.0.0: they can't both be installed\n"
    assert world.refused("pkg install hello other") == both
    world.ok("pkg install hello")
    assert world.refused("pkg install other") == both
    world.ok("pkg remove hello; echo mine > /usr/local/bin/hello")
    assert "is there already, and belongs to no package" in world.refused("pkg install hello")


def test_a_failing_script_leaves_the_former_state(world: World, tmp_path: Path) -> None:
    scripts = '[commands]\nhello = "hello.sh"\n[scripts]\npost-install = "setup.sh"\n'
    setup = "echo made > made; cat /etc/shadow 2>/dev/null; touch /etc/x 2>/dev/null; id -un; exit {0}"

    def version(number: str, status: int) -> Any:
        files = {"hello.sh": f"echo {number}; cat /usr/local/lib/pkg/hello/made", "setup.sh": setup.format(status)}
        return package("hello", number, scripts, files)

    world.use(registry(tmp_path, version("1.0.0", 0), version("2.0.0", 7)))
    before = world.tree()
    assert world.ok("pkg install hello@1") == "nobody\ninstalled hello 1.0.0\n"
    assert world.ok("hello; pkg verify") == "1.0.0\nmade\n1 package: all is as it was installed\n"
    assert world.refused("pkg install hello@2") == (
        "nobody\npkg: the post-install script of hello 2.0.0 failed (exit code 7). Nothing was installed\n"
    )
    assert world.ok("hello") == "1.0.0\nmade\n"
    world.ok("pkg remove hello")
    assert world.tree() == before


class Crash(BaseException):
    """The end of a process in the midst of something."""


def crash_at(count: int, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Have the n-th renaming of a file end everything; tells whether it came to that."""
    calls, rename = 0, View.rename

    def failing(self: View, old: str, new: str, flags: int = 0) -> None:
        nonlocal calls
        calls += 1
        if calls == count:
            raise Crash
        rename(self, old, new, flags)

    monkeypatch.setattr(View, "rename", failing)
    # A process that is gone cleans nothing up.
    monkeypatch.setattr(Transaction, "undo", lambda self: None)
    monkeypatch.setattr(Transaction, "close", lambda self: None)
    return lambda: calls >= count


def test_a_crash_at_any_moment_leaves_the_former_state_or_the_new_one(tmp_path: Path) -> None:
    made = registry(tmp_path, package("words"), package("hello"), package("hello", "2.0.0", words="*"))
    world = World()
    world.use(made)
    world.ok("pkg install hello@1 && pkg fetch hello@2")
    old = world.tree()
    other = World()
    other.use(made)
    other.ok("pkg install hello@1 && pkg fetch hello@2 && pkg install hello@2")
    new = other.ok("pkg files hello; pkg files words; hello")
    ended: set[str] = set()
    for count in range(1, 100):
        with pytest.MonkeyPatch.context() as patch:
            crashed = crash_at(count, patch)
            with suppress(Crash):
                world.run("pkg install hello@2")
        said = world.ok("pkg list; pkg clean --help >/dev/null; pkg fetch hello@2 >/dev/null 2>&1; hello; pkg verify")
        if world.tree() == old:
            ended.add("old")
        else:
            assert world.ok("pkg files hello; pkg files words; hello") == new, (count, said)
            ended.add("new")
            assert not crashed()
            break
    assert ended == {"old", "new"}
    assert count > 8


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "Usage: pkg COMMAND"),
        ("frobnicate", "there is no command 'frobnicate'"),
        ("install", "say which packages"),
        ("install 'hello@!!'", "'!!' is no range of versions: write hello@^1.2"),
        ("install HELLO", "'HELLO' is no name of a package"),
        ("install ./no.tar.gz", "there is no archive ./no.tar.gz"),
        ("install hello", "there is no registry: `pkg registry add URL` adds one"),
        ("update", "there is no registry: `pkg registry add URL` adds one"),
        ("update elsewhere", "there is no registry 'elsewhere'"),
        ("registry add ftp://x", "'ftp://x' is no URL of a registry"),
        ("registry add http://x --key abc", "'abc' is no key of a registry"),
        ("registry add http://x --priority high", "--priority takes a number"),
        ("registry remove x", "there is no registry 'x'"),
        ("remove hello", "hello is not installed"),
        ("info hello", "there is no package hello"),
        ("owns /etc/passwd", "/etc/passwd belongs to no package"),
        ("install --from x hello", "there is no registry 'x'"),
        ("install --lock /etc/passwd", "/etc/passwd is no lock file"),
    ],
)
def test_mistakes_say_what_to_do(words: str, said: str, world: World) -> None:
    before = world.tree()
    assert said in world.run(f"pkg {words}")[1]
    assert world.tree() == before


def test_pins_and_locks(world: World, tmp_path: Path) -> None:
    made = registry(tmp_path, package("words"), package("hello", words="*"))
    world.use(made)
    world.ok("pkg install hello && pkg pin words && pkg lock lock.json")
    made.add(package("words", "1.5.0"))
    made.add(package("hello", "1.5.0", words="*"))
    world.put(made)
    world.ok("pkg update")
    assert world.ok("pkg upgrade") == "installed hello 1.5.0, which replaces 1.0.0\n"
    assert "words is pinned" in world.refused("pkg upgrade words")
    assert world.ok("pkg pin --off words && pkg upgrade") == "installed words 1.5.0, which replaces 1.0.0\n"
    assert world.ok("pkg install --lock lock.json; pkg list") == (
        "installed words 1.0.0, which replaces 1.5.0\ninstalled hello 1.0.0, which replaces 1.5.0\n"
        "hello 1.0.0\nwords 1.0.0  (needed by others)\n"
    )
    lock = json.loads(world.ok("cat lock.json"))
    lock["packages"][0]["digest"] = "sha256:" + "0" * 64
    world.write("/workspace/lock.json", json.dumps(lock).encode())
    world.ok("pkg remove hello")
    assert "the lock file says sha256:000" in world.refused("pkg install --lock lock.json")


def test_the_cache_serves_without_a_network(world: World, tmp_path: Path) -> None:
    world.use(registry(tmp_path, package("words"), package("hello", words="*")))
    assert "hello 1.0.0 is not in the cache" in world.refused("pkg install --offline hello").replace("words", "hello")
    world.ok("pkg fetch hello; sudo rm -r /srv/main")
    world.ok("pkg install --offline hello; hello")
    world.ok("pkg remove hello; test ! -e /var/cache/pkg")


def test_an_archive_can_be_installed_by_its_path(world: World) -> None:
    before = world.tree()
    world.write("/srv/hello.tar.gz", compress(package("hello").tar))
    world.ok("pkg install /srv/hello.tar.gz; hello; pkg info hello | grep 'local file'")
    world.ok("pkg remove hello")
    assert world.tree() == before


def test_permissions_are_shown_when_they_are_new(world: World, tmp_path: Path) -> None:
    manifest = '[commands]\nweb = "w.sh"\n[permissions]\nnetwork = [{0}]\nmounts = ["/data"]\n'
    one = package("web", "1.0.0", manifest.format('"a.example"'), {"w.sh": ""})
    two = package("web", "2.0.0", manifest.format('"a.example", "b.example"'), {"w.sh": ""})
    world.use(registry(tmp_path, one, two))
    assert world.ok("pkg install web@1").startswith("web 1.0.0 wants network a.example; mounts /data: it has what this")
    assert world.ok("pkg install web@2").startswith("web 2.0.0 wants network b.example: it has what")
    assert "wants: network a.example, b.example; mounts /data" in world.ok("pkg info web")


def test_a_service_of_a_package_is_started_replaced_and_stopped(world: World, tmp_path: Path) -> None:
    manifest = '[commands]\nticker = "t.sh"\n[services.ticker]\ncommand = "ticker"\nrestart = "always"\n'

    def version(number: str) -> Any:
        return package("ticker", number, manifest, {"t.sh": f"echo this is {number}; while sleep 1; do :; done\n"})

    world.use(registry(tmp_path, version("1.0.0"), version("1.1.0")))
    before = world.tree()
    assert "started the service ticker" in world.ok("pkg install ticker@1.0.0")
    assert "ticker: running" in world.ok("sleep 0.5; service status ticker")
    assert "restarted the service ticker" in world.ok("pkg install ticker@1.1.0")
    assert world.ok("sleep 0.5; service logs ticker") == "this is 1.0.0\nthis is 1.1.0\n"
    assert "stopped the service ticker" in world.ok("pkg remove ticker")
    assert world.ok("service list; sudo rm -f /var/log/init.log; pgrep sleep || true") == ""
    after = world.tree()
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} <= {"/var/log"}


def test_a_file_server_of_a_package_is_mounted_for_all_and_goes_with_it(world: World, tmp_path: Path) -> None:
    manifest = '[commands]\ntree = "t.sh"\n[file-servers.tree]\ncommand = "tree"\nmount = "/mnt/tree"\n'
    script = "mkdir -p /tmp/{0}; echo {0} > /tmp/{0}/x; exec 3</tmp/{0}; echo 3 > /mnt/srv/tree; sleep 1000\n"

    def version(number: str) -> Any:
        return package("tree", number, manifest, {"t.sh": script.format(number)})

    world.use(registry(tmp_path, version("1.0.0"), version("1.1.0")))
    world.ok("pkg install tree@1.0.0 && service wait tree")
    assert world.ok("cat /mnt/tree/x; grep -rl 1.0 /mnt/tree") == "1.0.0\n/mnt/tree/x\n"
    world.ok("pkg install tree@1.1.0 && service wait tree")
    assert world.ok("cat /mnt/tree/x") == "1.1.0\n"
    world.ok("sudo pkill -9 sleep; sleep 5; service wait tree")
    assert world.ok("cat /mnt/tree/x") == "1.1.0\n"
    world.ok("pkg remove tree")
    assert world.ok("ls /mnt; pgrep sleep || true") == "srv\nweb\n"


def test_what_is_looked_for_in_vain_is_said(world: World, tmp_path: Path) -> None:
    assert "there is no registry" in world.refused("pkg search")
    url = world.put(registry(tmp_path, package("hello"), package("hello", "2.0.0")))
    world.ok(f"pkg registry add {url} --name main")
    assert "`pkg update` gets it" in world.refused("pkg search hello")
    world.ok("pkg update")
    assert "no package is known that has nothing" in world.refused("pkg search nothing")
    assert "hello ^9, of which there are only 2.0.0, 1.0.0" in world.refused("pkg install hello@^9")


def test_what_other_package_managers_call_it_is_understood(world: World, tmp_path: Path) -> None:
    world.use(registry(tmp_path, package("hello")))
    assert world.ok("pkg add hello; pkg ls; pkg uninstall hello") == (
        "installed hello 1.0.0\nhello 1.0.0\nremoved hello 1.0.0\n"
    )
    assert "there is no command 'frob'" in world.run("pkg frob")[1]


def test_a_list_of_registries_that_nobody_wrote(world: World) -> None:
    world.write("/etc/pkg/registries.toml", b"a = " + b"[" * 100_000)
    assert "/etc/pkg/registries.toml: this is no TOML" in world.refused("pkg update")
