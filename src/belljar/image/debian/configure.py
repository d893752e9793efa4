"""Configuring a Debian system: the script that runs its dpkg in a sandbox.

Packages whose `preinst` must run before they are unpacked are unpacked by dpkg itself; all others already are, and
their state says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from belljar.image.debian.control import Package
from belljar.kernel.machine import REPLAY_NS

PACKAGES: Final = "/var/cache/apt/archives"
"""Where the sandbox finds the packages that dpkg unpacks."""
ENVIRONMENT: Final = {
    "DEBIAN_FRONTEND": "noninteractive",
    "DEBCONF_NONINTERACTIVE_SEEN": "true",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "PERL_HASH_SEED": "0",
    "PYTHONHASHSEED": "0",
    "SOURCE_DATE_EPOCH": str(REPLAY_NS // 10**9),
}
_SCRIPT: Final = r"""
set -eu
umask 022
cd /
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
dpkg="dpkg --force-unsafe-io --force-confold --force-confdef --log=/dev/null"
$dpkg --configure NEEDED
for file in LATER; do
    $dpkg --force-depends --unpack "ARCHIVES/$file"
done
$dpkg --configure --pending
rm -f /usr/sbin/policy-rc.d
rm -f /var/cache/ldconfig/aux-cache /var/cache/debconf/*-old /var/lib/dpkg/*-old /etc/passwd- /etc/group- /etc/shadow-
rm -f /etc/gshadow- /var/log/alternatives.log /var/log/dpkg.log /var/log/bootstrap.log
"""


def file_name(package: Package) -> str:
    """The name of a package's file for dpkg."""
    version = package.version.replace(":", "%3a")
    return f"{package.name}_{version}_{package.fields['architecture']}.deb"


def configure_script(needed: Sequence[Package], later: Sequence[Package]) -> str:
    """Configure the packages that every system has, then unpack those of `later`, then configure everything.

    Names and versions of packages were checked: none of them means anything to a shell.
    """
    words = {
        "NEEDED": " ".join(package.name for package in needed),
        "LATER": " ".join(map(file_name, later)),
        "ARCHIVES": PACKAGES,
    }
    script = _SCRIPT
    for name, text in words.items():
        script = script.replace(name, text)
    return script
