"""npm and those who mean harm: registries that lie, tarballs that climb, metadata without end, lockfiles made up."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterator

import pytest

from belljar import Network, Sandbox
from belljar.abi.limits import Limits
from tests.net.servers import HttpServer, Registry
from tests.net.servers.http1 import Request, Response


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as server:
        server.publish("good", "1.0.0")
        yield server


@pytest.fixture
def sandbox(registry: Registry) -> Iterator[Sandbox]:
    with Sandbox(
        network=Network.allow(f"127.0.0.1:{registry.port}"),
        env={"npm_config_registry": registry.url},
        files={"/workspace/package.json": "{}\n"},
        limits=Limits(file_bytes=64 << 20),
    ) as made:
        yield made


def archive(*members: tuple[str, bytes, bytes]) -> bytes:
    """A tarball of (name, type, data or target)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, kind, data in members:
            member = tarfile.TarInfo(name)
            member.type = kind
            if kind == tarfile.REGTYPE:
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
            else:
                member.linkname = data.decode()
                tar.addfile(member)
    return out.getvalue()


MANIFEST = ("package/package.json", tarfile.REGTYPE, b'{"name": "bad", "version": "1.0.0"}')


def refused(sandbox: Sandbox, command: str = "npm install bad good") -> str:
    """What npm says; and nothing was installed."""
    result = sandbox.exec(command)
    assert result.exit_code == 1
    assert result.limit is None
    assert sandbox.exec("ls -A node_modules 2>/dev/null; ls /tmp; cat package.json").stdout == "{}\n"
    return result.stderr


def test_a_tarball_that_is_not_what_was_promised(sandbox: Sandbox, registry: Registry) -> None:
    registry.publish("bad", "1.0.0")
    registry.packages["bad"]["1.0.0"]["dist"]["integrity"] = "sha512-" + "A" * 86 + "=="
    said = refused(sandbox)
    assert said.startswith("npm error code EINTEGRITY\n")
    assert "Nothing was installed." in said


def test_the_stronger_digest_counts_and_an_old_one_will_do(sandbox: Sandbox, registry: Registry) -> None:
    registry.publish("bad", "1.0.0")
    dist = registry.packages["bad"]["1.0.0"]["dist"]
    right, dist["integrity"] = dist["integrity"], ""
    sandbox.exec("npm install bad --no-save").check()
    dist["shasum"] = "0" * 40
    sandbox.exec("rm -rf node_modules package-lock.json")
    assert "npm error code EINTEGRITY" in refused(sandbox)
    dist["integrity"] = f"sha1-{'A' * 27}= {right}"
    sandbox.exec("npm install bad --no-save").check()
    dist["integrity"] = "md5-AAAA"
    sandbox.exec("rm -rf node_modules package-lock.json")
    assert "npm error code EINTEGRITY" in refused(sandbox)


def test_what_was_locked_is_what_must_come(sandbox: Sandbox, registry: Registry) -> None:
    sandbox.exec("npm install good").check()
    registry.publish("good", "1.0.0", {"index.js": "stolen()"})
    result = sandbox.exec("rm -r node_modules; npm ci")
    assert result.stderr.startswith("npm error code EINTEGRITY\n")
    assert sandbox.exec("ls node_modules").stdout == ""


@pytest.mark.parametrize("name", ["package/../../../evil", "/evil", "../evil", "package/a/../../../../evil"])
def test_a_path_that_leads_outside(name: str, sandbox: Sandbox, registry: Registry) -> None:
    registry.publish("bad", "1.0.0", data=archive(MANIFEST, (name, tarfile.REGTYPE, b"evil")))
    assert refused(sandbox).startswith("npm error code EBADPATH\n")
    assert sandbox.exec("find / -name 'evil*' 2>/dev/null").stdout == ""


def test_links_are_left_out_and_nothing_is_written_through_them(sandbox: Sandbox, registry: Registry) -> None:
    members = [
        ("package/door", tarfile.SYMTYPE, b"/workspace"),
        ("package/hard", tarfile.LNKTYPE, b"/etc/passwd"),
        ("package/pipe", tarfile.FIFOTYPE, b""),
        ("package/door/evil", tarfile.REGTYPE, b"inside"),
    ]
    registry.publish("bad", "1.0.0", data=archive(MANIFEST, *members))
    sandbox.exec("npm install bad --no-save").check()
    assert sandbox.exec("cd node_modules/bad; find . | sort; cat door/evil; ls /workspace").stdout == (
        ".\n./door\n./door/evil\n./package.json\ninsidenode_modules\npackage.json\n"
    )


def test_a_bomb_fills_no_more_than_the_sandbox_may_hold(sandbox: Sandbox, registry: Registry) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        member = tarfile.TarInfo("package/zeros")
        member.size = 200 << 20
        tar.addfile(member, io.BufferedReader(_Zeros()))
    registry.publish("bad", "1.0.0", data=out.getvalue())
    said = refused(sandbox)
    assert said.startswith("npm error code ENOSPC\n")


class _Zeros(io.RawIOBase):
    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        buffer[:] = bytes(len(buffer))
        return len(buffer)


@pytest.mark.parametrize(
    "data", [b"", b"no tarball at all" * 100, gzip.compress(b"x" * 2000, mtime=0), b"\x1f\x8b\x08\x00broken"]
)
def test_what_is_no_tarball(data: bytes, sandbox: Sandbox, registry: Registry) -> None:
    registry.publish("bad", "1.0.0", data=data)
    assert refused(sandbox).startswith(("npm error code TAR_BAD_ARCHIVE\n", "npm error code ENOENT\n"))


def test_names_that_are_paths(sandbox: Sandbox, registry: Registry) -> None:
    registry.publish("bad", "1.0.0", dependencies={"../../evil": "1", "@a/../b": "1", "node_modules": "1", "good": "1"})
    registry.publish(
        "worse", "1.0.0", {"x.js": "1"}, manifest={"bin": {"../../../evil": "x.js", "fine": "../../../../etc/passwd"}}
    )
    sandbox.exec("npm install bad worse --no-save").check()
    assert sandbox.exec("find / -name 'evil*' 2>/dev/null; ls node_modules").stdout == (
        "/workspace/node_modules/.bin/evil\nbad\ngood\nworse\n"  # a command's name is its last part, as npm has it
    )
    assert sandbox.exec("ls node_modules/.bin").stdout == "evil\n"
    for name in ("../evil", "a/../../evil", ".hidden", "_private", "UPPER case", "a" * 215):
        assert sandbox.exec(["npm", "install", f"{name}@1"]).exit_code == 1


def test_a_manifest_of_another_package(sandbox: Sandbox, registry: Registry) -> None:
    registry.publish("bad", "1.0.0")
    registry.packages["bad"]["1.0.0"]["name"] = "good"
    assert refused(sandbox).startswith("npm error code EBADMANIFEST\n")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_a_deep_package_json(sandbox: Sandbox, text: str) -> None:
    sandbox.files.write("package.json", text)
    result = sandbox.exec("npm install")
    assert result.stderr.startswith("npm error code EJSONPARSE\n")
    assert "it is nested too deeply" in result.stderr


@pytest.mark.parametrize(
    "page",
    [
        '{"versions"',
        "[]",
        '"text"',
        "[" * 100_000,
        '{"versions": [], "dist-tags": 7}',
        '{"versions": {"1.0.0": 5}}',
        "9" * 5000,
    ],
)
def test_pages_that_are_none(page: str, sandbox: Sandbox, registry: Registry) -> None:
    registry.routes["/bad"] = lambda request: Response(200, page.encode(), {"Content-Type": "application/json"})
    assert refused(sandbox).startswith("npm error code E")


def test_metadata_without_end(sandbox: Sandbox, registry: Registry) -> None:
    packed = gzip.compress(b'{"a": "' + b"x" * (70 << 20), 1)
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    registry.routes["/bad"] = lambda request: Response(200, packed, headers)
    assert refused(sandbox).startswith("npm error code ETOOLARGE\n")


def test_led_to_a_host_that_is_closed(sandbox: Sandbox, registry: Registry) -> None:
    with HttpServer({"/": "secret"}) as inside:
        registry.publish("bad", "1.0.0")
        registry.packages["bad"]["1.0.0"]["dist"]["tarball"] = f"{inside.url}/bad.tgz"
        said = refused(sandbox)
        assert said.startswith("npm error code EACCES\n")
        assert "Network.allow(" in said
        registry.routes["/bad"] = lambda request: Response(302, b"", {"Location": f"{inside.url}/meta"})
        assert "the sandbox's network is closed to 127.0.0.1" in refused(sandbox)
        registry.routes["/bad"] = lambda request: Response(302, b"", {"Location": "file:///etc/passwd"})
        assert refused(sandbox).startswith("npm error code EINVALIDURL\n")
        registry.routes["/bad"] = lambda request: Response(302, b"", {"Location": "/bad"})
        assert refused(sandbox).startswith("npm error code EMAXREDIRECT\n")
        assert not inside.requests


def test_a_token_goes_to_its_registry_alone(registry: Registry) -> None:
    with HttpServer({"/": "nothing"}) as other:
        registry.routes["/bad"] = lambda request: Response(302, b"", {"Location": f"{other.url}/bad"})
        network = Network.allow(f"127.0.0.1:{registry.port}", f"127.0.0.1:{other.port}")
        rc = f"registry={registry.url}\n//127.0.0.1:{registry.port}/:_authToken=s3cret\n"
        with Sandbox(network=network, files={"/workspace/.npmrc": rc}) as sandbox:
            sandbox.exec("npm install bad")
        assert registry.requests[-1].header("authorization") == "Bearer s3cret"
        assert [request.header("authorization") for request in other.requests] == [None]


def test_versions_that_never_end(sandbox: Sandbox, registry: Registry) -> None:
    def page(request: Request) -> Response:
        name = request.path.strip("/")
        other = "ping" if name == "pong" else "pong"
        about = {
            f"{n}.0.0": {
                "name": name,
                "version": f"{n}.0.0",
                "dependencies": {other: f"{n + (name == 'pong')}.0.0"},
                "dist": {"tarball": f"{registry.url}/good/-/good-1.0.0.tgz"},
            }
            for n in range(1, 400)
        }
        return Response(200, json.dumps({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": about}).encode())

    registry.routes["/ping"] = registry.routes["/pong"] = page
    assert refused(sandbox, "npm install ping@1.0.0").startswith("npm error code ETOODEEP\n")


def test_a_lockfile_that_was_made_up(sandbox: Sandbox, registry: Registry) -> None:
    sandbox.exec("npm install good").check()
    lock = json.loads(sandbox.files.read("/workspace/package-lock.json"))
    about = lock["packages"]["node_modules/good"]
    lock["packages"] |= {
        "node_modules/../../evil": about,
        "../../evil": about,
        "/evil": about,
        "node_modules/good/../../../evil": about,
        "node_modules/link": {"resolved": "../../etc", "link": True},
        "node_modules/x": 7,
    }
    sandbox.files.write("/workspace/package-lock.json", json.dumps(lock))
    sandbox.exec("rm -r node_modules; npm ci").check()
    assert sandbox.exec("find / -name 'evil*' 2>/dev/null; ls node_modules").stdout == "good\n"
    for text in ("[]", "{", '{"packages": 5}', '{"packages": {"node_modules/good": {"version": 7}}}'):
        sandbox.files.write("/workspace/package-lock.json", text)
        assert sandbox.exec("npm install").exit_code in (0, 1)


def test_without_a_network() -> None:
    with Sandbox(files={"/workspace/package.json": '{"dependencies": {"good": "1"}}'}) as sandbox:
        result = sandbox.exec("npm install")
        assert result.exit_code == 1
        assert result.stderr == (
            "npm error code EACCES\n"
            "npm error request to https://registry.npmjs.org/good failed: this sandbox was granted no network\n"
            "npm error The sandbox's owner can grant it: Sandbox(network=Network.allow('registry.npmjs.org')).\n"
        )
