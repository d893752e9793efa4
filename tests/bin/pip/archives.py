"""Wheels and source archives for the tests of pip, and an index of them as files of a sandbox."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping

INDEX = "file:///srv/simple"


def metadata(
    name: str, version: str, requires: tuple[str, ...] = (), extras: Mapping[str, tuple[str, ...]] | None = None
) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Summary: {name} for tests"]
    lines += [f"Requires-Dist: {need}" for need in requires]
    for extra, needs in (extras or {}).items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {need} ; extra == "{extra}"' for need in needs)]
    return "\n".join(lines) + "\n"


def wheel(
    name: str,
    version: str,
    files: Mapping[str, str] | None = None,
    *,
    requires: tuple[str, ...] = (),
    extras: Mapping[str, tuple[str, ...]] | None = None,
    scripts: str = "",
    record: Mapping[str, str] | None = None,
    unlisted: Mapping[str, str] | None = None,
) -> bytes:
    """`record` overrides what RECORD says of a file; `unlisted` files are not in it."""
    stem = name.replace("-", "_")
    info = f"{stem}-{version}.dist-info"
    contents = dict(files or {f"{stem}/__init__.py": f"__version__ = {version!r}\n"})
    contents[f"{info}/METADATA"] = metadata(name, version, requires, extras)
    contents[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    if scripts:
        contents[f"{info}/entry_points.txt"] = f"[console_scripts]\n{scripts}\n"
    lines = []
    for path, text in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},{(record or {}).get(path, f'sha256={digest}')},{len(text.encode())}")
    contents[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,"]) + "\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in {**contents, **(unlisted or {})}.items():
            archive.writestr(zipfile.ZipInfo(path, (2024, 1, 1, 0, 0, 0)), text)
    return out.getvalue()


def sdist(top: str, files: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(f"{top}/{path}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def index(files: Mapping[str, bytes], attributes: Mapping[str, str] | None = None) -> dict[str, str | bytes]:
    """A simple index in /srv/simple, for `--index-url file:///srv/simple`, of archives by their file name."""
    made: dict[str, str | bytes] = {}
    pages: dict[str, list[str]] = {}
    for name, data in files.items():
        made[f"/srv/files/{name}"] = data
        project = name.partition("-")[0].replace("_", "-").lower()
        digest = hashlib.sha256(data).hexdigest()
        more = (attributes or {}).get(name, "")
        pages.setdefault(project, []).append(f'<a href="../../files/{name}#sha256={digest}" {more}>{name}</a><br>')
    for project, links in pages.items():
        made[f"/srv/simple/{project}/index.html"] = "<!DOCTYPE html><html><body>" + "\n".join(links) + "</body></html>"
    return made
