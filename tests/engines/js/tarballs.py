"""Packages of npm's, for tests that install them: fetched once, each pinned by its digest, kept in the user's cache."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tarfile
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from tests.net.servers import Registry

REGISTRY = "https://registry.npmjs.org"
PACKAGES = {
    "ajv-8.17.1": "B/gBuNg5SiMTrPkC+A2+cW0RszwxYmn6VYxB/inlBStS5nx6xHIt/ehKRhIMhqusl7a8LjQoZnjCs5vhwxOQ1g==",
    "argparse-2.0.1": "8+9WqebbFzpX9OR+Wa6O29asIogeRMzcGtAINdpMHHyAg10f05aSFVBbcEqGf/PXw1EjAZ+q2/bEBg3DvurK3Q==",
    "bufferutil-4.0.9": "WDtdLmJvAuNNPzByAYpRo2rF1Mmradw6gvWsQKf63476DDXmomT9zUiGypLcG4ibIM67vhAj8jJRdbmEws2Aqw==",
    "chalk-5.3.0": "dLitG79d+GV1Nb/VYcCDFivJeK1hiukt9QjRNVOsUtTy1rR1YJsmpGGTZ3qJos+uw7WmWF4wUwBd9jxjocFC2w==",
    "commander-12.1.0": "Vw8qHK3bZM9y/P10u3Vib8o/DdkvA2OtPtZvD871QKjy74Wj1WSKFILMPRPSdUSx5RFK1arlJzEtA4PkFgnbuA==",
    "csv-parse-5.5.6": "uNpm30m/AGSkLxxy7d9yRXpJQFrZzVWLFBkS+6ngPcZkw/5k3L/jjFuj7tVnEpRn+QgmiXr21nDlhCiUK4ij2A==",
    "date-fns-3.6.0": "fRHTG8g/Gif+kSh50gaGEdToemgfj74aRX3swtiouboip5JDLAyDE9F11nHMIcvOaXeOC6D7SpNhi7uFyB7Uww==",
    "dayjs-1.11.13": "oaMBel6gjolK862uaPQOVTA7q3TZhuSvuMQAAglQDOWYO9A91IrAOUJEyKVlqJlHE0vq5p5UXxzdPfMH/x6xNg==",
    "fast-deep-equal-3.1.3": "f3qQ9oQy9j2AhBe/H9VC91wLmKBCCU/gDOnKNAYG5hswO7BLKj09Hc5HYNz9cGI++xlpDCIgDaitVs03ATR84Q==",
    "fast-uri-3.0.3": "aLrHthzCjH5He4Z2H9YZ+v6Ujb9ocRuW6ZzkJQOrTxleEijANq4v1TsaPaVG1PZcuurEzrLcWRyYBYXD5cEiaw==",
    "immer-10.1.1": "s2MPrmjovJcoMaHtx6K11Ra7oD05NT97w1IC5zpMkT6Atjr7H8LjaDd81iIxUYpMKSRRNMJE703M1Fhr/TctHw==",
    "js-yaml-4.1.0": "wpxZs9NoxZaJESJGIZTyDEaYpl0FKSA+FB9aJiyemKhMwkxQg63h4T1KJgUGHpTqPDNRcmmYLugrRjJlBtWvRA==",
    "json-schema-traverse-1.0.0": "NM8/P9n3XjXhIZn1lLhkFaACTOURQXjWhV4BA/RnOv8x"
    "vgqtqpAX9IO4mRQxSx1Rlo4tqzeqb0sOlruaOy3dug==",
    "lodash-4.17.21": "v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg==",
    "marked-12.0.2": "qXUm7e/YKFoqFPYPa3Ukg9xlI5cyAtGmyEIzMfW//m6kXwCy2Ps9DYf5ioijFKQ8qyuscrHoY04iJGctu2Kg0Q==",
    "node-gyp-build-4.8.4": "LA4ZjwlnUblHVgq0oBF3Jl/6h/Nvs5fzBLwdEF4nuxnFdsfajde4WfxtJr3CaiH+F6ewcIB/q4jQ4UzPyid+CQ==",
    "require-from-string-2.0.2": "Xf0nWe6RseziFMu+Ap9biiUbmplq6S9/p+7w7YXP/JBH"
    "hrUDDUhwa+vANyubuqfZWTveU//DYVGsDG7RKL/vEw==",
    "semver-7.6.3": "oVekP1cKtI+CTDvHWYFUcMtsK/00wmAEfyqKfNdARm8u1wNVhSgaX7A8d4UuIlUI5e84iEwOhs7ZPYRmzU9U6A==",
    "uuid-9.0.1": "b+1eJOlsR9K8HJpow9Ok3fiWOWSIcIzXodvv0rQjVoOVNpWMpxf1wZNpt4y9h10odCNrqnYp1OBzRktckBe3sA==",
    "zod-3.23.8": "XBx9AXhXktjUqnepgTiE5flcKIYWi/rme0Eaj+5Y0lftuGBq+jyRu/md4WnuxqgP1ubdpNCsYEYPxrzVHD8d6g==",
}
"""SHA-512 of each tarball, by its file name."""


def tarball(stem: str) -> bytes:
    """A package's tarball, from the cache or from npm. AssertionError if it is not the one that is meant."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "belljar" / "test-npm"
    path = cache / f"{stem}.tgz"
    if path.exists():
        data = path.read_bytes()
        if _digest(data) == PACKAGES[stem]:
            return data
    url = f"{REGISTRY}/{stem.rpartition('-')[0]}/-/{stem}.tgz"
    with urllib.request.urlopen(url, timeout=120) as response:  # noqa: S310 - https, see REGISTRY
        data = bytes(response.read())
    assert _digest(data) == PACKAGES[stem], f"{url} is not what it was"
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=cache, delete=False) as file:
        file.write(data)
    Path(file.name).rename(path)
    return data


def _digest(data: bytes) -> str:
    return base64.b64encode(hashlib.sha512(data).digest()).decode()


def publish(registry: Registry, stem: str) -> None:
    """Offer a package in a registry of the test's own."""
    data = tarball(stem)
    about: dict[str, Any] = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            if member.name.count("/") == 1 and member.name.endswith("/package.json"):
                file = archive.extractfile(member)
                assert file is not None
                about = json.loads(file.read())
    kept: dict[str, Any] = {
        key: about[key] for key in ("dependencies", "bin", "engines", "peerDependencies") if key in about
    }
    registry.publish(about["name"], about["version"], manifest=kept, data=data)
