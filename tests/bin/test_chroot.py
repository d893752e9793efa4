"""chroot as the sandbox's root: another root directory, and another user in it."""

from belljar.kernel.vfs.credentials import Credentials
from tests.adapter import new_session, run_command

SETUP = """
cd /; mkdir -p r/bin r/etc r/tmp; cp /bin/{bash,ls,id,cat} r/bin; echo inside >r/tmp/f; cp /etc/{passwd,group} r/etc
"""


def run(script: str) -> tuple[str, str, int]:
    session = new_session({"LC_ALL": "C.UTF-8"})
    session.credentials = Credentials()
    result = run_command(session, ["bash", "-c", SETUP + script], cwd="/")
    return result.stdout.decode(), result.stderr.decode(), result.status


def test_everything_is_seen_from_the_new_root() -> None:
    out, err, status = run("chroot r bash -c 'pwd; ls / ..; cat /tmp/f ../../../tmp/f; cd /tmp/../..; pwd'; ls -d /r")
    assert (out, err, status) == ("/\n..:\nbin\netc\ntmp\n\n/:\nbin\netc\ntmp\ninside\ninside\n/\n/r\n", "", 0)


def test_links_of_the_new_root_stay_inside() -> None:
    out, err, status = run("echo outside >f; ln -s /tmp/f r/l; ln -s ../../../f r/m; chroot r cat l m")
    assert (out, err, status) == ("inside\n", "cat: m: No such file or directory\n", 1)


def test_another_user() -> None:
    out, err, _ = run(
        "chroot --userspec=agent r id; chroot --userspec=agent:root --groups=tty r id; chroot --userspec=zz r id"
    )
    assert out == (
        "uid=1000(agent) gid=1000(agent) groups=1000(agent)\nuid=1000(agent) gid=0(root) groups=0(root),5(tty)\n"
    )
    assert err == "chroot: invalid user\n"


def test_what_cannot_be_run() -> None:
    assert run("chroot r nope; echo $?; chroot r/tmp/f ls; echo $?; chroot --skip-chdir r ls; echo $?") == (
        "127\n125\n125\n",
        "chroot: failed to run command \u2018nope\u2019: No such file or directory\n"
        "chroot: cannot change root directory to 'r/tmp/f': Not a directory\n"
        "chroot: option --skip-chdir only permitted if NEWROOT is old '/'\nTry 'chroot --help' for more information.\n",
        0,
    )
