"""`belljar commands`: what a sandbox can run, by purpose, with one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import argparse

GROUPS: Final = {
    "Languages and packages": "bash sh python3 python python3.15 node nodejs js awk gawk mawk pip pip3 uv uvx npm npx "
    "pytest make bc dc expr sqlite3 apt apt-get",
    "Scripts": "test [ true false getopt pwd factor busybox coreutils",
    "Version control and differences": "git diff diff3 sdiff cmp comm patch",
    "Search": "grep egrep fgrep rg find fd which whereis locate look zgrep zegrep zfgrep",
    "Text": "cat tac head tail wc sort uniq cut paste join tr sed nl fmt fold pr column expand unexpand rev csplit "
    "split tsort ptx shuf seq printf echo yes tee less more bat ed ex vi iconv dos2unix unix2dos numfmt envsubst",
    "Structured data": "jq yq xmllint base32 base64 basenc xxd od hexdump hd strings",
    "Files and directories": "ls dir vdir tree cp mv rm mkdir rmdir ln link unlink touch stat file du df chmod chown "
    "chgrp install readlink realpath basename dirname pathchk mktemp mkfifo mknod truncate dd shred sync rename rsync "
    "sponge dircolors",
    "Archives and compression": "tar zip unzip cpio ar gzip gunzip zcat bzip2 bunzip2 bzcat xz unxz xzcat lzma unlzma "
    "lzcat zstd unzstd zstdcat zcmp zdiff",
    "Checksums and keys": "cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum openssl uuidgen",
    "Network": "curl wget nc dig host nslookup ping ss netstat ip",
    "Processes and jobs": "ps top pgrep pkill pidof pstree kill killall nice nohup setsid timeout time sleep watch "
    "parallel xargs flock stdbuf script lsof pv",
    "The system": "date cal uname arch hostname hostid id whoami who users groups logname pinky getent getconf nproc "
    "free uptime lscpu locale env printenv tty stty tput clear reset man su sudo chroot mount umount unmount bind",
}
"""Names by purpose; those that are not here are listed at the end."""


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser(
        "commands",
        help="list the commands of a sandbox",
        description="List the commands that a sandbox has, by purpose. Each one has --help inside.",
    )
    parser.set_defaults(run=lambda _arguments: run())


def run() -> int:
    from belljar.cli.screen_host import say
    from belljar.engines.prepared_host import prepared
    from belljar.engines.wire.tools import TOOLS
    from belljar.engines.worker.programs import find, names

    left = dict.fromkeys(names())
    for title, group in [*((title, text.split()) for title, text in GROUPS.items()), ("Others", None)]:
        listed = [name for name in (list(left) if group is None else group) if name in left]
        if listed:
            say(f"{title}:")
        for name in listed:
            del left[name]
            program = find(name)
            say(f"  {name:<12} {program.summary if program is not None else ''}".rstrip())
    for kind in prepared():
        say(f"{TOOLS[kind].title}:\n  {' '.join(TOOLS[kind].names)}")
    return 0
