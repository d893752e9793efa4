"""Ways out of a container inside a sandbox, and from one container into another: each tried, none works.

Every script runs as root of a container. Outside there is a secret in a file, in the environment and in a process, a
server on a port, and another container with the same.
"""

from __future__ import annotations

import shlex

import pytest

from belljar.kernel.machine import virtual_machine
from belljar.worker.session import Session
from tests.adapter import new_session

SECRET = "s3cr3t-outside"
VICTIM = "s3cr3t-other"

ATTEMPTS = {
    "read a file by its path": "cat /tmp/secret /workspace/secret",
    "climb with ..": "cat /../../../../tmp/secret ../../../tmp/secret; cd /; cd ../..; cat tmp/secret",
    "through init's root": "cat /proc/1/root/tmp/secret /proc/1/root/../tmp/secret /proc/1/cwd/tmp/secret",
    "through the descriptors of others": "for p in /proc/[0-9]*; do cat $p/fd/* </dev/null; cat $p/environ; done",
    "through descriptors that were inherited": "for n in 3 4 5 6 7 8 9; do cat <&$n; ls -l /proc/self/fd/$n/; done",
    "find it anywhere": "find / -name 'secret*' -type f -exec cat {} + ; grep -rs s3cr3t / --include='*' -l",
    "see processes outside": "ps -ef; cat /proc/*/cmdline; pgrep -fl s3cr3t",
    "walk all pids": "for n in $(seq 1 200); do cat /proc/$n/environ /proc/$n/cmdline; done",
    "signal all pids": "for n in $(seq 2 300); do test $n = $$ || kill -9 $n; done; kill -9 -1",
    "signals that a program sends for us": (
        "for i in $(seq 60); do timeout -s KILL 0.001 sleep 1; done; setsid -w true"
    ),
    "logs of nested containers": (
        "container run --name victim base echo gone; container run -d base echo; ls /var/log/containers"
    ),
    "signal by negative pids": "for n in $(seq 2 50); do kill -9 -$n; done",
    "leave by chroot": (
        "mkdir -p /a; chroot /a /bin/true; chroot /proc/1/root cat /tmp/secret; cd /proc/1/root; "
        "chroot . cat /tmp/secret"
    ),
    "mount what is outside": (
        "mount --bind / /mnt; cat /mnt/tmp/secret; mount -t proc x /mnt; mount /mnt/srv/posted /mnt; cat /mnt/*"
    ),
    "unmount to see what is below": (
        "umount /proc /dev /dev/shm /net /mnt/web /; umount -l /; cat /tmp/secret; ls /proc"
    ),
    "the server on the sandbox's ports": (
        "for h in localhost 127.0.0.1 10.0.2.15 belljar 0.0.0.0 172.17.0.1; "
        "do timeout 1 nc $h 7000 </dev/null; curl -s $h:7000; done"
    ),
    "dial by /net itself": (
        "exec 5<>/net/tcp/clone; read n <&5; echo 'connect 10.0.2.15!7000' >&5; cat /net/tcp/$n/data; cat /proc/net/tcp"
    ),
    "another container's files": (
        "cat /var/lib/containers/volumes/*/* /var/log/containers/*; container exec victim cat /secret"
    ),
    "another container by the command": (
        "container ps -a; container logs victim; container exec victim env; docker run -v /tmp:/x base cat /x/secret"
    ),
    "the sandbox's services": (
        "service list; service stop precious; systemctl status precious; journalctl -u precious"
    ),
    "a nested container's volume of the outside": (
        "container run --rm -v /:/host base cat /host/tmp/secret /host/../tmp/secret"
    ),
    "terminals and shared memory": "cat /dev/shm/* /dev/pts/* /dev/tty </dev/null; ls /dev/pts /dev/shm",
    "the host name of the sandbox": "hostname evil; echo evil >/proc/sys/kernel/hostname; echo evil >/etc/hostname",
    "links left for others": "ln -s /tmp/secret /shared/link; ln /tmp/secret /shared/hard; cat /shared/link",
    "a posted server": "ls /mnt/srv; cat /mnt/srv/posted; exec 3</; echo 3 >/mnt/srv/evil",
    "programs by their magic": r"printf '\x7fBELLJAR leak\n' >/leak; chmod +x /leak; /leak",
    "fill the memory of pids": "for i in $(seq 3000); do sleep 0 & done; wait",
}


def outside() -> Session:
    session = new_session(machine=virtual_machine())
    init = session.kernel.init
    init.write_file("/etc/init/precious.toml", f"command = 'echo {SECRET}; exec sleep 99999'".encode())
    session.kernel.hub.spawn(session.services.boot)
    session.exec(
        f"echo {SECRET} | tee /tmp/secret /workspace/secret /dev/shm/secret; mkdir -p shared;"
        f"(TOKEN={SECRET} bash -c 'exec -a {SECRET} sleep 99999' &) ;"
        f"(while echo {SECRET} | nc -l 7000; do :; done &) ;"
        f"exec 3</tmp; echo 3 >/mnt/srv/posted;"
        f"sudo container run -d --name victim -e TOKEN={VICTIM} -v private:/p base "
        f"bash -c 'echo {VICTIM} >/secret; echo {VICTIM} >/p/f; echo {VICTIM}; exec sleep 99999'; sleep 1"
    )
    return session


def facts(session: Session) -> str:
    shown = session.exec(
        "hostname; cat /etc/hostname /tmp/secret; ls /mnt/srv; service status precious; pgrep -fc 'sleep 99999'; "
        "mount | md5sum; sudo container exec victim cat /secret; sudo container ps -q; ps -e | grep -c .; ls -A shared"
    )
    return (shown.stdout + shown.stderr).decode()


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_container_stays_inside(attempt: str) -> None:
    session = outside()
    before = facts(session)
    script = shlex.quote(ATTEMPTS[attempt])
    options = "-v /workspace/shared:/shared --pids 500" if "/shared" in ATTEMPTS[attempt] else "--pids 500"
    result = session.exec(f"timeout 60 sudo container run --rm {options} base bash -c {script}")
    said = (result.stdout + result.stderr).decode("utf-8", "replace")
    assert SECRET not in said
    assert VICTIM not in said
    session.exec("rm -f shared/link")
    assert facts(session) == before, "it changed something outside"
