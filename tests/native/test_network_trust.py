"""Where programs of an image look for authorities, and how the sandbox's own is put there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from belljar.native.network_host import NativeNetwork, find_in_root
from belljar.native.trust import subject_hash, trust
from belljar.net.broker.authority_host import SandboxAuthority
from belljar.net.network import Network


@pytest.mark.parametrize("name", ["box", "My  Box 7", "x" * 40, "größe", "ß" * 32, "a\tb"])
def test_the_hash_of_a_name_is_openssl_s(name: str, tmp_path: Path) -> None:
    authority = SandboxAuthority(name)
    path = tmp_path / "ca.pem"
    path.write_bytes(authority.certificate)
    told = subprocess.run(
        ["openssl", "x509", "-noout", "-subject_hash", "-in", path], check=True, capture_output=True, text=True
    )
    assert subject_hash(authority.common_name) == told.stdout.strip()


def put(root: Path, path: str, data: bytes = b"") -> None:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)


def trusted(root: Path, public: bytes = b"") -> tuple[dict[str, bytes], dict[str, str]]:
    return trust(b"ours\n", "box", lambda path: find_in_root([str(root)], path), lambda: public)


DEBIAN = "/etc/ssl/certs/ca-certificates.crt"
FEDORA = "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"


def test_a_bundle_is_appended_to_where_it_really_is(tmp_path: Path) -> None:
    put(tmp_path, FEDORA, b"public\n")
    (tmp_path / "etc/pki/tls/certs").mkdir(parents=True)
    (tmp_path / "etc/pki/tls/certs/ca-bundle.crt").symlink_to(FEDORA)  # as seen from inside
    (tmp_path / "etc/pki/ca-trust/source/anchors").mkdir(parents=True)
    (tmp_path / "etc/ssl").mkdir()
    (tmp_path / "etc/ssl/cert.pem").symlink_to("../pki/tls/certs/ca-bundle.crt")
    files, variables = trusted(tmp_path, b"the machine's\n")
    assert files.pop(FEDORA) == b"public\nours\n"
    assert "/etc/pki/ca-trust/source/anchors/belljar.crt" in files
    assert set(files.values()) == {b"ours\n"}
    assert variables["SSL_CERT_FILE"] == variables["PIP_CERT"] == FEDORA
    assert files[variables["NODE_EXTRA_CA_CERTS"]] == b"ours\n"


def test_a_directory_that_is_a_link_stays_one(tmp_path: Path) -> None:
    put(tmp_path, "/etc/pki/tls/certs/ca-bundle.crt", b"public\n")
    (tmp_path / "etc/ssl").mkdir()
    (tmp_path / "etc/ssl/certs").symlink_to("../pki/tls/certs")
    files, variables = trusted(tmp_path)
    assert {str(Path(path).parent) for path in files} == {"/etc/pki/tls/certs"}
    assert variables["NODE_EXTRA_CA_CERTS"] == "/etc/pki/tls/certs/belljar.pem"
    (tmp_path / "etc/ssl/certs").unlink()
    (tmp_path / "etc/pki/tls/certs/ca-bundle.crt").unlink()
    (tmp_path / "etc/ssl").rmdir()
    (tmp_path / "usr/ssl").mkdir(parents=True)
    (tmp_path / "etc/ssl").symlink_to("/usr/ssl")
    files, variables = trusted(tmp_path)
    assert variables["SSL_CERT_FILE"] == "/usr/ssl/certs/ca-certificates.crt"
    assert {str(Path(path).parent) for path in files} == {"/usr/ssl/certs"}


def test_an_image_without_authorities_gets_those_of_the_machine(tmp_path: Path) -> None:
    files, variables = trusted(tmp_path, b"the machine's")
    assert files[DEBIAN] == b"the machine's\nours\n"
    assert variables["CURL_CA_BUNDLE"] == DEBIAN


def test_links_never_lead_out_of_the_image(tmp_path: Path) -> None:
    put(tmp_path, "secret", b"outside")
    image = tmp_path / "image"
    (image / "etc/ssl/certs").mkdir(parents=True)
    for target in ("../../../../../secret", str(tmp_path / "secret"), "/proc/self/root/etc/passwd", "/dev/zero", "."):
        link = image / DEBIAN[1:]
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        found = find_in_root([str(image)], DEBIAN)
        assert found in (None, ("/etc/ssl/certs", b"")), target
    link.unlink()
    put(image, DEBIAN, b"top")
    put(tmp_path / "below", DEBIAN, b"hidden")
    assert find_in_root([str(image), str(tmp_path / "below")], DEBIAN) == (DEBIAN, b"top")


def test_only_a_policy_that_may_look_into_flows_has_an_authority() -> None:
    for network in (None, Network.deny(), Network.allow("a.test")):
        made = NativeNetwork(network, "box")
        assert list(made.files) == ["/etc/resolv.conf"]
        assert not made.environment
    assert "listen" not in [step[0] for step in NativeNetwork(None, "box").steps()]
    assert NativeNetwork(Network.deny(audit=print), "box").redirected
    made = NativeNetwork(Network.policy(lambda conn: None), "box")
    assert b"BEGIN CERTIFICATE" in made.files[made.environment["NODE_EXTRA_CA_CERTS"]]
    assert made.files["/etc/resolv.conf"] == b"nameserver 10.0.2.3\n"
