"""openssl - random bytes, digests, base64 and certificates

Usage: openssl rand [-hex | -base64] [-out FILE] NUM
       openssl dgst [-sha256 | -md5 ...] [-hmac KEY] [-r] [-binary] [FILE]...
       openssl base64 [-d] [-A] [-in FILE] [-out FILE]
       openssl x509 -noout [-subject] [-issuer] [-dates] [-serial] [-fingerprint] [-checkend SECONDS] [-in FILE]
       openssl version

Digests are called by their names too (openssl sha256 FILE). Keys, encryption and connections are not here: python3's
modules and curl do some of that.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.abi.records import NANO
from belljar.bin._kit import UsageError, utility
from belljar.bin.openssl.der import BadCertificate, Certificate, read_certificate
from belljar.kernel.process import Process

_DIGESTS = {
    "md5": "MD5", "sha1": "SHA1", "sha224": "SHA2-224", "sha256": "SHA2-256", "sha384": "SHA2-384",
    "sha512": "SHA2-512", "sha3-224": "SHA3-224", "sha3-256": "SHA3-256", "sha3-384": "SHA3-384",
    "sha3-512": "SHA3-512", "blake2b512": "BLAKE2B-512", "blake2s256": "BLAKE2S-256",
}  # fmt: skip
_HASHLIB = {"blake2b512": "blake2b", "blake2s256": "blake2s"}
_LARGEST = 1 << 26
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


@dataclass(slots=True)
class Arguments:
    """Options that start with one dash, as openssl has them: those with values, those without, and operands."""

    values: dict[str, str]
    flags: list[str]
    operands: list[str]

    def path(self, option: str) -> str:
        return self.values.get(option, "-")


def _parse(command: str, args: list[str], valued: tuple[str, ...], known: tuple[str, ...]) -> Arguments:
    found = Arguments({}, [], [])
    index = 0
    while index < len(args):
        arg = args[index]
        index += 1
        name = arg.lstrip("-")
        if not arg.startswith("-") or arg == "-":
            found.operands += args[index - 1 :]
            break
        if name in valued:
            if index == len(args):
                raise UsageError(f"{command}: Option -{name} needs a value", hint=False)
            found.values[name] = args[index]
            index += 1
        elif name in known:
            found.flags.append(name)
        else:
            raise UsageError(f"{command}: Unknown option: {arg}", hint=False)
    return found


@utility("openssl")
def main(process: Process, args: list[str]) -> int:
    command, rest = (args[0], args[1:]) if args else ("help", [])
    if command in ("help", "--help", "-help"):
        process.stdout.write(main.help().encode())
        return 0
    if command == "version":
        process.print("OpenSSL 3.0 (belljar: rand, dgst, base64 and x509)")
        return 0
    if command == "rand":
        return _rand(process, rest)
    if command in _DIGESTS:
        return _digest(process, [f"-{command}", *rest])
    if command == "dgst":
        return _digest(process, rest)
    if command == "base64":
        return _base64(process, rest)
    if command == "enc" and rest[:1] in (["-base64"], ["-a"]):
        return _base64(process, rest[1:])
    if command == "x509":
        return _x509(process, rest)
    process.warn(f"{command}: not here; there are rand, dgst, base64, x509 and version")
    return 1


def _write(process: Process, path: str, data: bytes) -> None:
    if path == "-":
        process.stdout.write(data)
    else:
        process.write_file(path, data)


def _rand(process: Process, args: list[str]) -> int:
    given = _parse("rand", args, ("out", "rand", "writerand"), ("hex", "base64"))
    if len(given.operands) != 1 or not given.operands[0].isdecimal():
        raise UsageError("rand: a number of bytes is needed", hint=False)
    count = int(given.operands[0][:18])
    if count > _LARGEST:
        raise UsageError(f"rand: at most {_LARGEST} bytes at once", hint=False)
    process.budget.charge_size(count)
    process.budget.charge(count >> 10)
    data = process.kernel.machine.entropy.random_bytes(count)
    if "hex" in given.flags:
        data = data.hex().encode() + b"\n"
    elif "base64" in given.flags:
        data = _wrapped(data)
    _write(process, given.path("out"), data)
    return 0


def _wrapped(data: bytes) -> bytes:
    text = base64.b64encode(data)
    return b"".join(text[at : at + 64] + b"\n" for at in range(0, len(text), 64))


def _digest(process: Process, args: list[str]) -> int:
    given = _parse("dgst", args, ("hmac", "out", "mac", "macopt"), (*_DIGESTS, "r", "binary", "hex", "c"))
    name = next((flag for flag in reversed(given.flags) if flag in _DIGESTS), "sha256")
    status = 0
    for path in given.operands or ["-"]:
        try:
            raw = _compute(process, path, name, given.values.get("hmac"))
        except SysError as error:
            process.warn(f"{path}: {error.reason}")
            status = 1
            continue
        shown = "stdin" if path == "-" else path
        if "binary" in given.flags:
            data = raw
        elif "r" in given.flags:
            data = fsencode(f"{raw.hex()} *{shown}\n")
        else:
            kind = f"HMAC-{_DIGESTS[name]}" if "hmac" in given.values else _DIGESTS[name]
            text = raw.hex(":") if "c" in given.flags else raw.hex()
            data = fsencode(f"{kind}({shown})= {text}\n")
        _write(process, given.path("out"), data)
    return status


def _compute(process: Process, path: str, name: str, key: str | None) -> bytes:
    algorithm = _HASHLIB.get(name, name.replace("-", "_"))
    hashing = (
        hashlib.new(algorithm, usedforsecurity=False) if key is None else hmac.new(fsencode(key), digestmod=algorithm)
    )
    for chunk in process.chunks(path, 1 << 20):
        process.budget.charge(len(chunk) >> 14)
        hashing.update(chunk)
    return hashing.digest()


def _base64(process: Process, args: list[str]) -> int:
    given = _parse("base64", args, ("in", "out"), ("d", "A", "e", "a", "base64"))
    data = process.read_file(given.path("in"))
    process.budget.charge(len(data) >> 10)
    if "d" in given.flags:
        try:
            data = base64.b64decode(b"".join(data.split()), validate=True)
        except (ValueError, binascii.Error):
            process.warn("base64: the input is no base64")
            return 1
    else:
        data = base64.b64encode(data) if "A" in given.flags else _wrapped(data)
    _write(process, given.path("out"), data)
    return 0


def _x509(process: Process, args: list[str]) -> int:
    shown = ("subject", "issuer", "dates", "startdate", "enddate", "serial", "fingerprint")
    digests = ("md5", "sha1", "sha256", "sha384", "sha512")
    given = _parse(
        "x509", args, ("in", "inform", "checkend", "ext", "nameopt", "out"), ("noout", "text", *shown, *digests)
    )
    if "text" in given.flags:
        raise UsageError(
            "x509: -text is not here; -subject, -issuer, -dates, -serial, -ext and -fingerprint are", hint=False
        )
    data = process.read_file(given.path("in"))
    process.budget.charge(len(data) >> 6)
    try:
        certificate = read_certificate(data)
    except BadCertificate:
        process.warn("Could not read certificate from " + ("<stdin>" if given.path("in") == "-" else given.path("in")))
        return 1
    digest = next((flag for flag in given.flags if flag in digests), "")
    for flag in given.flags:
        for line in _shown(certificate, flag, digest):
            process.print(line)
    if given.values.get("ext") == "subjectAltName":
        names = ", ".join(certificate.names)
        process.print(f"X509v3 Subject Alternative Name: \n    {names}" if names else "No extensions matched")
    if "checkend" in given.values:
        seconds = given.values["checkend"]
        if not seconds.isdecimal():
            raise UsageError("x509: -checkend needs a number of seconds", hint=False)
        ends = certificate.ends.timestamp() < process.kernel.machine.clock.time_ns() / NANO + int(seconds[:12])
        process.print("Certificate will expire" if ends else "Certificate will not expire")
        return 1 if ends else 0
    if "noout" not in given.flags:
        text = base64.b64encode(certificate.der)
        lines = b"\n".join(text[at : at + 64] for at in range(0, len(text), 64))
        process.stdout.write(b"-----BEGIN CERTIFICATE-----\n" + lines + b"\n-----END CERTIFICATE-----\n")
    return 0


def _shown(certificate: Certificate, flag: str, digest: str) -> list[str]:
    """The lines that an option of x509 stands for."""

    def date(name: str) -> str:
        moment = certificate.begins if name == "notBefore" else certificate.ends
        return f"{name}={_MONTHS[moment.month - 1]} {moment.day:2d} {moment:%H:%M:%S} {moment.year} GMT"

    def name(parts: tuple[tuple[str, str], ...]) -> str:
        return ", ".join(f"{kind} = {text}" for kind, text in parts)

    if flag in ("subject", "issuer"):
        return [f"{flag}={name(certificate.subject if flag == 'subject' else certificate.issuer)}"]
    if flag == "serial":
        digits = f"{certificate.serial:X}"
        return [f"serial={'0' * (len(digits) % 2)}{digits}"]
    if flag == "fingerprint":
        value = hashlib.new(digest or "sha1", certificate.der, usedforsecurity=False).hexdigest().upper()
        pairs = ":".join(value[at : at + 2] for at in range(0, len(value), 2))
        return [f"{digest or 'SHA1'} Fingerprint={pairs}"]
    dates = {"dates": ("notBefore", "notAfter"), "startdate": ("notBefore",), "enddate": ("notAfter",)}
    return [date(which) for which in dates.get(flag, ())]
