"""File utilities against hostile trees: deep, huge, self-referring; and what of them works without a file."""

from __future__ import annotations

import pytest

from belljar.abi.limits import Limits
from belljar.bin._kit.human import human, parse_block_size
from belljar.bin._kit.modes import parse_mode, render_mode
from belljar.bin._kit.quoting import quote
from belljar.bin._ls.columns import down, fit
from belljar.libc.quotearg import shell_escape
from tests.adapter import new_session, run_command


def run(script: str, limits: Limits | None = None) -> tuple[str, str, int]:
    session = new_session({"LC_ALL": "C.UTF-8"}, limits or Limits(wall_seconds=60))
    result = run_command(session, ["bash", "-c", script], cwd="/tmp")
    return result.stdout.decode(), result.stderr.decode(), result.status


DEEP = "for i in {1..700}; do mkdir dddddd; cd -P dddddd; done; touch f; cd /tmp; "


@pytest.mark.parametrize("command", ["rm -rf dddddd", "find dddddd -delete"])
def test_a_tree_deeper_than_any_path_can_be_removed(command: str) -> None:
    assert run(DEEP + command + "; ls") == ("", "", 0)


def test_a_tree_deeper_than_any_path_can_be_walked() -> None:
    out, err, status = run(DEEP + "find dddddd | wc -l; du dddddd | wc -l; chmod -R 700 dddddd; tree dddddd | tail -1")
    assert (out, err, status) == ("701\n700\n700 directories, 1 file\n", "", 0)


def test_a_directory_is_not_copied_into_itself_for_ever() -> None:
    out, err, _ = run("mkdir a; touch a/f; cp -r a a/b; find a | sort; mv a a/b")
    assert out == "a\na/b\na/b/f\na/f\n"
    assert err.splitlines() == [
        "cp: cannot copy a directory, 'a', into itself, 'a/b'",
        "mv: cannot move 'a' to a subdirectory of itself, 'a/b/a'",
    ]


def test_removal_does_not_follow_links_out_of_the_tree() -> None:
    assert run("mkdir a b; touch b/keep; ln -s ../b a/l; ln -s /tmp/b a/m; rm -rf a; ls b; find b -type f")[0] == (
        "keep\nb/keep\n"
    )


def test_huge_sparse_files_cost_nothing() -> None:
    script = (
        "truncate -s 1T f; cp f g; mv g h; stat -c %s h; du h; dd of=i bs=1 seek=1T count=0 status=none; stat -c %s i"
    )
    assert run(script) == ("1099511627776\n0\th\n1099511627776\n", "", 0)


def test_copying_a_huge_file_of_zeros_ends_with_a_full_disk() -> None:
    out, err, _ = run("dd if=/dev/zero of=f bs=64M status=none; ls f", Limits(wall_seconds=60, file_bytes=8 << 20))
    assert out == "f\n"
    assert err == "dd: error writing 'f': No space left on device\n"


@pytest.mark.parametrize(
    "command",
    [
        "stat -c %999999999n .",
        "find . -printf %999999999p",
        "csplit -n 999999999 /etc/passwd 1",
        "split -a 999999999 /etc/passwd",
    ],
)
def test_widths_are_charged_before_they_are_built(command: str) -> None:
    assert run(command)[2] != 0


def test_many_files_spend_steps() -> None:
    limits = Limits(wall_seconds=60, steps=40_000)
    assert (
        run("seq 3000 | split -l 1 -a 4 -; for i in {1..20}; do ls > /dev/null; find . > /dev/null; done", limits)[2]
        == 137
    )


def test_rm_refuses_the_root() -> None:
    out, err, status = run("rm -rf / /// ; ls -d /etc")
    assert out == "/etc\n"
    assert err.count("it is dangerous to operate recursively on") == 2
    assert status == 0


def test_devices_can_not_be_made() -> None:
    assert run("mknod x c 1 3; mknod y b 8 0")[1] == (
        "mknod: x: Operation not permitted\nmknod: y: Operation not permitted\n"
    )


def test_commands_of_find_run_where_they_should() -> None:
    script = "mkdir -p a/b; touch a/b/f; find a -name f -exec pwd \\; -execdir pwd \\; -execdir ls {} +"
    assert run(script)[0] == "/tmp\n/tmp/a/b\n./f\n"


@pytest.mark.parametrize(
    ("text", "mode", "directory", "result"),
    [
        ("755", 0o644, False, 0o755),
        ("755", 0o2700, True, 0o2755),
        ("00755", 0o2700, True, 0o755),
        ("u+x,g-r", 0o644, False, 0o704),
        ("a+X", 0o600, False, 0o600),
        ("a+X", 0o600, True, 0o711),
        ("g=u", 0o750, False, 0o770),
        ("+t", 0o777, True, 0o1777),
        ("=r", 0o777, False, 0o444),
        ("u=rwxs,go=", 0, False, 0o4700),
    ],
)
def test_modes(text: str, mode: int, directory: bool, result: int) -> None:
    change = parse_mode(text)
    assert change is not None
    assert change.apply(mode, 0o022, directory=directory) == result


@pytest.mark.parametrize("text", ["", "8", "u+z", "u", "77777", "u+644", "+x,"])
def test_no_modes(text: str) -> None:
    assert parse_mode(text) is None


def test_modes_in_words() -> None:
    assert render_mode(0o104755) == "-rwsr-xr-x"
    assert render_mode(0o041777) == "drwxrwxrwt"
    assert render_mode(0o102644) == "-rw-r-Sr--"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a", "a"),
        ("a b", "'a b'"),
        ("a'b", '"a\'b"'),
        ("a'b$", "'a'\\''b$'"),
        ("a\nb", "'a'$'\\n''b'"),
        ("", "''"),
        ("#a", "'#a'"),
        ("é", "é"),
    ],
)
def test_quoting_for_the_shell(text: str, shown: str) -> None:
    assert shell_escape(text) == shown


def test_quotes_follow_the_locale() -> None:
    assert quote("x", {"LC_ALL": "C.UTF-8"}) == "\u2018x\u2019"
    assert quote("x'y", {"LC_ALL": "C"}) == "'x\\'y'"


def test_sizes_for_people() -> None:
    assert [human(n) for n in (0, 1023, 1024, 1025, 10240, 10241, 1048575, 1 << 40)] == [
        "0", "1023", "1.0K", "1.1K", "10K", "11K", "1.0M", "1.0T",
    ]  # fmt: skip
    size = parse_block_size("M")
    assert size is not None
    assert size.show(1) == "1M"
    assert parse_block_size("zz") is None


def test_columns_use_what_fits() -> None:
    assert fit([1] * 10, 80, across=False) == [3] * 9 + [3]
    assert down(["aaaa", "b", "c"], [4, 1, 1], 8, 0) == ["aaaa", "b", "c"]
