"""FS: attempts to reach files that are not the sandbox's own."""

from tests.escape.case import Case

MIB = 1 << 20

CASES = [
    Case("1a dots above the root", "B", "cat ../../../../../../../../..{canary}", says="No such file or directory"),
    Case("1b the same path", "B", "cat {canary}", says="No such file or directory"),
    Case("1c the host's accounts", "S", "cat ../../../../etc/passwd | cut -d: -f1", out="root\nagent\nnobody\n"),
    Case("1d cd out", "S", "cd /; cd ../../..; pwd; cd -P .. && pwd", out="/\n/\n"),
    Case("2a the root of self", "B", "cat /proc/self/root{canary}"),
    Case("2b the root of init", "B", "cat /proc/1/root{canary} || ls /proc/1/root/"),
    Case("2c the directory of self", "B", "cat /proc/self/cwd/../../../..{canary}"),
    Case("3a environ", "S", "env -i A=b cat /proc/self/environ | tr '\\0' '\\n'", out="A=b\n"),
    Case("3b cmdline", "S", "cat /proc/self/cmdline | tr '\\0' ' '", out="cat /proc/self/cmdline "),
    Case("3c exe", "S", "readlink /proc/self/exe", out="/usr/bin/readlink\n"),
    Case("3d maps and mem", "S", "cat /proc/self/maps /proc/self/smaps; head -c1 /proc/self/mem; true"),
    Case("3e descriptors", "S", "ls /proc/self/fd | wc -w", out="3\n"),
    Case("3f init's secrets", "B", "cat /proc/1/environ", says="Permission denied"),
    Case("3g all of proc", "S", "find /proc -type f -exec cat {} + >/dev/null 2>&1; find /proc | wc -l > n; test -s n"),
    Case("3h only our own processes", "S", "ls /proc | grep -c '^[0-9]'", out="4\n"),
    Case("4a a descriptor beyond the table", "B", "cat /dev/fd/77", says="No such file or directory"),
    Case("4b a descriptor beyond numbers", "B", "cat /dev/fd/99999999999999999999 /dev/fd/-1 /proc/self/fd/1e9"),
    Case("5a read through a symlink", "B", "ln -s {canary} l; cat l", says="No such file or directory"),
    Case("5b write through a symlink", "B", "ln -s {canary} l; echo x > l"),
    Case("5c stat, chmod, truncate", "B", "ln -s {canary} l; stat -L l || chmod 777 l || truncate -s 0 l"),
    Case("5d a symlink to the host's directory", "B", "ln -s $(dirname {canary}) d; ls d/ || touch d/x"),
    Case("6a a loop", "B", "ln -s l l; cat l", says="Too many levels of symbolic links"),
    Case("6b two that point at each other", "B", "ln -s a b; ln -s b a; cat a/x", says="Too many levels"),
    Case(
        "6c a chain of 41",
        "B",
        "echo x > l0; for i in {1..41}; do ln -s l$((i-1)) l$i; done; cat l40 && cat l41",
        out="x\n",
        says="Too many levels",
    ),
    Case("7 create through a dangling symlink", "B", "ln -s {canary}.new l; echo x > l", says="No such file"),
    Case("10a a hard link to the host", "B", "ln {canary} x", says="No such file"),
    Case("10b a hard link across servers", "B", "ln /proc/version x", says="cross-device"),
    Case("10c a hard link to a directory", "B", "mkdir d; ln d e", says="hard link not allowed"),
    Case("11a a directory into itself", "B", "mkdir -p a/b; mv a a/b/c", says="itself"),
    Case("11b over a directory that is not empty", "B", "mkdir -p a b/a; touch b/a/x; mv -T a b/a", says="not empty"),
    Case("11c the root", "B", "mv / /tmp/x || rmdir / || rm -rf /"),
    Case("12a unmount the root", "B", "umount /"),
    Case(
        "12b mount over the root", "S", "mount -t tmpfs none / || true; bind /tmp / || true; cat /etc/hostname || true"
    ),
    Case(
        "12c a mount inside itself",
        "S",
        "mkdir -p m; bind / m || true; ls m/workspace/m/workspace/m >/dev/null || true",
    ),
    Case("12d the host's root by mount", "B", "mkdir m; mount -t ext4 /dev/sda1 m"),
    Case("13a a block device", "B", "mknod d b 8 0", says="Operation not permitted"),
    Case("13b a character device", "B", "mknod d c 1 1", says="Operation not permitted"),
    Case("13c a FIFO nobody reads", "L", "mkfifo f; echo x > f", limit="wall_seconds", limits={"wall_seconds": 0.3}),
    Case("13d memory and disk devices", "B", "cat /dev/mem /dev/kmem /dev/sda /dev/vda /dev/port"),
    Case("14a a name too long", "B", "touch $(printf %0256d 0)", says="File name too long"),
    Case("14b a path too long", "B", "touch $(printf '%04097d' 0 | sed 's/0\\{100\\}/&\\//g')", says="name too long"),
    Case("14c bytes that are no text", "S", "touch $'\\xff\\xfe\\n*'; ls | od -An -tx1", out=" ff fe 0a 2a 0a\n"),
    Case(
        "14d deep directories",
        "S",
        "for i in {1..400}; do mkdir d && cd d; done; cd /workspace; find . | wc -l; rm -rf d; ls",
        out="401\n",
        limits={"cpu_seconds": 30},
    ),
    Case(
        "16 forged whiteouts are plain files", "S", "touch .wh.x .wh..wh..opq x; ls -A", out=".wh..wh..opq\n.wh.x\nx\n"
    ),
    Case(
        "17a tar with dots",
        "B",
        "mkdir -p w/in; echo evil > w/f; tar cf t.tar -P -C w/in ../f; rm w/f; tar xf t.tar -C w/in; "
        "test ! -e w/f && exit 1",
    ),
    Case(
        "17b tar with an absolute name",
        "S",
        "echo evil > /tmp/evil; tar cPf t.tar /tmp/evil; rm /tmp/evil; mkdir d; tar xf t.tar -C d 2>/dev/null; "
        "ls /tmp; find d -type f",
        out="d/tmp/evil\n",
    ),
    Case(
        "17c tar: a symlink, then a file through it",
        "S",
        "mkdir d o; ln -s /workspace/o d/l; tar cf t.tar -C d l; rm d/l; mkdir d/l; echo evil > d/l/f; "
        "tar rf t.tar -C d l/f; rm -r d; mkdir x; tar xf t.tar -C x 2>/dev/null; ls o",
        out="",
    ),
    Case(
        "19a a file larger than the disk",
        "B",
        "truncate -s 8E f && head -c 2M /dev/zero > f",
        limits={"file_bytes": MIB},
    ),
    Case(
        "19b the quota by many writes",
        "B",
        "for i in {1..20}; do head -c 100000 /dev/zero > f$i || exit; done",
        says="No space left on device",
        limits={"file_bytes": MIB},
    ),
    Case("19c the quota by symlinks", "B", "for i in {1..3000}; do ln -s x l$i || exit; done", limits={"files": 2000}),
    Case(
        "19d the quota by hard links",
        "S",
        "touch f; for i in {1..300}; do ln f l$i || exit; done; ls | wc -l",
        out="301\n",
    ),
    Case("19e the quota by directories", "B", "for i in {1..3000}; do mkdir d$i || exit; done", limits={"files": 2000}),
    Case(
        "20 deleted but open",
        "B",
        "exec 3> f; rm f; head -c 4M /dev/zero >&3",
        says="No space left on device",
        limits={"file_bytes": MIB},
    ),
    Case(
        "21a a descriptor again, with more rights",
        "B",
        "exec 3< /etc/passwd; echo x > /proc/self/fd/3",
        says="Permission denied",
    ),
    Case("21b the same by /dev/fd", "B", "exec 3< /etc/passwd; echo x >> /dev/fd/3", says="Permission denied"),
    Case("23a a tree into itself", "B", "mkdir a; touch a/f; cp -r a a/b", says="into itself"),
    Case(
        "23b find that moves what it finds",
        "S",
        "mkdir -p a/b/c; find a -depth -type d -exec mv {} a/x \\; 2>/dev/null; true",
    ),
    Case("24a set-id bits have no power", "S", "cp /bin/id i; chmod 6755 i; ./i -u", out="1000\n"),
    Case("24b nor does chown", "B", "touch f; chown root f", says="Operation not permitted"),
    Case(
        "24c what root owns stays",
        "B",
        "rm -f /etc/passwd || echo x > /etc/passwd || rm -f /bin/ls",
        says="Permission denied",
    ),
    Case("24d nobody becomes root", "B", "su - || sudo id || setpriv id", exit=127),
]
