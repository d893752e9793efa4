"""A certificate authority of the test's own, and the certificates that it signs: good ones and each kind of bad."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Authority:
    """`path` is its certificate, in PEM; `context("localhost")` makes a server's TLS settings for names."""

    def __init__(self, directory: Path, name: str = "Test Authority") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        self.certificate = (
            x509.CertificateBuilder()
            .subject_name(self._name)
            .issuer_name(self._name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .add_extension(
                x509.KeyUsage(False, False, False, False, False, True, True, False, False),  # signs certificates
                critical=True,
            )
            .sign(self._key, hashes.SHA256())
        )
        self.path = directory / f"{name.replace(' ', '-').lower()}.pem"
        self.path.write_bytes(self.certificate.public_bytes(Encoding.PEM))
        self._issued = 0

    def context(
        self,
        *names: str,
        expired: bool = False,
        self_signed: bool = False,
        protocols: tuple[str, ...] = (),
        wants_client: bool = False,
        san: bool = True,
    ) -> ssl.SSLContext:
        """Settings for a server that is known by these names and addresses.

        `protocols` are offered by ALPN; `wants_client` demands a certificate of the client. Without `san` the names are
        in no extension: the first is the subject's common name only.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        now = datetime.now(UTC)
        starts, ends = (now - timedelta(days=9), now - timedelta(days=2)) if expired else (
            now - timedelta(days=1),
            now + timedelta(days=9),
        )  # fmt: skip
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if self_signed else self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(starts)
            .not_valid_after(ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key((key if self_signed else self._key).public_key()),
                critical=False,
            )
        )
        if san:
            alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(key if self_signed else self._key, hashes.SHA256())
        self._issued += 1
        path = self._directory / f"leaf-{self._issued}.pem"
        path.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + certificate.public_bytes(Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        if protocols:
            context.set_alpn_protocols(list(protocols))
        if wants_client:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.path)
        return context

    def client_context(self) -> ssl.SSLContext:
        """Settings for a client that trusts this authority and no other."""
        return ssl.create_default_context(cafile=str(self.path))


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
