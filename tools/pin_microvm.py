"""Writes src/belljar/vm/pins.txt anew: the Debian packages that `belljar prepare microvm` takes, by their digests.

Run it when Debian has published fixes; then `make test-microvm`. `python tools/pin_microvm.py` prints what changed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Container, Sequence
from pathlib import Path

from belljar.image.debian.control import Package, PackageIndex
from belljar.image.debian.fetch_host import Archive, fetch_index
from belljar.image.debian.resolve import resolve

PINS = Path(__file__).parents[1] / "src/belljar/vm/pins.txt"
TOOLS = """
e2fsprogs libaio1 libblkid1 libbpf1 libc6 libcapstone4 libcom-err2 libdaxctl1 libelf1 libext2fs2 libfdt1
libffi8 libfuse3-3 libgcc-s1 libglib2.0-0 libgmp10 libgnutls30 libhogweed6 libibverbs1 libidn2-0
libjpeg62-turbo libkmod2 liblzma5 libmount1 libndctl6 libnettle8 libnl-3-200 libnl-route-3-200 libnuma1
libp11-kit0 libpcre2-8-0 libpixman-1-0 libpmem1 libpng16-16 librdmacm1 libsasl2-2 libseccomp2 libselinux1
libslirp0 libss2 libssl3 libtasn1-6 libudev1 libunistring2 liburing2 libuuid1 libvdeplug2 libzstd1 lz4
qemu-system-common qemu-system-data qemu-system-x86 qemu-utils seabios zlib1g
""".split()
"""QEMU, the tools for file systems, and the libraries that their programs are linked with; not all they depend on."""
SYSTEM = ["python3", "ca-certificates", "curl", "procps", "iproute2"]
"""What the built-in system has beside what every Debian has."""


def rows(kind: str, packages: Sequence[Package], base: Container[str] = ()) -> list[str]:
    found = []
    for package in packages:
        archive = package.mirror.rpartition("/")[2]
        fields = package.fields
        words = (kind, fields["package"], fields["version"], archive, fields["filename"], fields["size"])
        found.append(" ".join((*words, fields["sha256"], "base" if package.name in base else "-")))
    return found


def kernel(index: PackageIndex) -> Package:
    depends = index.versions("linux-image-cloud-amd64")[0].relations("depends")
    return index.versions(depends[0][0].name)[0]


def main() -> None:
    index = fetch_index(Archive("bookworm"), "amd64")
    base = {package.name for package in resolve(index, [])}
    lines = [
        *rows("tools", [index.versions(name)[0] for name in sorted(TOOLS)]),
        *rows("kernel", [kernel(index)]),
        *rows("debian:12", resolve(index, SYSTEM), base),
    ]
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    before = set(PINS.read_text().splitlines()) if PINS.exists() else set()
    PINS.write_text("".join(f"{line}\n" for line in (f"stamp {stamp}", *lines)))
    for line in lines:
        if line not in before:
            sys.stdout.write(" ".join(line.split()[:3]) + "\n")


if __name__ == "__main__":
    main()
