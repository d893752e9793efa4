"""The pipes of commands: used again by the next one, unless somebody still has them."""

from belljar.abi.flags import O_NONBLOCK, O_WRONLY
from belljar.engines.worker.programs import find, names
from belljar.kernel.machine_host import host_machine
from belljar.worker.session import Session
from belljar.worker.streams import Streams
from belljar.worker.task import Task


def _session() -> Session:
    return Session(host_machine(), programs=find, names=names())


def _ignore(_data: bytes) -> None: ...


def _inodes(session: Session) -> bytes:
    return session.exec("stat -L -c %i /dev/stdin /dev/stdout /dev/stderr").stdout


def test_the_next_command_gets_the_same_pipes() -> None:
    session = _session()
    first = _inodes(session)
    assert len(set(first.split())) == 3
    assert _inodes(session) == first


def test_pipes_that_a_process_left_behind_still_has_are_not_given_to_the_next() -> None:
    session = _session()
    first = _inodes(session)
    assert session.exec("mkfifo /tmp/go; (read -r < /tmp/go; echo late) & true").stdout == b""
    kept = _inodes(session)
    assert kept != first
    result = session.exec("echo > /tmp/go; sleep 0.3; echo mine")
    assert (result.stdout, result.stderr) == (b"mine\n", b"")


def test_input_that_nobody_read_is_not_the_next_commands() -> None:
    session = _session()
    session.exec("true", stdin=b"secret\n")
    assert session.exec("cat").stdout == b""
    assert session.exec("cat", stdin=b"given\n").stdout == b"given\n"


def test_a_writer_to_standard_input_does_not_reach_the_next_command() -> None:
    session = _session()
    session.exec("exec 3> /dev/stdin; echo x >&3; sleep 0.2 >&3 &")
    assert session.exec("cat").stdout == b""


def test_standard_error_that_is_output_too() -> None:
    session = _session()
    assert session.exec("echo a; echo b >&2", merge_stderr=True).stdout == b"a\nb\n"
    apart = session.exec("echo a; echo b >&2")
    assert (apart.stdout, apart.stderr) == (b"a\n", b"b\n")


def test_flags_that_a_command_set_are_gone_with_it() -> None:
    kernel = _session().kernel
    streams = Streams(kernel)
    output = streams.begin(b"", _ignore, _ignore)[1].retain()
    output.set_flags(O_NONBLOCK)
    output.release()
    streams.end()
    again = streams.begin(b"", _ignore, _ignore)[1]
    assert again.flags == O_WRONLY
    assert not again.handle.nonblocking


def test_nothing_comes_out_of_them_between_commands() -> None:
    got: list[bytes] = []
    kernel = _session().kernel
    streams = Streams(kernel)
    files = streams.begin(b"", got.append, got.append)
    for file in files.values():
        file.retain()
    files[1].write(b"one")
    assert not streams.end(), "they are still held"
    files[1].write(b"two")
    assert got == [b"one"]
    for file in files.values():
        file.release()
    assert streams.end()


def test_input_that_ends_while_it_is_still_written_is_read_to_its_end() -> None:
    session = _session()
    parts: list[bytes] = []
    over: list[Task] = []
    task = session.start(
        "sleep 0.1; wc -c",
        on_output=lambda _stream, data: parts.append(data),
        on_end=over.append,
        stdin=b"",
        follows=True,
    )
    for _ in range(8):
        task.give_input(0, bytes(1 << 16))
    task.end_input(0)
    session.kernel.hub.run(lambda: bool(over))
    assert b"".join(parts) == b"%d\n" % (8 << 16)
