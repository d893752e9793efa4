"""A shell begins as its command line and environment say, whatever the shell before it began with."""

import pytest

from belljar.engines.worker.programs import find, names
from belljar.kernel.machine_host import host_machine
from belljar.worker.session import Session

STATE = "echo $- $0 $_ $# ${#PPID} $PWD; f 2>&1; x=é; echo ${#x} $SHELLOPTS"


@pytest.fixture
def session() -> Session:
    made = Session(host_machine(), programs=find, names=names())
    made.exec("true")
    return made


def begin(session: Session, command: str = STATE, **env: str) -> bytes:
    return session.exec(command, env=env or None).stdout


def test_plain_shells_begin_alike(session: Session) -> None:
    first = begin(session)
    assert begin(session) == first
    assert first.splitlines()[1:] == [
        b"bash: line 1: f: command not found",
        b"1 braceexpand:hashall:interactive-comments",
    ]


@pytest.mark.parametrize(
    ("name", "value", "seen"),
    [
        ("BASH_ENV", "/workspace/start", "from BASH_ENV"),
        ("SHELLOPTS", "nounset", "nounset"),
        ("BASHOPTS", "nullglob", "shopt -s nullglob"),
        ("POSIXLY_CORRECT", "1", "posix"),
        ("BASH_FUNC_f%%", "() { echo exported; }", "exported"),
        ("LC_ALL", "C", "2"),
        ("_", "before", "before"),
    ],
)
def test_what_the_environment_says_holds_for_one_shell(session: Session, name: str, value: str, seen: str) -> None:
    script = 'echo "<$_>"; shopt -p nullglob; f 2>&1; x=é; echo ${#x} $SHELLOPTS'
    session.exec("echo 'f() { echo from BASH_ENV; }' > start")
    plain = begin(session, script)
    other = begin(session, script, **{name: value})
    assert seen in other.decode()
    assert other != plain
    assert begin(session, script) == plain


def test_each_begins_where_it_is(session: Session) -> None:
    session.exec("mkdir -p a; mv a b; mkdir a")
    assert session.exec("pwd; echo $PWD", cwd="/workspace/b").stdout == b"/workspace/b\n/workspace/b\n"
    session.exec("mv b c")
    assert session.exec("pwd; echo $PWD", cwd="/workspace/c").stdout == b"/workspace/c\n/workspace/c\n"
    assert begin(session, "pwd") == b"/workspace\n"


def test_what_was_ignored_before_stays_ignored(session: Session) -> None:
    assert begin(session, "trap '' TERM; bash -c 'trap'; bash -c 'trap - TERM; kill $$; echo alive'") == (
        b"trap -- '' SIGTERM\nalive\n"
    )
    assert begin(session, "bash -c trap") == b""


def test_variables_of_one_are_not_the_nexts(session: Session) -> None:
    begin(session, "PS4=changed; IFS=x; LANG=C; unset PATH; readonly HOME; cd /; set -- 1 2; f() { :; }; set -u")
    assert begin(session) == begin(session)
    assert begin(session, 'echo "$PS4" ${#IFS} $LANG $PATH $# $-; HOME=/h; echo $HOME').endswith(b"/h\n")
