"""`files`: a sandbox's files from outside."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from belljar import FileError, ProtectedFileError, Sandbox
from tests.tiers.conftest import Make, Tier


def test_text_and_bytes(sb: Sandbox) -> None:
    sb.files.write("text", "żółć\n")
    sb.files.write("bytes", b"\0\xff")
    assert sb.files.read("text") == "żółć\n"
    assert sb.files.read_bytes("text") == "żółć\n".encode()
    assert sb.files.read_bytes("bytes") == b"\0\xff"
    assert sb.files.read("bytes") == "\0\ufffd"


CONTENTS: dict[str, Any] = {
    "empty": b"",
    "one byte": b"x",
    "bytearray": bytearray(b"ab"),
    "memoryview": memoryview(b"abc"),
    "a megabyte and one": b"x" * ((1 << 20) + 1),
    "eight megabytes and one": b"y" * ((8 << 20) + 1),
}


@pytest.mark.parametrize("data", CONTENTS.values(), ids=CONTENTS)
def test_contents(sb: Sandbox, data: Any) -> None:
    sb.files.write("f", data)
    assert sb.files.read_bytes("f") == bytes(data)
    assert sb.exec("wc -c < f").stdout.strip() == str(len(data))


def test_a_big_file(sb: Sandbox) -> None:
    data = b"".join(b"%019d\n" % n for n in range(1_500_000))
    sb.files.write("big", data)
    assert sb.exec("sha256sum big").stdout.split()[0] == hashlib.sha256(data).hexdigest()
    assert sb.files.read_bytes("big") == data


def test_both_sides_see_the_same(sb: Sandbox) -> None:
    sb.files.write("from-outside", "1\n")
    assert sb.exec("cat from-outside; echo 2 > from-inside").stdout == "1\n"
    assert sb.files.read("from-inside") == "2\n"


def test_commands_may_change_what_was_written(sb: Sandbox) -> None:
    sb.files.write("new/dir/f", "1\n")
    sb.files.mkdir("made")
    assert sb.exec("echo 2 >> new/dir/f && touch new/g new/dir/g made/g && rm -r new made && echo ok").stdout == "ok\n"


def test_appending(sb: Sandbox) -> None:
    sb.files.write("f", "1\n", append=True)
    sb.files.write("f", b"2\n", append=True)
    assert sb.files.read("f") == "1\n2\n"


def test_writing_replaces(sb: Sandbox) -> None:
    sb.files.write("f", "long contents")
    sb.files.write("f", "short")
    assert sb.files.read("f") == "short"


def test_parents_are_made(sb: Sandbox) -> None:
    sb.files.write("a/b/c/f", "x")
    assert sb.files.stat("a/b").is_dir


def test_paths(sb: Sandbox) -> None:
    sb.files.write("/workspace/d/f", "x")
    assert sb.files.read("d/f") == "x"
    assert sb.files.read("d/../d/./f") == "x"
    assert sb.files.read(PurePosixPath("d/f")) == "x"
    assert sb.files.read("/workspace//d//f") == "x"


NAMES = {
    "a space": "a b",
    "leading dash": "-rf",
    "UTF-8": "żółć-🔔",
    "a line break": "a\nb",
    "quotes": 'it\'s "x"',
    "a star": "*",
    "a backslash": "a\\b",
    "not UTF-8": "\udcff\udc80",
    "dots": "...",
    "hidden": ".hidden",
    "the longest": "n" * 255,
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names(sb: Sandbox, name: str) -> None:
    sb.files.write(f"d/{name}", "x")
    assert sb.files.read(f"d/{name}") == "x"
    (entry,) = sb.files.list("d")
    assert (entry.name, entry.path) == (name, f"d/{name}")
    assert sb.exec(["cat", f"./d/{name}"]).stdout == "x"
    assert sb.exec("printf '%s' d/* d/.[!.]*", env={"BASHOPTS": "nullglob"}).ok
    sb.files.remove(f"d/{name}")
    assert sb.files.list("d") == []


def test_modes(sb: Sandbox) -> None:
    sb.files.write("plain", "")
    sb.files.write("script", "#!/bin/sh\necho ran\n", mode=0o755)
    sb.files.write("secret", "", mode=0o600)
    assert [sb.files.stat(name).mode for name in ("plain", "script", "secret")] == [0o644, 0o755, 0o600]
    assert sb.exec("stat -c %a plain script secret; ./script").stdout == "644\n755\n600\nran\n"


def test_writing_again_keeps_the_mode(sb: Sandbox) -> None:
    sb.files.write("f", "1", mode=0o700)
    sb.files.write("f", "2")
    assert sb.files.stat("f").mode == 0o700
    sb.files.write("f", "3", mode=0o640)
    assert sb.files.stat("f").mode == 0o640


def test_chmod(sb: Sandbox) -> None:
    sb.files.write("f", "")
    sb.files.chmod("f", 0o4711)
    assert sb.files.stat("f").mode == 0o4711
    sb.files.mkdir("d")
    sb.files.chmod("d", 0o1777)
    assert sb.files.stat("d").mode == 0o1777


MODES: dict[str, tuple[Any, type[Exception]]] = {
    "a str": ("755", TypeError),
    "a bool": (True, TypeError),
    "too large": (0o100644, ValueError),
    "negative": (-1, ValueError),
}


@pytest.mark.parametrize(("mode", "error"), MODES.values(), ids=MODES)
def test_what_is_no_mode(sb: Sandbox, mode: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="mode"):
        sb.files.write("f", "", mode=mode)
    assert not sb.files.exists("f")


def test_stat(sb: Sandbox) -> None:
    sb.files.write("d/f", "12345", mode=0o640)
    entry = sb.files.stat("d/f")
    assert (entry.name, entry.path, entry.kind, entry.size, entry.mode) == ("f", "d/f", "file", 5, 0o640)
    assert not entry.is_dir
    said = sb.exec("stat -c '%u %g %Y' d/f").stdout.split()
    assert [entry.uid, entry.gid, int(entry.mtime)] == [int(n) for n in said]


KINDS = {
    "file": ("echo > x", "file"),
    "directory": ("mkdir x", "directory"),
    "symlink": ("ln -s /etc x", "symlink"),
    "broken symlink": ("ln -s /no/such x", "symlink"),
    "fifo": ("mkfifo x", "other"),
}


@pytest.mark.parametrize(("command", "kind"), KINDS.values(), ids=KINDS)
def test_kinds(sb: Sandbox, command: str, kind: str) -> None:
    sb.exec(command).check()
    assert sb.files.stat("x", follow=False).kind == kind
    assert [entry.kind for entry in sb.files.list(".")] == [kind]


def test_symlinks_are_followed(sb: Sandbox) -> None:
    sb.files.write("target", "12345")
    sb.files.symlink("target", "link")
    assert sb.files.readlink("link") == "target"
    assert sb.files.read("link") == "12345"
    assert (sb.files.stat("link").kind, sb.files.stat("link", follow=False).kind) == ("file", "symlink")
    sb.files.write("link", "through")
    assert sb.files.read("target") == "through"
    sb.files.remove("link")
    assert sb.files.exists("target")


def test_symlinks_to_nothing(sb: Sandbox) -> None:
    sb.files.symlink("/no/such", "link")
    assert not sb.files.exists("link")
    assert sb.files.readlink("link") == "/no/such"
    assert sb.exec("readlink link").stdout == "/no/such\n"


def test_a_list_is_sorted(sb: Sandbox) -> None:
    sb.exec("mkdir d; touch d/b d/a d/C d/.h; mkdir d/sub")
    entries = sb.files.list("d")
    assert [entry.name for entry in entries] == [".h", "C", "a", "b", "sub"]
    assert [entry.is_dir for entry in entries] == [False, False, False, False, True]


def test_a_long_list(sb: Sandbox) -> None:
    sb.exec("mkdir d; cd d; seq -f 'file-%05.0f' 12000 | xargs touch").check()
    assert [entry.name for entry in sb.files.list("d")] == [f"file-{n:05}" for n in range(1, 12_001)]


def test_the_root_is_a_unix(sb: Sandbox) -> None:
    assert {"bin", "dev", "etc", "home", "proc", "tmp", "usr", "workspace"} <= {e.name for e in sb.files.list("/")}


def test_mkdir(sb: Sandbox) -> None:
    sb.files.mkdir("d")
    sb.files.mkdir("a/b/c", parents=True)
    sb.files.mkdir("a/b/c", parents=True)
    assert sb.exec("stat -c %a d a/b/c").stdout == "755\n755\n"


def test_remove(sb: Sandbox) -> None:
    sb.exec("mkdir -p d/e empty; touch f d/e/f; ln -s d link")
    for name in ("f", "empty", "link"):
        sb.files.remove(name)
    sb.files.remove("d", recursive=True)
    assert sb.files.list(".") == []


def test_rename(sb: Sandbox) -> None:
    sb.files.write("a", "1")
    sb.files.write("b", "2")
    sb.files.rename("a", "b")
    assert (sb.files.read("b"), sb.files.exists("a")) == ("1", False)
    sb.files.mkdir("d")
    sb.files.rename("b", "d/c")
    sb.files.rename("d", "e")
    assert sb.files.read("e/c") == "1"


def test_edit(sb: Sandbox) -> None:
    sb.files.write("f", "one two two\n")
    assert sb.files.edit("f", "one", "1") == 1
    assert sb.files.edit("f", "two", "2", every=True) == 2
    assert sb.files.read("f") == "1 2 2\n"
    with pytest.raises(ValueError, match="is there 2 times"):
        sb.files.edit("f", "2", "3")
    with pytest.raises(ValueError, match="not there"):
        sb.files.edit("f", "nothing like it", "3")
    assert sb.files.read("f") == "1 2 2\n"


ERRORS: dict[str, tuple[Callable[[Any], object], int, str]] = {
    "read missing": (lambda f: f.read("no"), errno.ENOENT, "no"),
    "read a directory": (lambda f: f.read("dir"), errno.EISDIR, "dir"),
    "read below a file": (lambda f: f.read("file/x"), errno.ENOTDIR, "file/x"),
    "read a loop": (lambda f: f.read("loop"), errno.ELOOP, "loop"),
    "read without end": (lambda f: f.read("/dev/zero"), errno.EFBIG, "/dev/zero"),
    "read a long name": (lambda f: f.read("n" * 256), errno.ENAMETOOLONG, "nnn"),
    "read a NUL": (lambda f: f.read("a\0b"), errno.EINVAL, "a"),
    "write a directory": (lambda f: f.write("dir", "x"), errno.EISDIR, "dir"),
    "write below a file": (lambda f: f.write("file/x", "x"), errno.ENOTDIR, "file"),
    "write a loop": (lambda f: f.write("loop", "x"), errno.ELOOP, "loop"),
    "list missing": (lambda f: f.list("no"), errno.ENOENT, "no"),
    "list a file": (lambda f: f.list("file"), errno.ENOTDIR, "file"),
    "stat missing": (lambda f: f.stat("no"), errno.ENOENT, "no"),
    "stat below a file": (lambda f: f.stat("file/x"), errno.ENOTDIR, "file/x"),
    "mkdir existing": (lambda f: f.mkdir("dir"), errno.EEXIST, "dir"),
    "mkdir a file": (lambda f: f.mkdir("file"), errno.EEXIST, "file"),
    "mkdir without its parent": (lambda f: f.mkdir("no/x"), errno.ENOENT, "no/x"),
    "mkdir with a file above": (lambda f: f.mkdir("file/x", parents=True), errno.ENOTDIR, "file"),
    "mkdir over a file": (lambda f: f.mkdir("file", parents=True), errno.EEXIST, "file"),
    "symlink over a file": (lambda f: f.symlink("x", "file"), errno.EEXIST, "file"),
    "readlink of a file": (lambda f: f.readlink("file"), errno.EINVAL, "file"),
    "readlink missing": (lambda f: f.readlink("no"), errno.ENOENT, "no"),
    "chmod missing": (lambda f: f.chmod("no", 0o644), errno.ENOENT, "no"),
    "remove missing": (lambda f: f.remove("no"), errno.ENOENT, "no"),
    "remove a full directory": (lambda f: f.remove("dir"), errno.ENOTEMPTY, "dir"),
    "remove missing, recursively": (lambda f: f.remove("no", recursive=True), errno.ENOENT, "no"),
    "rename missing": (lambda f: f.rename("no", "x"), errno.ENOENT, "no"),
    "rename over a full directory": (lambda f: f.rename("empty", "dir"), errno.ENOTEMPTY, ""),
    "rename into itself": (lambda f: f.rename("dir", "dir/x"), errno.EINVAL, "dir"),
    "rename a file over a directory": (lambda f: f.rename("file", "empty"), errno.EISDIR, ""),
    "rename a directory over a file": (lambda f: f.rename("dir", "file"), errno.ENOTDIR, ""),
    "edit missing": (lambda f: f.edit("no", "a", "b"), errno.ENOENT, "no"),
    "download missing": (lambda f: f.download("no", "/tmp/never"), errno.ENOENT, "no"),
    "watch missing": (lambda f: f.watch("no").__enter__(), errno.ENOENT, "no"),
}


@pytest.mark.parametrize(("do", "number", "path"), ERRORS.values(), ids=ERRORS)
def test_errors(sb: Sandbox, do: Callable[[Any], object], number: int, path: str) -> None:
    sb.exec("mkdir dir empty; touch dir/f; echo x > file; ln -s loop loop").check()
    with pytest.raises(FileError) as raised:
        do(sb.files)
    assert errno.errorcode[raised.value.errno] == errno.errorcode[number]
    assert path in raised.value.path
    assert str(raised.value).endswith(raised.value.strerror)
    assert sb.files.read("file") == "x\n"


def test_what_is_no_path(sb: Sandbox) -> None:
    with pytest.raises(TypeError, match="path in the sandbox is a str"):
        sb.files.read(b"x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="str or bytes"):
        sb.files.write("f", 1)  # type: ignore[arg-type]


def test_exists(sb: Sandbox) -> None:
    sb.exec("mkdir d; touch f")
    assert [sb.files.exists(path) for path in ("d", "f", "no", "f/x", "/", "d/..")] == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]


def test_files_may_do_everything_and_commands_may_not(sb: Sandbox, tier: Tier) -> None:
    sb.files.write("/root/f", "x", mode=0o600)
    assert sb.files.read("/root/f") == "x"
    if tier.behaviour("users are separate", True):
        assert sb.exec("cat /root/f").exit_code == 1
        assert sb.exec("echo > /etc/passwd").exit_code == 1
        with pytest.raises(FileError) as raised:
            sb.files.as_user().read("/root/f")
        assert raised.value.errno == errno.EACCES
        with pytest.raises(FileError) as raised:
            sb.files.as_user().write("/etc/new", "x")
        assert raised.value.errno == errno.EACCES
    else:
        assert sb.exec("cat /root/f; echo >> /etc/passwd").stdout == "x"
        assert sb.files.as_user().read("/root/f") == "x"
        assert "ids" in sb.info.missing
    with pytest.raises(FileError) as raised:
        sb.files.as_user().write("/usr/new", "x")
    assert raised.value.errno in (errno.EACCES, errno.EROFS)
    sb.files.as_user().write("f", "mine")
    assert sb.files.as_user().read("f") == "mine"


def test_write_many(sb: Sandbox) -> None:
    sb.files.mkdir("dir")
    results = sb.files.write_many([("a", "1"), ("dir", "2"), ("b/c", (b"3", 0o755)), ("a/x", "4"), ("d", b"5")])
    assert [result.path for result in results] == ["a", "dir", "b/c", "a/x", "d"]
    assert [result.ok for result in results] == [True, False, True, False, True]
    assert [result.error and result.error.errno for result in results] == [
        None,
        errno.EISDIR,
        None,
        errno.ENOTDIR,
        None,
    ]
    assert (sb.files.read("b/c"), sb.files.stat("b/c").mode) == ("3", 0o755)


def test_write_many_of_a_dict(sb: Sandbox) -> None:
    contents: dict[str, Any] = {"a": "1", "b": b"2"}
    assert all(result.ok for result in sb.files.write_many(contents))
    assert sb.exec("cat a b").stdout == "12"


def test_write_many_checks_before_it_writes(sb: Sandbox) -> None:
    with pytest.raises(TypeError, match="write_many takes pairs"):
        sb.files.write_many([("a", "1"), "b"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="str, bytes"):
        sb.files.write_many([("a", "1"), ("b", 2)])  # type: ignore[list-item]
    assert not sb.files.exists("a")


GLOBS = {
    "a star": ("*.txt", ["a.txt", "b c.txt"]),
    "any depth": ("**/*.txt", ["a.txt", "b c.txt", "d/e.txt", "d/f/g.txt"]),
    "a question mark": ("?.txt", ["a.txt"]),
    "a class": ("[ab]*.txt", ["a.txt", "b c.txt"]),
    "directories": ("*/", ["d/"]),
    "nothing": ("*.none", []),
    "a name": ("a.txt", ["a.txt"]),
    "a name that is not there": ("no.txt", []),
    "absolute": ("/workspace/d/*", ["/workspace/d/e.txt", "/workspace/d/f"]),
    "with a space": ("b c*", ["b c.txt"]),
}


@pytest.mark.parametrize(("pattern", "paths"), GLOBS.values(), ids=GLOBS)
def test_glob(make: Make, pattern: str, paths: list[str]) -> None:
    sb = make(
        files={f"/workspace/{name}": "" for name in ("a.txt", "b c.txt", ".h.txt", "d/e.txt", "d/f/g.txt", "x.md")}
    )
    assert sb.files.glob(pattern) == paths


def test_grep(make: Make) -> None:
    sb = make(files={"/workspace/a": "one\ntwo: x\n", "/workspace/d/b c": "none\ntwo\n", "/workspace/bin": b"two\0"})
    found = sorted((match.path, match.line, match.text) for match in sb.files.grep("^t(wo|en)"))
    assert found == [("./a", 2, "two: x"), ("./d/b c", 2, "two")]
    assert [(m.path, m.line) for m in sb.files.grep("one", "a")] == [("a", 1)]
    assert sb.files.grep("nothing like it") == []
    assert [m.text for m in sb.files.grep("-|x", "a")] == ["two: x"]


def test_upload_and_download(sb: Sandbox, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "a").write_text("1")
    (tree / "sub" / "run").write_text("#!/bin/sh\necho ran\n")
    (tree / "sub" / "run").chmod(0o755)
    (tree / "link").symlink_to("/etc/passwd")
    sb.files.upload(str(tree), "up")
    assert sb.exec("cat up/a; up/sub/run; ls up").stdout == "1ran\na\nsub\n"
    sb.exec("echo 2 > up/b; ln -s /etc/passwd up/link")
    sb.files.download("up", str(tmp_path / "down"))
    assert sorted(os.listdir(tmp_path / "down")) == ["a", "b", "sub"]
    os.close(os.open(tmp_path / "as a program makes it", os.O_CREAT, 0o755))  # whatever our umask is
    assert (tmp_path / "down/sub/run").stat().st_mode == (tmp_path / "as a program makes it").stat().st_mode


def test_upload_and_download_of_a_file(sb: Sandbox, tmp_path: Path) -> None:
    data = os.urandom((9 << 20) + 3)
    (tmp_path / "f").write_bytes(data)
    sb.files.upload(tmp_path / "f", "new/g")
    assert sb.exec("sha256sum < new/g").stdout.split()[0] == hashlib.sha256(data).hexdigest()
    sb.files.download("new/g", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data


def test_an_upload_of_nothing(sb: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sb.files.upload(str(tmp_path / "no"), "x")


def test_a_download_that_would_run_something(sb: Sandbox, tmp_path: Path) -> None:
    sb.files.write("d/.git/hooks/post-checkout", "echo", mode=0o755)
    sb.files.write("d/fine", "x")
    with pytest.raises(ProtectedFileError, match="post-checkout"):
        sb.files.download("d", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    sb.files.download("d", tmp_path / "out", trust=True)
    assert (tmp_path / "out/fine").read_text() == "x"


@pytest.mark.feature("watch")
def test_watch(sb: Sandbox) -> None:
    sb.files.mkdir("d/sub", parents=True)
    with sb.files.watch("d") as watch:
        sb.exec("echo 1 > d/a")
        _await_change(watch, "created", "/workspace/d/a")
        sb.exec("echo 2 > d/a")
        _await_change(watch, "modified", "/workspace/d/a")
        sb.exec("mv d/a d/b")
        assert _await_change(watch, "renamed", "/workspace/d/a")[-1].to == "/workspace/d/b"
        sb.exec("rm d/b; echo > d/sub/deep")
        _await_change(watch, "deleted", "/workspace/d/b")
        _await_change(watch, "created", "/workspace/d/sub/deep")


def _await_change(watch: Any, kind: str, path: str) -> list[Any]:
    """Changes up to one that must come, that one included."""
    seen: list[Any] = []
    while not seen or (seen[-1].kind, seen[-1].path) != (kind, path):
        change = watch.next(timeout=120)
        assert change is not None, seen
        seen.append(change)
    return seen


@pytest.mark.feature("watch")
def test_a_watch_of_one_directory_only(sb: Sandbox) -> None:
    sb.files.mkdir("d/sub", parents=True)
    with sb.files.watch("d", recursive=False) as watch:
        sb.exec("echo > d/sub/deep; echo > d/a")
        seen = _await_change(watch, "created", "/workspace/d/a")
        assert "/workspace/d/sub/deep" not in {change.path for change in seen}


@pytest.mark.feature("watch")
def test_a_watch_that_sees_nothing(sb: Sandbox) -> None:
    with sb.files.watch(".") as watch:
        assert watch.next(timeout=0.1) is None
        sb.exec("echo > a")
        _await_change(watch, "created", "/workspace/a")


@pytest.mark.feature("watch")
def test_a_watch_that_is_closed(sb: Sandbox) -> None:
    with sb.files.watch(".") as watch:
        pass
    assert watch.next() is None
    watch.close()
