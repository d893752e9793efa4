"""A real Debian system, from deb.debian.org: compilers, servers, and apt-get against a mirror of ours.

Packages and the system made of them are kept in the tests' cache.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from belljar import Image, Network, Sandbox, Store
from tests.native.conftest import needs_native
from tests.native.debian_mirror import Mirror
from tests.native.test_network import AT, SECRET, run, with_token
from tests.net.servers import Authority, HttpServer

pytestmark = needs_native

CACHE = Path(os.environ.get("BELLJAR_TEST_CACHE") or os.path.expanduser("~/.cache/belljar-tests")) / "debian"
PACKAGES = ["cargo-web", "curl", "gcc", "git", "make", "postgresql", "python3", "redis-server"]


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BELLJAR_CACHE", str(CACHE))
        yield Image.debian("bookworm", PACKAGES).build(Store.sqlite(CACHE / "store.db"))


def test_everything_is_configured(image: Image) -> None:
    with Sandbox(tier="native", image=image) as sandbox:
        assert sandbox.exec("dpkg --audit; dpkg --verify").stdout == ""
        states = sandbox.exec("dpkg-query -W -f '${Status}\\n' | sort -u").stdout
        assert states == "install ok installed\n"
        assert sandbox.exec("apt-get --version").stdout.startswith("apt 2.")
        assert sandbox.exec("python3 -c 'import ssl, sqlite3; print(6 * 7)'").stdout == "42\n"


def test_a_program_is_compiled(image: Image) -> None:
    files = {
        "/src/hello.c": '#include <stdio.h>\n#include "text.h"\nint main(void) { puts(TEXT); return 0; }\n',
        "/src/text.h": '#define TEXT "hello"\n',
        "/src/Makefile": "hello: hello.c text.h\n\tcc -O2 -o $@ hello.c\ntest: hello\n\t./hello | grep -q hello\n",
    }
    with Sandbox(tier="native", image=image, files=files) as sandbox:
        assert sandbox.exec("cd /src && make -j2 test && git init -q && git add . && git status --short | wc -l").ok


def test_servers_run(image: Image) -> None:
    with Sandbox(tier="native", image=image) as sandbox:
        sandbox.exec("redis-server --daemonize yes --port 7777 && pg_ctlcluster 15 main start").check()
        wait = "for n in $(seq 50); do redis-cli -p 7777 ping > /dev/null && pg_isready -q && break; sleep 0.1; done"
        sandbox.exec(wait).check()
        assert sandbox.exec("redis-cli -p 7777 incr visits").stdout == "1\n"
        query = "create table t (n int); insert into t select generate_series(1, 100); select sum(n) from t"
        assert sandbox.exec(f"su postgres -c \"psql -qAt -c '{query}'\"").stdout == "5050\n"


def test_apt_get_installs_from_a_mirror(image: Image, tmp_path: Path) -> None:
    mirror = Mirror(tmp_path)
    mirror.add(
        "greeter",
        files={"usr/bin/greet": (b"#!/bin/sh\necho hello from $(cat /var/lib/greeter)\n", 0o755)},
        scripts={"postinst": "#!/bin/sh\nset -e\nhostname > /var/lib/greeter\n"},
        depends="greeter-data (>= 2)",
    )
    mirror.add("greeter-data", "2.1", files={"usr/share/greeter/data": b"data"})
    mirror.publish()
    with mirror.serve() as address:
        port = address.rpartition(":")[2]
        network = Network.allow(f"mirror.test:{port}", hosts={"mirror.test": "127.0.0.1"})
        with Sandbox(tier="native", image=image, network=network) as sandbox:
            source = f"deb [trusted=yes] http://mirror.test:{port} bookworm main"
            sandbox.exec(f"rm /etc/apt/sources.list.d/*; echo '{source}' > /etc/apt/sources.list").check()
            sandbox.exec("apt-get update").check()
            sandbox.exec("apt-get install -y greeter").check()
            said = sandbox.exec("greet; apt-get remove -y greeter > /dev/null; which greet").stdout
            assert said == "hello from belljar\n"


MANIFEST = """
[package]
name = "tree"
version = "1.0.0"
edition = "2021"
[dependencies]
leaf = { version = "1", registry = "here" }
"""


def crate(name: str, version: str, source: str) -> bytes:
    """A package of cargo's."""
    made = io.BytesIO()
    manifest = f'[package]\nname = "{name}"\nversion = "{version}"\nedition = "2021"\n'
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for path, text in (("Cargo.toml", manifest), ("src/lib.rs", source)):
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


def test_cargo_builds_with_a_crate_of_a_registry(image: Image, tmp_path: Path) -> None:
    upstream = Authority(tmp_path)
    data = crate("leaf", "1.0.0", "pub fn value() -> u32 { 7 }\n")
    about = {"name": "leaf", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False}
    line = json.dumps({**about, "cksum": hashlib.sha256(data).hexdigest()})
    routes: dict[str, Any] = {"/le/af/leaf": line, "/leaf/1.0.0/download": data}
    with ExitStack() as stack:
        server = stack.enter_context(HttpServer(routes, address=AT, context=upstream.context("crates.test")))
        server.routes["/config.json"] = json.dumps({"dl": f"https://crates.test:{server.port}"})
        network = with_token("crates.test", ca_bundle=str(upstream.path))
        env = {"CARGO_HOME": "/tmp/cargo"}
        sandbox = stack.enter_context(Sandbox(tier="native", image=image, network=network, env=env))
        sandbox.files.write("Cargo.toml", MANIFEST)
        sandbox.files.write("src/main.rs", 'fn main() { println!("{}", leaf::value()) }\n')
        source = f"sparse+https://crates.test:{server.port}/"
        sandbox.files.write(".cargo/config.toml", f'[registries.here]\nindex = "{source}"\n')
        assert run(sandbox, "cargo run -q") == "7\n"
        assert {request.header("authorization") for request in server.requests} == {f"Bearer {SECRET}"}
