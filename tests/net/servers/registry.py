"""An npm registry: packuments (whole and abbreviated), one version's manifest, and tarballs."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import ssl
import tarfile
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from tests.net.servers.http1 import HttpServer, Request, Response

_SHORT = "application/vnd.npm.install-v1+json"


class Registry(HttpServer):
    """`npm --registry URL`. `publish` adds a version, `packages` has them by name."""

    def __init__(self, *, address: str = "127.0.0.1", port: int = 0, context: ssl.SSLContext | None = None) -> None:
        super().__init__({"/": self._serve_package}, address=address, port=port, context=context)
        self.packages: dict[str, dict[str, dict[str, Any]]] = {}
        """By name and version: manifests."""
        self.tags: dict[str, dict[str, str]] = {}
        self._tarballs: dict[str, bytes] = {}

    def publish(
        self,
        name: str,
        version: str,
        files: Mapping[str, str] | None = None,
        *,
        dependencies: Mapping[str, str] | None = None,
        manifest: Mapping[str, Any] | None = None,
        tag: str = "latest",
        data: bytes | None = None,
    ) -> None:
        """A version with these files; without any it is one module that exports its version.

        With `data` that is the tarball, whatever is in it.
        """
        described: dict[str, Any] = {
            "name": name,
            "version": version,
            "main": "index.js",
            "dependencies": dict(dependencies or {}),
            **(manifest or {}),
        }
        contents = dict(files or {"index.js": f"module.exports = {json.dumps(version)};\n"})
        contents.setdefault("package.json", json.dumps(described, indent=2) + "\n")
        data = tarball(contents) if data is None else data
        path = f"/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"
        self._tarballs[path] = data
        described["_id"] = f"{name}@{version}"
        described["dist"] = {
            "tarball": self.url + path,
            "shasum": hashlib.sha1(data).hexdigest(),  # noqa: S324 - the registry's own
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode(),
            "fileCount": len(contents),
            "unpackedSize": sum(len(text.encode()) for text in contents.values()),
        }
        self.packages.setdefault(name, {})[version] = described
        self.tags.setdefault(name, {})[tag] = version

    def _serve_package(self, request: Request) -> Response:
        path = unquote(request.path)
        if path in self._tarballs:
            return Response(200, self._tarballs[path], {"Content-Type": "application/octet-stream"})
        if path == "/-/ping":
            return _json({})
        name, version = path.strip("/"), ""
        if name not in self.packages and "/" in name:
            name, _, version = name.rpartition("/")
        versions = self.packages.get(name)
        if versions is None:
            return _json({"error": "Not found"}, 404)
        if version:
            found = versions.get(self.tags[name].get(version, version))
            return _json(found) if found is not None else _json(f"version not found: {version}", 404)
        if _SHORT in (request.header("accept") or ""):
            kept = (
                "name version dependencies optionalDependencies peerDependencies peerDependenciesMeta bin dist engines"
            )
            names = f"{kept} bundleDependencies directories os cpu hasInstallScript deprecated".split()
            brief = {v: {k: m[k] for k in names if k in m} for v, m in versions.items()}
            page = {
                "name": name,
                "dist-tags": self.tags[name],
                "versions": brief,
                "modified": "2024-01-01T00:00:00.000Z",
            }
            return _json(page, kind=_SHORT)
        times = {version: "2024-01-01T00:00:00.000Z" for version in versions}
        page = {"_id": name, "name": name, "dist-tags": self.tags[name], "versions": versions, "time": times}
        return _json(page)


def tarball(files: Mapping[str, str]) -> bytes:
    """Files as npm packs them, under `package/`."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text.encode())
            member.mtime = 499162500  # npm's fixed date
            archive.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def _json(value: object, status: int = 200, kind: str = "application/json") -> Response:
    return Response(status, json.dumps(value).encode(), {"Content-Type": kind})
