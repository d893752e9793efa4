"""git against a server: clone, fetch, pull and push over smart HTTP, through the sandbox's web files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import ExecResult, Network, Sandbox
from tests.net.servers import Authority, GitServer, HttpServer, Response, bodies

WHO = {
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.com",
}  # fmt: skip


@pytest.fixture
def server() -> Iterator[GitServer]:
    with GitServer() as made:
        made.commit({"a.txt": b"one\n", "dir/b.txt": b"two\n"}, "first")
        made.commit({"a.txt": b"three\n", "dir/b.txt": b"two\n"}, "second")
        made.commit({"only.txt": b"here\n"}, "aside", branch="side")
        yield made


@pytest.fixture
def sandbox(server: GitServer) -> Iterator[Sandbox]:
    with Sandbox(
        network=Network.allow(f"127.0.0.1:{server.port}"), env={**WHO, "URL": f"{server.url}/repo.git"}
    ) as made:
        yield made


def run(sandbox: Sandbox, script: str) -> str:
    result = sandbox.exec(script)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_clone(sandbox: Sandbox) -> None:
    result = sandbox.exec("git clone $URL && cd repo && git log --format=%s && cat a.txt dir/b.txt && git branch -a")
    assert result.stderr == "Cloning into 'repo'...\n"
    assert result.stdout == (
        "second\nfirst\nthree\ntwo\n"
        "* main\n  remotes/origin/HEAD -> origin/main\n  remotes/origin/main\n  remotes/origin/side\n"
    )
    assert (
        run(sandbox, "cd repo && git status -s && git checkout -q side && ls && git show main:a.txt")
        == "only.txt\nthree\n"
    )


def test_a_branch_a_depth_and_the_rest_later(sandbox: Sandbox) -> None:
    script = "git clone -q --depth 1 $URL r && cd r && git log --format=%s && wc -l < .git/shallow && git branch -r"
    assert run(sandbox, script) == "second\n1\n  origin/HEAD -> origin/main\n  origin/main\n"
    assert run(sandbox, "cd r && git fetch -q --unshallow && git log --format=%s; ls .git/shallow 2>&1 | wc -w") != ""
    assert run(sandbox, "cd r && git log --format=%s") == "second\nfirst\n"
    assert run(sandbox, "git clone -q -b side --single-branch $URL s && cd s && git log --format=%s") == "aside\n"


def test_many_objects_stay_a_pack(server: GitServer, sandbox: Sandbox) -> None:
    server.commit({f"f{n}.txt": f"{n}\n".encode() for n in range(300)}, "many")
    assert run(sandbox, "git clone -q $URL r && cd r && cat f299.txt && ls .git/objects/pack | sed 's/.*[.]//'") == (
        "299\nidx\npack\n"
    )
    assert run(sandbox, "cd r && git log --format=%s | head -n 1 && git status -s") == "many\n"


def test_fetch_and_pull(server: GitServer, sandbox: Sandbox) -> None:
    run(sandbox, "git clone -q $URL r")
    server.commit({"a.txt": b"four\n", "dir/b.txt": b"two\n"}, "third")
    result = sandbox.exec("cd r && git pull && cat a.txt")
    assert result.exit_code == 0, result.stderr
    assert f"From {server.url}/repo\n" in result.stderr
    assert "Fast-forward" in result.stdout
    assert result.stdout.endswith("four\n")
    assert (
        run(sandbox, "cd r && git fetch && git status | sed -n 2p") == "Your branch is up to date with 'origin/main'.\n"
    )


def test_push(server: GitServer, sandbox: Sandbox) -> None:
    run(sandbox, "git clone -q $URL r && cd r && echo new > new.txt && git add . && git commit -qm mine && git push -q")
    assert server.file("new.txt") == b"new\n"
    assert server.file("dir/b.txt") == b"two\n"
    result = sandbox.exec(
        "cd r && git checkout -qb topic && echo t > t && git add t && git commit -qm t && git push -u origin topic"
    )
    assert " * [new branch]      topic -> topic\n" in result.stderr
    assert server.file("t", "topic") == b"t\n"
    server.commit({"a.txt": b"theirs\n"}, "theirs")
    refused = sandbox.exec("cd r && git checkout -q main && echo x > x && git add x && git commit -qm x && git push")
    assert refused.exit_code == 1
    assert " ! [rejected]        main -> main (fetch first)\n" in refused.stderr
    assert server.file("a.txt") == b"theirs\n"
    run(sandbox, "cd r && git push -q origin --delete topic")
    assert server.tip("topic") is None


def test_ls_remote(server: GitServer, sandbox: Sandbox) -> None:
    tip, side = (server.tip() or b"").decode(), (server.tip("side") or b"").decode()
    assert run(sandbox, "git ls-remote $URL") == f"{tip}\tHEAD\n{tip}\trefs/heads/main\n{side}\trefs/heads/side\n"
    assert run(sandbox, "git ls-remote --heads $URL side") == f"{side}\trefs/heads/side\n"


def fails(result: ExecResult) -> str:
    assert result.exit_code == 128
    return result.stderr.removeprefix("Cloning into 'x'...\n")


def test_what_goes_wrong_is_said(server: GitServer, sandbox: Sandbox) -> None:
    base = server.url
    assert fails(sandbox.exec(f"git clone {base}/none.git x")).endswith(
        f"fatal: repository '{base}/none.git/' not found\n"
    )
    assert "x" not in run(sandbox, "ls")
    denied = fails(sandbox.exec("git clone http://127.0.0.1:1/r.git x"))
    assert denied.startswith("fatal: unable to access 'http://127.0.0.1:1/r.git/': ")
    assert "not open to this sandbox" in denied
    assert fails(sandbox.exec(f"git clone -b nope {base}/repo.git x")) == (
        "fatal: Remote branch nope not found in upstream origin\n"
    )


def test_credentials_stay_with_their_server() -> None:
    with GitServer(user="me", password="pw") as server, HttpServer({"/": bodies.echo}) as other:
        server.commit({"f": b"x\n"}, "one")
        server.routes["/moved.git/info/refs"] = bodies.redirect(
            f"{other.url}/moved.git/info/refs?service=git-upload-pack"
        )
        network = Network.allow(f"127.0.0.1:{server.port}", f"127.0.0.1:{other.port}")
        with Sandbox(network=network, env=WHO) as sandbox:
            place = server.authority
            asked = fails(sandbox.exec(f"git clone {server.url}/repo.git x"))
            assert asked == f"fatal: could not read Username for '{server.url}': No such device or address\n"
            wrong = fails(sandbox.exec(f"git clone http://me:no@{place}/repo.git x"))
            assert wrong == f"fatal: Authentication failed for '{server.url}/repo.git/'\n"
            run(sandbox, f"git clone -q http://me:pw@{place}/repo.git x && cat x/f")
            run(
                sandbox,
                f"printf 'http://me:pw@{place}\\n' > ~/.git-credentials && git config --global credential.helper store",
            )
            run(sandbox, f"git clone -q {server.url}/repo.git y && cat y/f")
            pushed = sandbox.exec("cd y && echo z > z && git add z && git commit -qm z && git push")
            assert pushed.exit_code == 0, pushed.stderr
            assert "pw" not in pushed.stderr
            sandbox.exec(f"git clone -q http://me:pw@{place}/moved.git z")
            assert other.requests
            assert all(request.header("authorization") is None for request in other.requests)


def test_over_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with GitServer(context=authority.context("git.test")) as server:
        server.commit({"f": b"sealed\n"}, "one")
        network = Network.allow(
            f"git.test:{server.port}", hosts={"git.test": "127.0.0.1"}, ca_bundle=str(authority.path)
        )
        with Sandbox(network=network) as sandbox:
            assert run(sandbox, f"git clone -q https://git.test:{server.port}/repo.git && cat repo/f") == "sealed\n"


@pytest.mark.parametrize(
    "answer",
    [
        Response(200, b"", {"Content-Type": "application/x-git-upload-pack-advertisement"}),
        Response(200, b"zzzz", {"Content-Type": "application/x-git-upload-pack-advertisement"}),
        Response(200, b"001e# service=git-upload-pack\n0000003d" + b"f" * 40 + b" ../../../etc/passwd\0\n0000",
                 {"Content-Type": "application/x-git-upload-pack-advertisement"}),
        Response(200, b"<html>", {"Content-Type": "text/html"}),
    ],
)  # fmt: skip
def test_a_server_that_is_none_ends_one_command(answer: Response) -> None:
    with HttpServer({"/": answer}) as server, Sandbox(network=Network.allow(f"127.0.0.1:{server.port}")) as sandbox:
        result = sandbox.exec(f"git clone {server.url}/repo.git x; ls -A /etc/passwd.lock 2>/dev/null; exit 7")
        assert result.exit_code == 7
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
