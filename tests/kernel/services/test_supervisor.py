"""init on virtual time: order, readiness, restarts with back-off, logs, and that every boot is the same."""

from __future__ import annotations

import os
import random
import re

import pytest

from belljar.kernel.machine import virtual_machine
from belljar.kernel.services.log import LOG_MAX, Log, read_log
from belljar.kernel.vfs.view import View
from belljar.worker.session import Session
from tests.adapter import new_session

WHOLE = bool(os.environ.get("BELLJAR_WHOLE"))


def booted(units: dict[str, str], *, files: dict[str, str] | None = None) -> Session:
    session = new_session(machine=virtual_machine())
    init = session.kernel.init
    for name, text in units.items():
        init.write_file(f"/etc/init/{name}.toml", text.encode())
    for path, text in (files or {}).items():
        init.write_file(path, text.encode(), 0o755)
    session.kernel.hub.spawn(session.services.boot)
    return session


def run(session: Session, command: str) -> str:
    result = session.exec(command)
    return re.sub(r"pid \d+", "pid N", (result.stdout + result.stderr).decode())


def states(session: Session) -> dict[str, str]:
    return {each.name: each.state for each in session.services.list()}


def init_log(session: Session) -> list[str]:
    text = read_log(session.kernel.init.fs, "/var/log/init.log").decode()
    return [re.sub(r"^\S+ |, pid \d+", "", line) for line in text.splitlines()]


def test_services_start_in_order_when_what_they_need_is_ready() -> None:
    session = booted(
        {
            "app": 'command = "echo app; exec sleep 9999"\nneeds = ["db", "setup"]',
            "db": 'command = "sleep 3; touch /tmp/db; exec sleep 9999"\nready = "file:/tmp/db"',
            "setup": 'command = "sleep 1; echo set up"\nneeds = ["db"]\nready = "done"',
            "alone": 'command = "exec sleep 9999"',
            "off": 'command = "exec sleep 9999"\nenabled = false',
        }
    )
    run(session, "sleep 2")  # the sandbox can be used meanwhile
    assert states(session) == {
        "alone": "running", "app": "waiting", "db": "starting", "setup": "waiting", "off": "stopped"
    }  # fmt: skip
    assert run(session, "service status app db; echo $?") == (
        "app: waiting (for db)\ndb: running (pid N), not ready yet\n3\n"
    )
    run(session, "sleep 9")
    assert states(session) == {
        "alone": "running", "app": "running", "db": "running", "setup": "done", "off": "stopped"
    }  # fmt: skip
    assert init_log(session) == [
        "alone: started", "db: started", "db: ready", "setup: started", "setup: exit code 0", "app: started",
    ]  # fmt: skip
    assert run(session, "service logs setup; service status app; journalctl -u setup.service -n 1") == (
        "set up\napp: running (pid N)\nset up\n"
    ), run(session, "ps -ef")


def test_readiness_by_a_port_and_by_a_command() -> None:
    session = booted(
        {
            "web": 'command = "sleep 2; exec nc -lk 8000"\nready = "port:8000"',
            "probed": 'command = "sleep 2; touch /tmp/up; exec sleep 9999"\nready = "command:test -e /tmp/up"',
            "never": 'command = "exec sleep 9999"\nready = "port:9"\nready_seconds = 3\nrestart = "never"',
        }
    )
    run(session, "sleep 1")
    assert set(states(session).values()) == {"starting"}
    assert run(session, "service wait web probed; service wait never; echo $?") == (
        "3\nservice: never: failed (not ready (port:9) after 3 s)\n"
    )
    assert states(session) == {"web": "running", "probed": "running", "never": "failed"}
    assert "sleep 9999" not in run(session, "ps -ef | grep -v probed | grep -v /tmp/up | grep -v grep | grep never")


def test_a_service_that_fails_is_started_again_after_growing_pauses() -> None:
    session = booted(
        {
            "bad": 'command = "echo once more; exit 7"',
            "good": 'command = "exit 0"',
            "always": 'command = "exit 0"\nrestart = "always"',
            "once": 'command = "exit 7"\nrestart = "never"',
            "missing": 'command = ["/no/such"]\nrestart = "never"',
        }
    )
    run(session, "sleep 13")
    assert states(session) == {
        "always": "restarting", "bad": "restarting", "good": "done", "missing": "failed", "once": "failed"
    }  # fmt: skip
    pauses = [line.rpartition(" again in ")[2] for line in init_log(session) if line.startswith("bad: exit")]
    assert pauses == ["0.1 s", "0.2 s", "0.4 s", "0.8 s", "1.6 s", "3.2 s", "6.4 s", "12.8 s"]
    assert run(session, "service logs bad | uniq -c") == "      8 once more\n"
    assert run(session, "service logs missing") == "init: /no/such: No such file or directory\n"
    run(session, "sleep 200")
    assert run(session, "grep -c '30 s' /var/log/init.log") != "0\n", "the pause has a longest"
    assert run(session, "service stop bad; service status bad; sleep 100; service status bad") == (
        "bad: stopped\nbad: stopped\n"
    )


def test_thirty_kills_at_random() -> None:
    """A service that is killed is started again by its policy, after its pause, and its log has every line."""
    session = booted(
        {
            "steady": 'command = "n=$(cat /tmp/n 2>/dev/null); echo $((n+1)) | tee /tmp/n; exec sleep 9999"',
            "bystander": 'command = "exec sleep 99999"',
            "once": 'command = "exec sleep 9999"\nrestart = "never"',
        }
    )
    rng = random.Random(7)
    kills = 0
    while kills < 30:
        run(session, f"sleep {rng.choice((0.05, 1, 12))}")
        pid = session.services.status("steady").pid
        kills += bool(pid)
        run(session, f"sudo kill -9 {pid or session.services.status('once').pid or ''}")
    run(session, "sleep 60")
    assert states(session) == {"bystander": "running", "once": "failed", "steady": "running"}
    log = init_log(session)
    assert log.count("steady: started") == kills + 1
    assert run(session, "service logs steady").split() == [str(n + 1) for n in range(kills + 1)]
    delay = 0.1
    times = re.findall(r"again in (\S+) s", "\n".join(line for line in log if line.startswith("steady")))
    for said in map(float, times):
        assert said in (0.1, delay), "held back for less than the policy says"
        delay = min(2 * said, 30)
    assert not any(line.startswith("bystander: exit") for line in log)


def test_what_a_service_leaves_behind_ends_with_it() -> None:
    session = booted({"a": 'command = "sleep 7777 & (setsid sleep 8888 &) ; exit 1"\nrestart = "never"'})
    run(session, "sleep 1")
    assert run(session, "ps -ef | grep '[7]777\\|[8]888'; echo $?") == "1\n"


def test_stopping_asks_first_and_then_kills() -> None:
    session = booted(
        {
            "polite": "command = '''trap 'echo bye; exit 0' TERM; sleep 9999 & wait'''",
            "deaf": "command = '''trap '' TERM; while :; do sleep 1; done'''\nstop_seconds = 2",
        }
    )
    run(session, "sleep 1")
    assert run(session, "service stop polite; service logs polite; service stop deaf; service list") == (
        "bye\ndeaf    stopped\npolite  stopped\n"
    )
    assert "deaf: did not end in time: killed" in init_log(session)


def test_shutdown_stops_each_before_what_it_needs() -> None:
    session = booted(
        {
            "db": "command = '''trap 'echo db >>/tmp/o; exit' TERM; sleep 9999 & wait'''",
            "app": "command = '''trap 'sleep 1; echo app >>/tmp/o; exit' TERM; sleep 9999 & wait'''\nneeds = ['db']",
        }
    )
    run(session, "sleep 1")
    ended: list[int] = []
    session.kernel.hub.spawn(lambda: ended.append(session.services.shutdown(10)))
    session.kernel.hub.run(lambda: bool(ended))
    assert (ended, run(session, "cat /tmp/o; ps -e | wc -l")) == ([2], "app\ndb\n5\n")


def test_what_can_not_be_started_says_why() -> None:
    session = booted(
        {
            "a": "command = 'x'\nneeds = ['b']",
            "b": "command = 'x'\nneeds = ['a']",
            "c": "command = 'x'\nneeds = ['nothing']",
            "d": "comand = 'x'",
            "e": "command = 'x'\nuser = 'nobody-there'",
            "f": "command = 'x'\ncwd = '/no/such'",
            "g": "command = 'sleep 1'\nneeds = ['h']",
            "h": "command = 'exit 3'\nrestart = 'never'\nready = 'done'",
        }
    )
    run(session, "sleep 5")
    assert run(session, "service list") == (
        "a  failed (needs go round in a circle: a -> b -> a)\n"
        "b  failed (needs go round in a circle: a -> b -> a)\n"
        "c  failed (it needs nothing: there is no such service)\n"
        "d  failed (/etc/init/d.toml: 'comand' is no key of a service: did you mean 'command'?)\n"
        "e  failed (there is no user 'nobody-there')\n"
        "f  failed (No such file or directory)\n"
        "g  failed (it needs h, which is failed)\n"
        "h  failed (exit code 3)\n"
    )
    assert run(session, "service start zz; echo $?; service start d; echo $?; service frob a; echo $?") == (
        "4\n1\n1\nservice: zz: no such service\n"
        "service: d: /etc/init/d.toml: 'comand' is no key of a service: did you mean 'command'?\n"
        "service: frob: no such command\nTry 'service --help' for more information.\n"
    )


def test_a_service_runs_as_its_user_in_its_directory_with_its_environment() -> None:
    session = booted(
        {
            "mine": "command = 'id -un; pwd; echo $HOME $A $PATH'\ncwd = '/tmp'\nenv = {A = 'b c'}",
            "roots": "command = 'id -un; echo $HOME $USER'\nuser = 'root'",
        }
    )
    run(session, "sleep 1")
    shown = run(session, "service logs mine; service logs roots")
    assert shown == f"agent\n/tmp\n/home/agent b c {session.env['PATH']}\nroot\n/root root\n"


def test_a_changed_file_counts_when_the_service_is_restarted() -> None:
    session = booted({"a": "command = 'echo one; exec sleep 9999'"})
    run(session, "sleep 1; echo \"command = 'echo two; exec sleep 9999'\" | sudo tee /etc/init/a.toml")
    assert run(session, "service restart a; sleep 1; service logs a; service status a") == (
        "one\ntwo\na: running (pid N)\n"
    )
    run(session, "echo nonsense | sudo tee /etc/init/a.toml")
    assert "/etc/init/a.toml: this is no TOML: Expected" in run(session, "service restart a")
    assert states(session) == {"a": "running"}, "a mistake in the file does not stop what runs"


def test_systemctl_has_the_common_verbs() -> None:
    session = booted({"web": "command = 'echo up; exec sleep 9999'\ndescription = 'the page'"})
    run(session, "sleep 1")
    assert run(session, "systemctl is-active web.service nothing; echo $?") == "active\ninactive\n3\n"
    status = run(session, "systemctl status web")
    assert status.startswith("● web.service - the page\n")
    assert "Active: active (running (pid N)) for 1s" in status
    assert status.endswith("\nup\n")
    assert run(session, "sudo systemctl disable --now web; systemctl is-enabled web; systemctl is-active web") == (
        "disabled\ninactive\n"
    )
    assert run(session, "sudo systemctl enable web; systemctl cat web; systemctl daemon-reload") == (
        "# /etc/init/web.toml\nenabled = true\ncommand = 'echo up; exec sleep 9999'\ndescription = 'the page'"
    )
    assert "1 loaded units listed" in run(session, "systemctl list-units --type=service --no-pager")
    assert "There is no systemd here" in run(session, "systemctl hibernate")


def test_a_log_is_set_aside_when_it_is_full() -> None:
    session = booted({})
    view: View = session.kernel.init.fs
    log = Log(view, "/var/log/x.log")
    lines = [b"%06d %s\n" % (number, b"x" * 1000) for number in range(4 * LOG_MAX // 1008)]
    for line in lines:
        log.write(line)
    assert sorted(entry.name for entry in view.readdir("/var/log") if entry.name.startswith("x")) == [
        "x.log", "x.log.1", "x.log.2"
    ]  # fmt: skip
    kept = read_log(view, "/var/log/x.log").splitlines(keepends=True)
    assert kept == lines[-len(kept) :]
    assert 2 * LOG_MAX < sum(map(len, kept)) < 3 * LOG_MAX + 2000
    assert read_log(view, "/var/log/x.log", 3) == b"".join(lines[-3:])
    session.kernel.quota.bytes_limit = session.kernel.quota.bytes_used
    log.write(b"no room\n")
    assert log.lost == 8
    session.kernel.quota.bytes_limit += 1 << 20
    log.write(b"room\n")
    assert read_log(view, "/var/log/x.log", 2) == b"[8 bytes of this log were lost: no room]\nroom\n"


BOOT = {
    "db": 'command = "sleep 0.2; echo $RANDOM >/tmp/db; exec sleep 9999"\nready = "file:/tmp/db"',
    "web": 'command = "exec nc -lk 8000"\nready = "port:8000"\nneeds = ["db"]',
    "flaky": 'command = "echo $RANDOM; exit 1"\nneeds = ["web"]',
    "job": 'command = "date; mktemp; exit 0"\nneeds = ["db"]',
}


def boot_once() -> tuple[str, str]:
    session = booted(BOOT)
    table = run(session, "sleep 5; ps -eo pid,ppid,user,stat,args")
    listed = run(session, "sudo find / -xdev -type f -newermt 2026-01-01 -printf '%p %m %u %s %t\\n' | sort")
    tree = listed + run(session, "md5sum /var/log/* /tmp/*")
    return table, tree


@pytest.mark.slow
def test_every_boot_is_the_same() -> None:
    """One process table and one file tree, however often: 1,000 boots in the whole run, some in the ordinary one."""
    first = boot_once()
    assert "nc -lk 8000" in first[0]
    assert "/var/log/flaky.log" in first[1]
    for _ in range(1000 if WHOLE else 100):
        assert boot_once() == first
