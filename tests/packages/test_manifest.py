"""package.toml: mistakes are told with what to write instead; what is right goes where it should."""

from __future__ import annotations

import pytest

from belljar.packages.errors import PackageError
from belljar.packages.layout import lay_out
from belljar.packages.manifest import SIZE_MAX, PackedFile, check_files, parse_manifest
from belljar.packages.semver import parse_range

HEAD = 'name = "hello"\nversion = "1.0.0"\n'
FILES = {
    "a.py": b"",
    "a.mjs": b"",
    "a.sh": b"",
    "w": b"\0asm",
    "x": b"??",
    "s": b"#!/bin/sh\n",
    "d/m.py": b"",
    "g.js": b"",
}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "missing: `name`"),
        ("name = ", "this is no TOML"),
        ('name = "Hello"\nversion = "1.0.0"', "name: 'Hello' is no name"),
        ('name = "../x"\nversion = "1.0.0"', "is no name"),
        ('name = "x"\nversion = "1.0"', "version: '1.0' is no version: write it as 1.2.3"),
        ('name = "x"\nversion = "v1.0.0"', "is no version"),
        ('name = "x"\nversion = 1', "version: a value of type str is needed, this is int"),
        (HEAD + "x = 1", "there is no key `x`"),
        (HEAD + '[commands]\n"a b" = "a.py"', "can't be typed as a command"),
        (HEAD + '[commands]\na = "../a.py"', "is no path in the package"),
        (HEAD + '[commands]\na = "/a.py"', "is no path in the package"),
        (HEAD + '[commands]\na = "no.py"', "there is no file 'no.py'"),
        (HEAD + '[commands]\na = "x"', "what runs 'x' can't be told"),
        (HEAD + '[commands]\na = {emscripten = "w"}', "Emscripten's glue is a .js file"),
        (HEAD + '[commands]\na = {wasm = "w"}', "there is no key `wasm`"),
        (HEAD + '[dependencies]\nb = "latest!"', "'latest!' is no range of versions"),
        (HEAD + '[dependencies]\nhello = "*"', "a package can't need itself"),
        (HEAD + '[files]\n"a.py" = "/bin/ls"', "files go below /usr/local/"),
        (HEAD + '[files]\n"a.py" = "/usr/local/../bin/ls"', "has '..'"),
        (HEAD + '[files]\n"a.py" = "/usr/local/bin/ls"', "is filled from other tables"),
        (HEAD + '[files]\n"a.py" = "/etc/pkg/registries.toml"', "is filled from other tables"),
        (HEAD + '[libraries]\npython = "a.py"', "is a file; name the directory"),
        (HEAD + '[libraries]\nnode = "no"', "there is no 'no'"),
        (
            HEAD + '[services.web]\ncomand = "x"',
            "service web: 'comand' is no key of a service: did you mean 'command'?",
        ),
        (HEAD + '[services."a/b"]\ncommand = "x"', "is no name of a service"),
        (HEAD + '[file-servers.f]\ncommand = "x"\nmount = "/usr"', "mount is a path below /mnt"),
        (HEAD + '[permissions]\nnetwork = ["http://x/y"]', "is no host"),
        (HEAD + '[scripts]\npost-install = "no.sh"', "there is no 'no.sh'"),
        (HEAD, "the package brings nothing"),
        (HEAD + '[commands]\na = "a.py"\n[files]\n"a.sh" = "/opt/x"\n"w" = "/opt/x"', "/opt/x would be two things"),
        (HEAD + '[files]\n"a.sh" = "/opt/x"\n"w" = "/opt/x/y"', "/opt/x would be a file and a directory"),
    ],
)
def test_mistakes(text: str, said: str) -> None:
    with pytest.raises(PackageError) as caught:
        check(text)
    assert said in str(caught.value)


def check(text: str) -> dict[str, str]:
    """Where everything goes, and what it is there."""
    manifest = parse_manifest(text)
    files = [PackedFile(path, False, head) for path, head in FILES.items()]
    check_files(manifest, files)
    shown = {}
    for placed in lay_out(manifest, files):
        text = placed.text.decode() if placed.text is not None else ""
        shown[placed.path] = placed.source or placed.link or text
    return shown


def test_where_things_go() -> None:
    placed = check(
        HEAD
        + """
[commands]
p = "a.py"
j = "a.mjs"
s = "a.sh"
t = "s"
w = "w"
[commands.e]
emscripten = "g.js"
[libraries]
python = "d"
[files]
"x" = "/opt/x"
[services.web]
command = ["p", "--serve"]
ready = "port:80"
"""
    )
    home = "/usr/local/lib/pkg/hello"
    assert placed["/usr/local/bin/p"] == f'#!/bin/sh\nexec python3 {home}/a.py "$@"\n'
    assert placed["/usr/local/bin/j"] == f'#!/bin/sh\nexec node {home}/a.mjs "$@"\n'
    assert placed["/usr/local/bin/s"] == f'#!/bin/sh\nexec bash {home}/a.sh "$@"\n'
    assert placed["/usr/local/bin/t"] == f'#!/bin/sh\nexec bash {home}/s "$@"\n'
    assert placed["/usr/local/bin/w"] == f"{home}/w"
    assert placed["/usr/local/bin/e"] == f'#!/bin/sh\nexec node {home}/.e.cjs "$@"\n'
    assert f'const GLUE = "{home}/g.js";' in placed[f"{home}/.e.cjs"]
    assert placed["/usr/local/lib/python3.15/site-packages/m.py"] == "d/m.py"
    assert placed["/opt/x"] == "x"
    assert placed["/etc/init/web.toml"] == 'command = ["p", "--serve"]\nready = "port:80"\n'
    assert placed[f"{home}/a.py"] == "a.py"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(HEAD + "services" + ".a" * 60_000 + " = 1", "more than 200 dots", id="a key of many parts"),
        pytest.param(
            HEAD + "[services" + ".a" * 60_000 + "]\n" + "".join(f"b{n}=1\n" for n in range(10_000)),
            "more than 200 dots",
            id="a table of many parts",
        ),
        pytest.param(HEAD + "[services.a]\nb = " + "[" * 400 + "]" * 400, "more than 16 deep", id="lists"),
        pytest.param(HEAD + "services" + ".a" * 100 + " = 1", "more than 16 deep", id="tables"),
        pytest.param(HEAD + "[services.a]\nb = " + "[" * 200_000, "this is no TOML", id="lists without an end"),
        pytest.param(HEAD + "#" * SIZE_MAX, "it has more than", id="large"),
        pytest.param(HEAD + f'[commands]\na = "{"a/" * 100}b.py"', "is no path in the package", id="a deep path"),
    ],
)
def test_a_manifest_that_costs_more_than_it_should(text: str, said: str) -> None:
    with pytest.raises(PackageError, match=said):
        parse_manifest(text)


def test_as_many_files_and_targets_as_there_may_be() -> None:
    """Each file was compared with each target once: that took minutes."""
    count = 8_000
    files = [PackedFile(f"{n}/f", False, b"") for n in range(count)]
    text = HEAD + "[files]\n" + "".join(f'"{n}" = "/srv/{n}"\n' for n in range(count))
    manifest = parse_manifest(text)
    check_files(manifest, files)
    assert {placed.path for placed in lay_out(manifest, files)} == {f"/srv/{n}/f" for n in range(count)}


def test_the_nearest_directory_that_is_named_says_where_a_file_goes() -> None:
    files = [PackedFile(path, False, b"") for path in ("a/b/c", "a/b/d/e", "a/f", "g")]
    manifest = parse_manifest(HEAD + '[files]\n"a" = "/srv/a"\n"a/b/d" = "/opt/d"\n"a/b/c" = "/etc/c"\n')
    check_files(manifest, files)
    assert {placed.source: placed.path for placed in lay_out(manifest, files)} == {
        "a/b/c": "/etc/c",
        "a/b/d/e": "/opt/d/e",
        "a/f": "/srv/a/f",
        "g": "/usr/local/lib/pkg/hello/g",
    }


@pytest.mark.parametrize(
    "text", ["1.1." + "1" * 4000 + "!", "v" * 4000 + "!", "= " * 2000 + "!", "1.1.1-" + "1a" * 2000 + "!"]
)
def test_a_range_is_read_in_a_moment(text: str) -> None:
    """A range of 4 KB took up to twelve seconds, and a catalog has thousands."""
    for number in range(30):
        assert parse_range(text[:-3] + str(number)) is None or number >= 0
