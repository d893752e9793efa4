"""Real tools for images, from Debian's packages: `skopeo` and `umoci`."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from tests.debian import Unreachable, install

PACKAGES = {
    "s/skopeo/skopeo_1.9.3+ds1-1+b10_amd64.deb": "5c1978f6a95577b143be772bbe50c247a28132a5cc961c74d4d2a6f2b1ab4f3d",
    "u/umoci/umoci_0.4.7+ds-3+b7_amd64.deb": "8adce0c435368b8514425bfa31647ff1629241c97331ba4cd3da838a61a58e5a",
    "l/lvm2/libdevmapper1.02.1_1.02.185-2_amd64.deb": (
        "aaa78ca236055fedccf637eacf7bda02bf1980b2db668dccd202b04d0d2cfe04"
    ),
    "g/gpgme1.0/libgpgme11_1.18.0-3+b1_amd64.deb": "dc075584050dc5c8ac27563fc222e8c1ea71128a019a6d129d5823e47ac1e55e",
    "liba/libassuan/libassuan0_2.5.5-5_amd64.deb": "5912430927da16ccc831459679207fdbb9dfc5a206f2bab8d6f36d5a1ab53e25",
    "libg/libgpg-error/libgpg-error0_1.46-1_amd64.deb": (
        "89944ee11d7370ce6ef46fc52f094c4a6512eff8943ec4c6ebefeae6360ceada"
    ),
}


def _place(name: str) -> str | None:
    """Programs to bin/, libraries to lib/."""
    path = Path(name)
    if path.parts[-2:-1] == ("bin",):
        return f"bin/{path.name}"
    return f"lib/{path.name}" if ".so." in path.name else None


def tools() -> Path:
    """The directory with the tools, or the test is skipped."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        pytest.skip("the packages are for Linux on x86-64")
    try:
        return install("image-tools-1", PACKAGES, _place)
    except Unreachable as error:
        pytest.skip(f"skopeo and umoci could not be fetched from Debian: {error}")


def run(*command: str, cwd: Path) -> str:
    """Run one of the tools, which must succeed."""
    place = tools()
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(cwd), "XDG_RUNTIME_DIR": str(cwd), "TMPDIR": str(cwd),
        "LD_LIBRARY_PATH": str(place / "lib"),
    }  # fmt: skip
    found = subprocess.run(
        [str(place / "bin" / command[0]), *command[1:]], cwd=cwd, env=environment, capture_output=True, check=False
    )
    assert found.returncode == 0, found.stderr.decode()
    return found.stdout.decode()
