"""A Debian archive for tests: packages made by hand, lists of them, and a server on the loopback interface."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import zstandard

from tests.image.archives import directory, entry, layer, symlink

ARCHITECTURE = "amd64"
PACK: Mapping[str, Callable[[bytes], bytes]] = {
    ".xz": lzma.compress,
    ".gz": partial(gzip.compress, mtime=0),
    ".zst": zstandard.compress,
    "": bytes,
}

Files = Mapping[str, bytes | str | tuple[bytes, int]]
"""By path: contents, with a mode maybe; or the target of a symbolic link, as a str; with a slash at the end, a
directory."""


def make_deb(
    fields: Mapping[str, str], files: Files, scripts: Mapping[str, str] | None = None, how: str = ".xz"
) -> bytes:
    """A binary package."""
    control = "".join(f"{name}: {value}\n" for name, value in fields.items())
    inner = [entry("./control", control.encode())]
    inner += [entry(f"./{name}", text.encode(), mode=0o755) for name, text in (scripts or {}).items()]
    members = {
        "debian-binary": b"2.0\n",
        f"control.tar{how}": PACK[how](layer(directory("./"), *inner)),
        f"data.tar{how}": PACK[how](layer(directory("./"), *entries(files))),
    }
    made = b"!<arch>\n"
    for name, data in members.items():
        made += (
            f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
        )
    return made


def entries(files: Files) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    known = {"."}
    for path, value in files.items():
        parts = path.strip("/").split("/")
        for depth in range(1, len(parts) + path.endswith("/")):
            above = "./" + "/".join(parts[:depth])
            if above not in known:
                known.add(above)
                yield directory(above + "/")
        if isinstance(value, str):
            yield symlink("./" + path, value)
        elif not path.endswith("/"):
            data, mode = value if isinstance(value, tuple) else (value, 0o644)
            yield entry("./" + path, data, mode=mode)


class Mirror:
    """An archive in a directory. Packages are added, then `publish` writes the lists."""

    def __init__(self, root: Path, suite: str = "bookworm") -> None:
        self.root = root
        self.suite = suite
        self._paragraphs: list[str] = []

    def add(
        self,
        name: str,
        version: str = "1.0",
        files: Files | None = None,
        scripts: Mapping[str, str] | None = None,
        how: str = ".xz",
        **more: str,
    ) -> None:
        named = {key.replace("_", "-").title(): value for key, value in more.items()}
        fields = {"Package": name, "Version": version, "Architecture": ARCHITECTURE, "Maintainer": "t <t@t>", **named}
        fields["Description"] = f"package {name}"
        deb = make_deb(fields, files or {}, scripts, how)
        path = f"pool/{name}_{version.replace(':', '%3a')}_{ARCHITECTURE}.deb"
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(deb)
        fields |= {"Filename": path, "Size": str(len(deb)), "SHA256": hashlib.sha256(deb).hexdigest()}
        self._paragraphs.append("".join(f"{key}: {value}\n" for key, value in fields.items()))

    def publish(self, sign: Path | None = None, fields: Mapping[str, str] | None = None) -> None:
        """Write the lists; signed by the key in a directory of gpg, if one is given."""
        place = self.root / "dists" / self.suite
        packages = lzma.compress("\n".join(self._paragraphs).encode())
        (place / f"main/binary-{ARCHITECTURE}").mkdir(parents=True, exist_ok=True)
        (place / f"main/binary-{ARCHITECTURE}/Packages.xz").write_bytes(packages)
        fields = {"Suite": "stable", "Codename": self.suite, **(fields or {})}
        line = f" {hashlib.sha256(packages).hexdigest()} {len(packages)} main/binary-{ARCHITECTURE}/Packages.xz\n"
        release = "".join(f"{key}: {value}\n" for key, value in fields.items()) + f"SHA256:\n{line}"
        (place / "InRelease").write_text(release)
        if sign is not None:
            (place / "InRelease").unlink()
            gpg(sign, "--clearsign", "--output", str(place / "InRelease"), text=release)

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Its address, while it is served."""
        with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(self.root))) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield f"http://127.0.0.1:{server.server_address[1]}"
            finally:
                server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def gpg(home: Path, *command: str, text: str = "") -> bytes:
    try:
        return subprocess.run(
            ["gpg", "--homedir", str(home), "--batch", "--quiet", "--passphrase", "", *command],
            input=text.encode(), capture_output=True, check=True,
        ).stdout  # fmt: skip
    finally:  # it starts an agent, which stays
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], capture_output=True, check=True)


def make_key(home: Path) -> Path:
    """A key to sign with; the keyring to check with."""
    home.mkdir(mode=0o700)
    gpg(home, "--quick-gen-key", "tests@example.org", "ed25519", "sign", "never")
    (home / "ring.gpg").write_bytes(gpg(home, "--export"))
    return home / "ring.gpg"


def small_system(root: Path, shell: Files | None = None) -> Mirror:
    """A mirror with the little that a system of ours needs, in all the ways packages are made."""
    shell = shell or {"bin/sh": (b"#!", 0o755), "usr/bin/mawk": b""}
    mirror = Mirror(root)
    mirror.add(
        "base-files",
        files={"etc/debian_version": b"12.0\n", "tmp/": b"", "usr/": b"", "root/": b""},
        essential="yes",
        conffiles="",
    )
    mirror.add(
        "base-passwd",
        files={
            "usr/share/base-passwd/passwd.master": b"root:*:0:0:root:/root:/bin/sh\n",
            "usr/share/base-passwd/group.master": b"root:*:0:\n",
        },
        essential="yes",
        how=".gz",
    )
    mirror.add("shell", files=shell, essential="yes", how=".zst", pre_depends="libc")
    mirror.add("libc", "2.36-9+deb12u1", files={"lib/x/libc.so.6": b"old"}, multi_arch="same", priority="required")
    mirror.add(
        "libc",
        "2.36-9+deb12u10",
        files={"lib/x/libc.so.6": b"new", "lib64/ld.so": "/lib/x/libc.so.6"},
        multi_arch="same",
    )
    return mirror
