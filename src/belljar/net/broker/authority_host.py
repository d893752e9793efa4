"""A certificate authority for one sandbox, to look into the TLS of flows that have middleware.

Its private key is made here and stays in this process's memory; the sandbox gets the certificate only.
"""

from __future__ import annotations

import os
import ssl
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LEAVES_MAX: Final = 256
_NAME_MAX: Final = 64
"""Bytes of a common name (RFC 5280)."""
_DAYS: Final = 365
_LEAF_DAYS: Final = 7
_RENEWED: Final = timedelta(days=1)
"""A leaf with less left than this is replaced before it is used again."""


class SandboxAuthority:
    """Signs certificates for the hosts whose requests a policy wants to see."""

    def __init__(self, sandbox: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        named = f"belljar sandbox {sandbox[:32]}".encode(errors="replace")
        self.common_name = named[:_NAME_MAX].decode(errors="ignore").rstrip()
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.common_name)])
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        self._certificate = (
            self._begin(self._name, self._key.public_key(), _DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self._contexts: OrderedDict[str, tuple[ssl.SSLContext, datetime]] = OrderedDict()
        """TLS contexts by host, each with its expiry."""

    @property
    def certificate(self) -> bytes:
        """The CA certificate that the sandbox must trust, in PEM."""
        return self._certificate.public_bytes(Encoding.PEM)

    def context(self, host: str) -> ssl.SSLContext:
        """Return the TLS context for clients of this host. A bounded number is cached."""
        kept = self._contexts.pop(host) if host in self._contexts else self._make(host)
        if kept[1] - self._now() < _RENEWED:
            kept = self._make(host)
        self._contexts[host] = kept
        while len(self._contexts) > _LEAVES_MAX:
            self._contexts.popitem(last=False)
        return kept[0]

    def _begin(self, name: x509.Name, key: ec.EllipticCurvePublicKey, days: int) -> x509.CertificateBuilder:
        now = self._now()
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=days))
        )

    def _make(self, host: str) -> tuple[ssl.SSLContext, datetime]:
        key = ec.generate_private_key(ec.SECP256R1())
        try:
            alternative: x509.GeneralName = x509.IPAddress(ip_address(host))
        except ValueError:
            alternative = x509.DNSName(host)
        certificate = (
            self._begin(x509.Name([]), key.public_key(), _LEAF_DAYS)
            .add_extension(x509.SubjectAlternativeName([alternative]), critical=True)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        pem = certificate.public_bytes(Encoding.PEM) + key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["h2", "http/1.1"])
        # OpenSSL's Python face only takes files; this one is memory, and gone when it is closed.
        fd = os.memfd_create("leaf", os.MFD_CLOEXEC)
        try:
            os.write(fd, pem)
            context.load_cert_chain(f"/proc/self/fd/{fd}")
        finally:
            os.close(fd)
        return context, certificate.not_valid_after_utc
