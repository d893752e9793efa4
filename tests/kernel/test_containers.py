"""An agent's session with `container` and `docker`, as documented: images, volumes, logs, ports, limits, names."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from belljar.abi.limits import Limits
from belljar.kernel.machine import virtual_machine
from belljar.worker.session import Session
from tests.adapter import new_session


@pytest.fixture
def session() -> Session:
    return new_session(machine=virtual_machine())


def run(session: Session, command: str, *, status: int | None = 0) -> str:
    result = session.exec(command)
    text = (result.stdout + result.stderr).decode()
    assert status is None or result.status == status, text
    return re.sub(r"\b[0-9a-f]{12}\b", "ID", text)


def inside(session: Session, script: str, options: str = "", *, status: int | None = 0) -> str:
    return run(session, f"sudo container run --rm {options} base bash -c {shlex.quote(script)}", status=status)


def test_a_container_has_its_own_of_everything(session: Session) -> None:
    run(session, "echo secret >/tmp/secret; (sleep 9999 &); nc -lk 7000 & sleep 0.1")
    shown = inside(session, "echo $$ $PPID; hostname; cat /etc/hostname; ls /tmp /proc | grep -c secret; id -un; pwd")
    assert shown == "2 1\nID\nID\n0\nroot\n/\n"
    assert (
        inside(session, "ps -eo pid,args")
        == "    PID COMMAND\n      1 init\n      2 bash -c ps -eo pid,args\n      3 ps -eo pid,args\n"
    )
    assert inside(session, "hostname; hostname -I", "-h box") == "box\n172.17.0.2 \n"
    assert inside(session, "ss -ltn | grep -c 7000; nc localhost 7000 </dev/null; echo $?", status=None).startswith(
        "0\n"
    )
    assert inside(session, "rm -rf /usr/share /home; echo gone >/etc/passwd; ls /usr") == "bin\nlib\nlocal\nsbin\n"
    assert inside(session, "head -1 /etc/passwd") == "root:x:0:0:root:/root:/bin/bash\n", "the image is never written"


def test_a_detached_one_outlives_the_command_that_started_it(session: Session) -> None:
    assert run(session, "sudo docker run -d --name web base bash -c 'while :; do echo tick; sleep 1; done'") == "ID\n"
    run(session, "sleep 3.5")
    table = run(session, "sudo docker ps")
    assert re.search(r"ID +base +\"bash -c .*Up [34] seconds +web\n", table)
    assert run(session, "sudo docker logs web") == "tick\n" * 4
    assert run(
        session, "sudo docker logs -n 1 web; sudo docker exec web hostname; sudo docker exec -w /tmp web pwd"
    ) == ("tick\nID\n/tmp\n")
    assert run(session, "echo in | sudo docker exec -i -e A=b web bash -c 'cat; echo $A'") == "in\nb\n"
    assert run(session, "sudo docker stop web; sudo docker ps -q; sudo docker wait web") == "web\n143\n"
    assert "Exited (143)" in run(session, "sudo docker ps -a")
    assert run(session, "sudo docker start web; sleep 1.5; sudo docker logs web | wc -l") == "web\n6\n"
    assert "is running: stop it first" in run(session, "sudo docker rm web", status=1)
    assert run(session, "sudo docker rm -f web; sudo docker ps -aq; ls /var/log/containers") == "web\n"
    assert "no such container" in run(session, "sudo docker logs web", status=125)


def test_its_files_stay_until_it_is_removed(session: Session) -> None:
    run(session, "sudo docker run --name a base bash -c 'echo kept >/root/f'; sudo docker start a; sudo docker wait a")
    assert run(
        session, "sudo docker create --name b base cat /root/f >/dev/null; sudo docker start b; sudo docker logs b"
    ) == ("b\ncat: /root/f: No such file or directory\n")
    assert "the name 'a' is in use" in run(session, "sudo docker run --name a base true", status=125)
    assert run(session, "sudo docker container prune; sudo docker ps -aq") == "b\na\n"


def test_output_status_and_standard_input(session: Session) -> None:
    assert inside(session, "echo out; echo err >&2; exit 7", status=7) == "out\nerr\n"
    assert run(session, "echo given | sudo docker run --rm -i base cat") == "given\n"
    assert run(session, "echo given | sudo docker run --rm base cat") == "", "without -i there is no input"
    assert inside(session, "kill -9 $$", status=137) == ""
    assert run(session, "sudo docker run --rm base nosuch", status=127) == "container: nosuch: command not found\n"
    assert (
        run(session, "sudo docker run --name x base echo kept; sudo docker logs x; sudo docker rm x")
        == "kept\nkept\nx\n"
    )
    assert inside(session, "sleep 100 & exec sleep 1") == "", "what is left ends with the first program"
    assert run(session, "ps -e | grep -c sleep", status=1) == "0\n"


def test_environment_directory_and_user(session: Session) -> None:
    options = "-e A=1 -e MINE -e NOT -w /srv/new -u agent --env-file /tmp/vars"
    run(session, "printf '# no\\nB=2 3\\n' >/tmp/vars")
    shown = run(
        session,
        f"MINE=m sudo -E docker run --rm {options} base bash -c 'echo $A $B $MINE ${{NOT-unset}}; pwd; id -un; echo ~'",
    )
    assert shown == "1 2 3 m unset\n/srv/new\nagent\n/home/agent\n"
    assert "there is no user 'nobody-there'" in run(session, "sudo docker run --rm -u nobody-there base id", status=125)
    assert inside(session, "id -u; id -g", "-u 1234:99") == "1234\n99\n"


def test_volumes(session: Session) -> None:
    run(session, "mkdir -p /workspace/d; echo one >/workspace/d/f; echo file >/workspace/only")
    assert inside(session, "cat /data/f; echo two >>/data/f; ls /data/..", "-v /workspace/d:/data").startswith("one\n")
    assert run(session, "cat d/f") == "one\ntwo\n"
    assert "Read-only file system" in inside(session, "echo x >/data/f", "-v ./d:/data:ro", status=1)
    assert inside(session, "cat /etc/only", "-v $PWD/only:/etc/only") == "file\n"
    inside(session, "echo kept >/v/f", "-v cache:/v")
    assert inside(session, "cat /v/f", "-v cache:/v:ro") == "kept\n"
    run(session, "ln -s /etc/hostname /workspace/d/link; ln -s ../.. /workspace/d/up")
    assert inside(session, "cat /data/link; ls /data/up | head -2", "-h box -v ./d:/data") == "box\nbin\ndata\n"
    for bad in ("x", "x:y", "/a:/", "/a:/b:maybe", "/nothing:/b"):
        assert run(session, f"sudo docker run --rm -v {bad} base true", status=125)


def test_volumes_by_mount(session: Session) -> None:
    run(session, "mkdir d; echo here >d/f")
    mount = "--mount type=bind,source=/workspace/d,target=/x"
    assert inside(session, "cat /x/f; echo more >/x/g", mount) == "here\n"
    assert "Read-only file system" in inside(session, "echo more >/x/g", f"{mount},readonly", status=1)
    assert inside(session, "echo kept >/v/a", "--mount src=v,dst=/v") == ""
    assert run(session, "cat d/g /var/lib/containers/volumes/v/a") == "more\nkept\n"
    for wrong in ("type=tmpfs,target=/x", "source=d", "type=bind,source=d,target=/x", "src=v,dst=/v,readonly=no", "x"):
        assert "--mount" in inside(session, "true", f"--mount {wrong}", status=125)


def test_top_and_port(session: Session) -> None:
    run(session, "sudo docker run -d --name a -p 8080:80 base bash -c 'sleep 99; true'")
    shown = run(session, "sudo docker top a; sudo docker port a")
    assert re.fullmatch(
        r"PID +COMMAND\n\d+ +init\n\d+ +bash -c 'sleep 99; true'\n\d+ +sleep 99\n80/tcp -> 127.0.0.1:8080\n", shown
    )
    assert (
        run(session, "sudo docker top a | awk '/sleep 99$/{print $1}' | xargs sudo kill; sudo docker wait a") == "0\n"
    )
    assert "one container that runs" in run(session, "sudo docker top a", status=125)


def test_ports_and_names(session: Session) -> None:
    serve = "while nc -l 80 < <(echo hello from $(hostname)) >/dev/null; do :; done"
    run(session, f"sudo docker run -d --name db -h dbhost base bash -c {shlex.quote(serve)}")
    run(session, f"sudo docker run -d --name web -h webhost -p 8080:80 -p 9090:80 base bash -c {shlex.quote(serve)}")
    run(session, "sleep 0.5")
    ask = "timeout 1 nc {} </dev/null; true"
    for where, says in (
        ("localhost 8080", "hello from webhost\n"),
        ("127.0.0.1 9090", "hello from webhost\n"),
        ("172.17.0.2 80", "hello from dbhost\n"),
        ("db 80", "hello from dbhost\n"),
        ("web 80", "hello from webhost\n"),
    ):
        assert run(session, ask.format(where)).startswith(says)
    assert (
        run(session, "sudo docker exec web bash -c 'timeout 1 nc db 80 </dev/null'", status=124)
        == "hello from dbhost\n"
    )
    assert "hello" not in run(session, "sudo docker exec web bash -c 'nc localhost 8080 </dev/null'", status=None)
    assert "hello" not in inside(session, "nc db 80 </dev/null", "--network none", status=None)
    assert "in use" in run(session, "sudo docker run --rm -p 8080:1 base true", status=125)
    run(session, "sudo docker rm -f web")
    assert "hello" not in run(session, ask.format("localhost 8080"))
    assert inside(session, "true", "-p 8080:1") == ""


def test_limits(session: Session) -> None:
    bomb = "f() { f | f & }; f; sleep 9"
    assert "reached its limit processes" in inside(session, bomb, "--pids 20", status=137)
    assert run(session, "echo alive") == "alive\n"
    for bad in (
        "--memory 1k",
        "--memory lots",
        "--pids x",
        "-p 0:1",
        "-p 1:2:3:4",
        "--network other",
        "--restart always",
    ):
        assert run(session, f"sudo docker run --rm {bad} base true", status=125).startswith("docker: ")


def test_an_exec_pays_for_what_it_waits_for() -> None:
    session = new_session(machine=virtual_machine(), limits=Limits(steps=200_000, wall_seconds=50))
    result = session.exec("sudo container run --rm base bash -c 'while :; do :; done'; echo no")
    assert (result.limit, result.stdout) == ("steps", b"")
    assert run(session, "ps -e | wc -l") == "5\n"
    result = session.exec("sudo container run --rm base sleep 9999; echo no")
    assert (result.limit, result.stdout) == ("wall_seconds", b"")
    run(session, "sudo container run -d --name long base sleep 9999")
    run(session, "sleep 49")
    run(session, "sleep 49")
    assert run(session, "sudo container ps -q") == "ID\n", "one in the background has no deadline"


def test_services_of_an_image_run_in_its_containers(session: Session) -> None:
    run(session, "mkdir -p /workspace/init; echo \"command = 'echo up; exec sleep 9999'\" >/workspace/init/web.toml")
    run(session, "sudo docker run -d --name a -v /workspace/init:/etc/init base sleep 9999")
    run(session, "sleep 1")
    assert run(session, "sudo docker exec a service list; sudo docker exec a service logs web; service list") == (
        "web  running (pid 3)\nup\n"
    )
    run(session, "sudo docker exec a kill -9 3; sleep 1")
    assert "restarted once" in run(session, "sudo docker exec a service list")
    run(session, "sudo docker rm -f a; sleep 5")
    assert run(session, "ps -e | grep -c sleep", status=1) == "0\n"


def test_containers_in_containers(session: Session) -> None:
    nested = (
        "container run --rm base bash -c 'echo $$; container ps -q';"
        "container run -d --name x base sleep 99 >/dev/null; container ps | tail -1"
    )
    assert re.search(r"^2\nID +base +\"sleep 99\" +Up .* x\n$", inside(session, nested))
    assert run(session, "sudo container ps -aq; ps -e | grep -c sleep", status=1) == "0\n"


def test_what_is_not_the_same_says_so(session: Session) -> None:
    for words in ("pull alpine", "build .", "push x", "compose up", "cp a b:c", "network ls", "volume ls", "login"):
        said = run(session, f"docker {words}", status=125)
        assert said.startswith(f"docker: {words.split()[0]}: not in here (docker is belljar's own): "), said
    assert (
        run(session, "docker run --rm base id", status=125)
        == "docker: it takes the sandbox's root: sudo docker run ...\n"
    )
    assert run(session, "sudo podman run --rm alpine id", status=125) == (
        "podman: no image 'alpine' in here, and none is pulled: there are base; the sandbox's owner adds others\n"
    )
    assert run(session, "docker --version") == "docker (belljar: containers of this sandbox, no Docker)\n"
    assert "did you mean exec?" in run(session, "sudo docker exce x ls", status=125)
    assert run(session, "sudo docker images") == "IMAGE   DIGEST\nbase    (built in)\n"


def test_inspect_is_json(session: Session) -> None:
    run(session, "sudo docker run -d --name a -e A=1 -v v:/v:ro -p 80:81 --memory 64m --pids 9 -u agent base sleep 99")
    (told,) = json.loads(session.exec("sudo docker inspect a").stdout)
    assert told["State"]["Status"] == "running"
    assert told["Mounts"] == [{"Source": "v", "Destination": "/v", "RW": False}]
    assert (told["Env"], told["Ports"], told["Memory"], told["PidsLimit"]) == (["A=1"], {"81": 80}, 64 << 20, 9)
    assert told["IPAddress"] == "172.17.0.2"


def test_there_are_not_endlessly_many(session: Session) -> None:
    made = run(session, "for i in $(seq 101); do sudo docker create base true; done 2>&1 | tail -1")
    assert made == "docker: there are too many containers: remove some (prune)\n"


_FILLED = "head -c 1000000 /dev/zero | tee /dev/shm/a >/root/b; mkdir /root/d; ln -s x /root/d/e; mkfifo /root/d/f"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(f"sudo docker run --rm base bash -c '{_FILLED}'", id="--rm"),
        pytest.param(f"sudo docker run --name a base bash -c '{_FILLED}'; sudo docker rm a", id="rm"),
        pytest.param(f"sudo docker run -d --rm base bash -c '{_FILLED}'; sleep 1", id="-d --rm"),
        pytest.param(
            f"sudo docker run -d --name a base bash -c '{_FILLED}; sleep 99'; sleep 1; sudo docker rm -f a", id="rm -f"
        ),
        pytest.param(
            f"timeout -s KILL 1 sudo docker run --rm base bash -c '{_FILLED}; sleep 99'",
            id="killed",
        ),
        pytest.param(
            f'sudo docker run --rm base bash -c \'docker run --name a base bash -c "{_FILLED}"; '
            f'docker run -d base bash -c "{_FILLED}; sleep 99"; sleep 1\'',
            id="nested",
        ),
    ],
)
def test_a_removed_containers_files_take_no_room_any_more(session: Session, command: str) -> None:
    run(session, "sudo docker run --rm base true; sudo mkdir -p /var/log/containers")
    quota = session.kernel.quota
    before = quota.bytes_used, quota.files_used
    run(session, command, status=None)
    run(session, "true")
    assert (quota.bytes_used, quota.files_used) == before


def test_shared_memory_is_empty_after_a_restart(session: Session) -> None:
    run(session, "sudo docker run --name a base bash -c 'ls /dev/shm; echo >/dev/shm/f'; sudo docker start a; sleep 1")
    assert run(session, "sudo docker logs a") == ""


def test_memory_limits_what_is_in_shared_memory_and_every_value(session: Session) -> None:
    shown = inside(session, "head -c 12000000 /dev/zero >/dev/shm/f; wc -c </dev/shm/f; echo $?", "--memory 8m")
    assert shown.startswith("head: ") or "No space left on device" in shown
    assert int(shown.split("\n")[-3]) <= 8 << 20
    assert "reached its limit expansion_bytes" in inside(
        session, "x=$(head -c 12000000 /dev/zero | tr '\\0' x); echo ${#x}", "--memory 8m", status=None
    )
    assert inside(session, "x=$(head -c 12000000 /dev/zero | tr '\\0' x); echo ${#x}") == "12000000\n"
    assert inside(session, "head -c 12000000 /dev/zero >/root/f; wc -c </root/f", "--memory 8m") == "12000000\n", (
        "files of its own are on the sandbox's disk"
    )


@pytest.mark.parametrize(
    "command",
    [
        "docker run -u {n} base true",
        "docker run -u 1:{n} base true",
        "docker run --pids {n} base true",
        "docker run -p {n}:80 base true",
        "docker run --memory {n} base true",
        "docker kill -s {n} a",
        "docker stop -t {n} a",
        "docker logs -n {n} a",
        "systemctl kill -s {n} a 2>&1 | sed 's/^/docker: /' >&2; exit 1",
        "journalctl -n {n} 2>&1 | sed 's/^/docker: /' >&2; exit 1",
        "echo x:x:{n}:1::/: >>/etc/passwd; docker run -v /etc/passwd:/etc/passwd -u x base true",
    ],
)
def test_numbers_of_any_length_are_a_mistake_of_the_user(session: Session, command: str) -> None:
    run(session, "sudo docker create --name a base true")
    result = session.exec(["sudo", "bash", "-c", command.format(n="9" * 5000)])
    assert result.status in (1, 125)
    assert result.stderr.startswith(b"docker: ")
