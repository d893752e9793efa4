"""The programs that ours behave as: what the originals' --version says, which scripts look at."""

from __future__ import annotations

from typing import Final

_PACKAGES: Final = {
    "GNU coreutils) 9.1": """
        [ arch b2sum base32 base64 basename basenc cat chgrp chmod chown chroot cksum comm coreutils cp csplit cut date
        dd df dir dircolors dirname du echo env expand expr factor false fmt fold groups head hostid id install join
        link ln logname ls md5sum mkdir mkfifo mknod mktemp mv nice nl nohup nproc numfmt od paste pathchk pinky pr
        printenv printf ptx pwd readlink realpath rm rmdir seq sha1sum sha224sum sha256sum sha384sum sha512sum
        shred shuf sleep sort split stat stdbuf stty sum sync tac tail tee test timeout touch tr true truncate tsort
        tty uname unexpand uniq unlink users vdir wc who whoami yes
    """,
    "GNU grep) 3.8": "grep egrep fgrep",
    "GNU sed) 4.9": "sed",
    "GNU findutils) 4.9.0": "find xargs",
    "GNU diffutils) 3.8": "cmp diff diff3 sdiff",
    "GNU tar) 1.34": "tar",
    "GNU cpio) 2.13": "cpio",
}
_ALONE: Final = {
    "gzip": "gzip 1.12", "gunzip": "gunzip (gzip) 1.12", "zcat": "zcat (gzip) 1.12", "patch": "GNU patch 2.7.6",
    "bc": "bc 1.07.1", "dc": "dc (GNU bc 1.07.1) 1.4.1", "parallel": "GNU parallel 20221122",
    "rsync": "rsync  version 3.2.7  protocol version 32", "xz": "xz (XZ Utils) 5.4.1",
}  # fmt: skip


def model_of(name: str) -> str | None:
    """`ls (GNU coreutils) 9.1`; None for a program that is like no other."""
    for package, names in _PACKAGES.items():
        if name in names.split():
            return f"{name} ({package}"
    return _ALONE.get(name)
