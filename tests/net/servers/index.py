"""A Python package index: the simple API in HTML (PEP 503) and JSON (PEP 691), with metadata files (PEP 658)."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import re
import ssl
import tarfile
import zipfile
from collections.abc import Mapping
from importlib.metadata import distribution

from tests.net.servers.http1 import HttpServer, Request, Response

_JSON = "application/vnd.pypi.simple.v1+json"


class PackageIndex(HttpServer):
    """`index` is what pip is given as its index: `pip install --index-url`. Files are added by `add`, or made whole by
    `release`. `json=False` is an index of the old kind."""

    def __init__(
        self, *, address: str = "127.0.0.1", port: int = 0, context: ssl.SSLContext | None = None, json: bool = True
    ) -> None:
        super().__init__({"/simple/": self._page, "/files/": self._file}, address=address, port=port, context=context)
        self.json = json
        self.files: dict[str, dict[str, bytes]] = {}
        """By normalised project name and file name."""
        self.yanked: dict[str, str] = {}
        """File names withdrawn, and why."""
        self.requires_python: dict[str, str] = {}
        self._metadata: dict[str, bytes] = {}

    @property
    def index(self) -> str:
        return f"{self.url}/simple/"

    def add(self, project: str, filename: str, data: bytes, *, metadata: bytes | None = None) -> None:
        self.files.setdefault(normalise(project), {})[filename] = data
        if metadata is not None:
            self._metadata[filename] = metadata

    def release(
        self,
        project: str,
        version: str,
        files: Mapping[str, str] | None = None,
        *,
        requires: tuple[str, ...] = (),
        extras: Mapping[str, tuple[str, ...]] | None = None,
        requires_python: str = "",
        scripts: Mapping[str, str] | None = None,
        sdist: bool = False,
    ) -> str:
        """A wheel (or source archive) with these files, of its own making; the file's name.

        Without files it is one module that says its version.
        """
        stem = normalise(project).replace("-", "_")
        contents = dict(files or {f"{stem}/__init__.py": f"__version__ = {version!r}\n"})
        lines = ["Metadata-Version: 2.1", f"Name: {project}", f"Version: {version}", "Summary: made for a test"]
        lines += [f"Requires-Dist: {need}" for need in requires]
        for extra, needs in (extras or {}).items():
            lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {need}; extra == "{extra}"' for need in needs)]
        if requires_python:
            lines.append(f"Requires-Python: {requires_python}")
        metadata = "\n".join(lines) + "\n"
        if sdist:
            name = f"{stem}-{version}.tar.gz"
            self.add(project, name, _source(stem, version, contents, metadata))
        else:
            name = f"{stem}-{version}-py3-none-any.whl"
            self.add(
                project, name, _wheel(stem, version, contents, metadata, scripts or {}), metadata=metadata.encode()
            )
        if requires_python:
            self.requires_python[name] = requires_python
        return name

    def installed(self, project: str) -> str:
        """A wheel of what is installed for these tests, without its compiled parts; the file's name."""
        found = distribution(project)
        stem = normalise(project).replace("-", "_")
        info = f"{stem}-{found.version}.dist-info"
        files = {
            str(path): path.read_text("utf-8")
            for path in found.files or ()
            if path.suffix in (".py", ".pem", ".typed") and ".." not in path.parts
        }
        name = f"{stem}-{found.version}-py3-none-any.whl"
        text = found.read_text("METADATA")
        assert text is not None, f"{project} is not installed from a wheel: {info}"
        self.add(project, name, _wheel(stem, found.version, files, text, {}), metadata=text.encode())
        return name

    def compiled(self, project: str) -> str:
        """A wheel of what is installed for these tests, whole; the file's name."""
        found = distribution(project)
        about = found.read_text("WHEEL") or ""
        tags = [line.removeprefix("Tag: ").split("-") for line in about.splitlines() if line.startswith("Tag: ")]
        python, abi = tags[0][:2]
        name = (
            f"{normalise(project).replace('-', '_')}-{found.version}-{python}-{abi}-{'.'.join(t[2] for t in tags)}.whl"
        )
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            for path in found.files or ():
                if ".." not in path.parts and "__pycache__" not in path.parts:
                    archive.writestr(str(path), path.read_binary())
        self.add(project, name, made.getvalue())
        return name

    def _page(self, request: Request) -> Response:
        accept = request.header("accept") or ""
        as_json = self.json and _JSON in accept
        project = request.path.removeprefix("/simple/").strip("/")
        if not project:
            if as_json:
                listed = {"meta": {"api-version": "1.1"}, "projects": [{"name": name} for name in sorted(self.files)]}
                return Response(200, json.dumps(listed).encode(), {"Content-Type": _JSON})
            links = "".join(f'<a href="/simple/{name}/">{name}</a>\n' for name in sorted(self.files))
            return _html(links)
        if not request.path.endswith("/") or project != normalise(project):
            return Response(301, b"", {"Location": f"/simple/{normalise(project)}/"})
        if project not in self.files:
            return Response(404, b"no such project\n")
        if as_json:
            page = {
                "meta": {"api-version": "1.1"},
                "name": project,
                "versions": [],
                "files": [self._described(name, data) for name, data in self.files[project].items()],
            }
            return Response(200, json.dumps(page).encode(), {"Content-Type": _JSON})
        return _html("".join(self._link(name, data) for name, data in self.files[project].items()))

    def _described(self, name: str, data: bytes) -> dict[str, object]:
        entry: dict[str, object] = {
            "filename": name,
            "url": f"../../files/{name}",
            "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
            "size": len(data),
            "yanked": self.yanked.get(name, False),
        }
        if name in self.requires_python:
            entry["requires-python"] = self.requires_python[name]
        if name in self._metadata:
            digest = {"sha256": hashlib.sha256(self._metadata[name]).hexdigest()}
            entry["core-metadata"] = entry["dist-info-metadata"] = digest
        return entry

    def _link(self, name: str, data: bytes) -> str:
        more = ""
        if name in self.requires_python:
            more += f' data-requires-python="{html.escape(self.requires_python[name])}"'
        if name in self.yanked:
            more += f' data-yanked="{html.escape(self.yanked[name])}"'
        if name in self._metadata:
            more += f' data-core-metadata="sha256={hashlib.sha256(self._metadata[name]).hexdigest()}"'
        return f'<a href="/files/{name}#sha256={hashlib.sha256(data).hexdigest()}"{more}>{name}</a><br/>\n'

    def _file(self, request: Request) -> Response:
        name = request.path.removeprefix("/files/")
        if name.endswith(".metadata") and name.removesuffix(".metadata") in self._metadata:
            return Response(200, self._metadata[name.removesuffix(".metadata")], {"Content-Type": "text/plain"})
        for files in self.files.values():
            if name in files:
                return Response(200, files[name], {"Content-Type": "application/octet-stream"})
        return Response(404, b"no such file\n")


def normalise(project: str) -> str:
    return re.sub(r"[-_.]+", "-", project).lower()


def _html(body: str) -> Response:
    head = '<meta name="pypi:repository-version" content="1.0">'
    page = f"<!DOCTYPE html>\n<html><head>{head}</head><body>\n{body}</body></html>\n"
    return Response(200, page.encode(), {"Content-Type": "text/html"})


def _wheel(stem: str, version: str, files: Mapping[str, str], metadata: str, scripts: Mapping[str, str]) -> bytes:
    info = f"{stem}-{version}.dist-info"
    contents = dict(files)
    contents[f"{info}/METADATA"] = metadata
    contents[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    if scripts:
        points = "".join(f"{name} = {target}\n" for name, target in scripts.items())
        contents[f"{info}/entry_points.txt"] = f"[console_scripts]\n{points}"
    record = ""
    for name, text in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(text.encode())}\n"
    contents[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in contents.items():
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), text)
    return out.getvalue()


def _source(stem: str, version: str, files: Mapping[str, str], metadata: str) -> bytes:
    top = f"{stem}-{version}"
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in {"PKG-INFO": metadata, **files}.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()
