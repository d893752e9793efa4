"""An interactive bash on a terminal: job control, line editing, completion and history, as a person meets them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

import pytest

from belljar import Sandbox
from belljar.api.process import Terminal

WAIT = 60.0
"""Seconds until a test gives up; what is waited for comes at once."""
PROMPT = "P> "
ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\r\a]")


class Person:
    """Types at a terminal and looks at what it shows."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.shown = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end within a character

    def wait(self, text: str) -> str:
        """Everything shown up to and including some text, without escape sequences."""
        while text not in ESCAPES.sub("", self.shown):
            data = self.terminal.read(timeout=WAIT)
            assert data, f"never saw {text!r}, only {self.shown!r}"
            self.shown += self._decoder.decode(data)
        seen = ESCAPES.sub("", self.shown)
        end = seen.index(text) + len(text)
        self.shown = seen[end:]
        return seen[:end]

    def run(self, keys: str) -> str:
        """Type, press Enter, and give what is shown until the next prompt."""
        self.terminal.write(keys + "\r")
        self.wait("\n")
        return self.wait(PROMPT).removesuffix(PROMPT)

    def press(self, keys: str) -> None:
        self.terminal.write(keys)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(files={"/data/alpha one.txt": "1", "/data/beta/x": "2", "/data/bet.txt": "3"}) as sandbox:
        yield sandbox


@pytest.fixture
def person(sandbox: Sandbox) -> Iterator[Person]:
    terminal = sandbox.pty(["bash", "-i"], env={"PS1": PROMPT, "HISTFILE": ""}, rows=24, cols=80)
    person = Person(terminal)
    person.wait(PROMPT)
    yield person
    terminal.kill("KILL")


def test_interrupt_ends_the_command_not_the_shell(person: Person) -> None:
    person.press("sleep 100; echo never\r")
    person.wait("\n")
    person.press("\x03")
    assert "never" not in person.wait(PROMPT)
    assert person.run("echo $?") == "130\n"


def test_interrupt_ends_a_loop_of_builtins(person: Person) -> None:
    person.press("while :; do :; done\r")
    person.wait("\n")
    person.press("\x03")
    person.wait(PROMPT)
    assert person.run("echo $?") == "130\n"


def test_interrupt_ends_a_loop_of_programs(person: Person) -> None:
    person.press("for i in 1 2; do sleep 50; echo went on; done\r")
    person.wait("\n")
    person.press("\x03")
    assert "went on" not in person.wait(PROMPT)


def test_interrupt_ends_a_substitution(person: Person) -> None:
    person.press("echo got $(sleep 100)\r")
    person.wait("\n")
    person.press("\x03")
    assert "got" not in person.wait(PROMPT)


@pytest.mark.parametrize("command", ["wait", "read x; echo went on", "cat"])
def test_interrupt_ends_what_waits(person: Person, command: str) -> None:
    person.run("sleep 100 &")
    person.press(command + "\r")
    person.wait("\n")
    person.press("\x03")
    assert "went on" not in person.wait(PROMPT)
    assert person.run("echo $?") == "130\n"


def test_interrupt_at_the_prompt_forgets_the_line(person: Person) -> None:
    person.press("echo unwanted")
    person.wait("unwanted")
    person.press("\x03")
    assert person.wait(PROMPT) == f"^C\n{PROMPT}"
    assert person.run("echo $?") == "130\n"


def test_interrupt_within_a_command_over_lines(person: Person) -> None:
    person.press("for i in 1 2\r")
    person.wait("> ")
    person.press("\x03")
    person.wait(PROMPT)
    assert person.run("echo fine") == "fine\n"


def test_a_trap_on_interrupt_runs(person: Person) -> None:
    person.run("trap 'echo trapped' INT")
    person.press("\x03")
    assert "trapped" in person.wait(PROMPT)


def test_stop_and_continue(person: Person) -> None:
    person.press("sleep 100\r")
    person.wait("\n")
    person.press("\x1a")
    assert person.wait(PROMPT) == f"^Z\n[1]+  Stopped                 sleep 100\n{PROMPT}"
    assert person.run("echo $?") == "148\n"
    assert person.run("jobs") == "[1]+  Stopped                 sleep 100\n"
    assert person.run("bg") == "[1]+ sleep 100 &\n"
    assert person.run("jobs") == "[1]+  Running                 sleep 100 &\n"
    person.press("fg\r")
    person.wait("sleep 100\n")
    person.press("\x03")
    person.wait(PROMPT)
    assert person.run("jobs") == ""


def test_a_stopped_pipeline_is_one_job(person: Person) -> None:
    person.press("sleep 100 | cat\r")
    person.wait("\n")
    person.press("\x1a")
    assert person.wait(PROMPT) == f"^Z\n[1]+  Stopped                 sleep 100 | cat\n{PROMPT}"
    assert person.run("echo ${PIPESTATUS[@]}") == "148 148\n"
    assert person.run("jobs") == "[1]+  Stopped                 sleep 100 | cat\n"
    person.press("fg\r")
    person.wait("sleep 100 | cat\n")
    person.press("\x03")
    person.wait(PROMPT)


def test_stopped_jobs_hold_the_shell_back_once(person: Person) -> None:
    person.press("sleep 100\r")
    person.wait("\n")
    person.press("\x1a")
    person.wait(PROMPT)
    assert person.run("exit") == "exit\nThere are stopped jobs.\n"
    person.press("exit\r")
    assert person.terminal.wait(WAIT) == 1


def test_programs_read_the_terminal(person: Person) -> None:
    person.press("cat\r")
    person.wait("\n")
    person.press("typed\r")
    person.wait("typed\ntyped\n")
    person.press("\x04")
    person.wait(PROMPT)


def test_a_background_reader_is_stopped(person: Person) -> None:
    # It may be stopped before the shell's next prompt, or only after.
    assert "[1]+  Stopped                 cat" in person.run("cat &") + person.run("sleep 0.5")
    person.run("kill -9 %1")


def test_what_stopped_a_job_is_told(person: Person) -> None:
    assert person.run("bash -c 'kill -STOP $$'; echo $?").endswith("147\n")
    told = "[1]+ N Stopped (signal)        bash -c 'kill -STOP $$'\n"
    assert person.run("jobs -l | sed 's/ *[0-9]* St/ N St/'") == told
    person.run("kill -9 %1")


def test_a_job_is_stopped_when_all_of_it_is(person: Person) -> None:
    person.press("sleep 100 | cat\r")
    person.wait("\n")
    person.press("\x1a")
    person.wait(PROMPT)
    assert person.run("kill -CONT $(jobs -p); jobs") == "[1]+  Running                 sleep 100 | cat\n"
    assert person.run("kill -STOP $(jobs -p); jobs") == "[1]+  Stopped                 sleep 100 | cat\n"
    person.run("kill -9 %1")


def test_ps_shows_who_has_the_terminal(person: Person) -> None:
    shell, me = [line.split() for line in person.run("ps -o stat,pgid,tpgid,comm").splitlines()[-2:]]
    assert (shell[0], me[0]) == ("Ss", "R+")
    assert shell[1] != shell[2] == me[1] == me[2]


def test_settings_of_a_killed_program_are_undone(person: Person) -> None:
    person.run("(stty -echo; kill -KILL $BASHPID)")
    assert " echo " in person.run("stty -a").replace("\n", " ")


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("cho one\x01e", "one"),
        ("echo onetwo\x1b[D\x1b[D\x1b[D ", "one two"),
        ("echo one two\x17three", "one three"),
        ("echo one two\x1bb\x0b\x19\x19", "one twotwo"),
        ("xx\x15echo kept", "kept"),
        ("echo abc\x1b[H\x1b[F!", "abc!"),
        ("echo abd\x14", "adb"),
        ("echo one\x1bb\x1bu", "ONE"),
        ("echo one two\x17\x1f", "one two"),
        ("echo \x16\x01", "\x01"),
        ("echo h\u00e9\u65e5\u672c\x7f\x1b[D\x7f", "h\u65e5"),
        ("echo e\u0301x\x7f\x7f.", "."),
        ("echo abc\x1b[3~\x1b[D\x1b[3~", "ab"),
        ("echo \x1b5a", "aaaaa"),
        ("echo unknown\x1b[99;99~ keys", "unknown keys"),
        ("\x1b[200~echo pasted\x1b[201~", "pasted"),
    ],
)
def test_editing(person: Person, keys: str, line: str) -> None:
    assert person.run(keys) == line + "\n"


def test_pasted_lines_wait_for_enter(person: Person) -> None:
    person.press("\x1b[200~echo 1\recho 2\x1b[201~")
    assert person.run("").endswith("1\n2\n")


def test_lines_typed_ahead_run_in_turn(person: Person) -> None:
    person.press("echo a\recho b\r")
    person.wait("a\n" + PROMPT)
    person.wait("b\n" + PROMPT)


def test_history(person: Person) -> None:
    person.run("echo first")
    person.run("echo second")
    assert person.run("\x1b[A\x1b[A") == "first\n"
    assert person.run("\x10\x10\x0e") == "first\n"
    assert person.run("!!") == "echo first\nfirst\n"
    assert person.run("\x12seco") == "second\n"
    assert person.run("echo \x1b.") == "second\n"
    assert person.run("\x12nosuch\x07echo aborted") == "aborted\n"


def test_a_command_over_lines_comes_back_as_one(person: Person) -> None:
    person.press("for i in 1 2\r")
    person.wait("> ")
    person.press("do echo $i; done\r")
    person.wait("1\n2\n")
    person.wait(PROMPT)
    person.press("\x1b[A")
    person.wait("for i in 1 2; do echo $i; done")


def test_a_loop_typed_line_by_line_comes_back_as_one(person: Person) -> None:
    person.press("for i in 1 2; do\r")
    person.wait("> ")
    person.press("echo got $i\r")
    person.wait("> ")
    person.press("done\r")
    person.wait("got 1\ngot 2\n")
    person.wait(PROMPT)
    assert person.run("\x1b[A") == "got 1\ngot 2\n"


def test_waiting_tells_how_a_job_ended(person: Person) -> None:
    shown = person.run("(exit 4) & wait %1; echo status $?")
    assert "[1]+  Exit 4                  ( exit 4 )\nstatus 4\n" in shown


def test_a_job_by_its_number_is_a_command(person: Person) -> None:
    person.run("sleep 100 &")
    person.press("%1\r")
    person.wait("sleep 100\n")
    person.press("\x1a")
    assert "[1]+  Stopped                 sleep 100" in person.wait(PROMPT)
    assert "[1]+ sleep 100 &" in person.run("%1 &")
    assert "Terminated" in person.run("kill %1") + person.run("wait")


def test_tab_lists_only_when_it_has_nothing_to_put_in(person: Person) -> None:
    person.press("cat /data/be\t")
    person.wait("/data/bet")
    person.press("\t\x01: \r")
    assert "bet.txt" not in person.wait(PROMPT)
    person.press("echo $HOSTN\t$HOST\t\t")
    person.wait("$HOSTNAME  $HOSTTYPE")
    person.press("\x15")


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        ("cat /data/al\t", "cat /data/alpha\\ one.txt "),
        ("cat '/data/al\t", "cat '/data/alpha one.txt' "),
        ("cat /data/bet\t", "cat /data/bet"),
        ("cd /data/beta\t", "cd /data/beta/"),
        ("sha256\t", "sha256sum "),
        ("echo $PIPEST\t", "echo $PIPESTATUS "),
        ("true; readli\t", "true; readlink "),
        ("x=/data/beta/\t", "x=/data/beta/x "),
    ],
)
def test_completion(person: Person, keys: str, shown: str) -> None:
    person.press(keys + "|")
    person.wait(shown + "|")


def test_completions_are_listed(person: Person) -> None:
    person.press("cat /data/be\t")
    person.wait("/data/bet")
    person.press("\t\t")
    person.wait("bet.txt  beta\n" + PROMPT + "cat /data/bet")


def test_programmed_completion(person: Person) -> None:
    person.run("complete -W 'start stop status' service")
    person.press("service sto\t|")
    person.wait("service stop |")


def test_the_end_of_input_ends_the_shell(person: Person) -> None:
    person.press("\x04")
    person.wait("exit\n")
    assert person.terminal.wait(WAIT) == 0


def test_a_resized_window_is_noticed(person: Person) -> None:
    person.terminal.resize(30, 40)
    assert person.run("echo $LINES $COLUMNS") in ("30 40\n", "24 80\n")
    assert person.run("echo $LINES $COLUMNS") == "30 40\n"


def test_a_dumb_terminal_is_not_edited(sandbox: Sandbox) -> None:
    terminal = sandbox.pty(["bash", "-i"], env={"PS1": PROMPT, "HISTFILE": "", "TERM": "dumb"})
    person = Person(terminal)
    assert person.wait(PROMPT) == PROMPT
    assert person.run("echo plain") == "plain\n"
    terminal.kill("KILL")


@pytest.mark.parametrize(
    ("command", "shown", "code"),
    [
        pytest.param("bash clean.sh; echo after", ["cleaned", "after"], 0, id="the child lives on"),
        pytest.param("true | bash clean.sh; echo after", ["cleaned", "after"], 0, id="so does a pipeline"),
        pytest.param("bash plain.sh; echo after", [], 130, id="it ends the child"),
    ],
)
def test_a_script_waits_for_what_its_child_does_about_an_interrupt(
    sandbox: Sandbox, command: str, shown: list[str], code: int
) -> None:
    sandbox.files.write("clean.sh", "trap 'sleep 0.2; echo cleaned; exit 0' INT\necho up\nsleep 60 & wait\n")
    sandbox.files.write("plain.sh", "echo up; sleep 60")
    terminal = sandbox.pty(["bash", "-c", command])
    person = Person(terminal)
    person.wait("up\n")
    person.press("\x03")
    for text in shown:
        person.wait(f"{text}\n")
    assert terminal.wait(WAIT) == code


def test_an_interrupt_that_no_child_died_of_is_forgotten(sandbox: Sandbox) -> None:
    assert sandbox.exec(["bash", "-c", "sh -c 'kill -INT $PPID'; echo after"]).stdout == "after\n"
    assert sandbox.exec(["bash", "-c", "sh -c 'kill -INT $$'; echo $?"]).stdout == "130\n"


def test_top_ends_by_a_key(person: Person) -> None:
    person.press("top -d 100\r")
    person.wait("COMMAND")
    person.press("x")
    person.wait("COMMAND")
    person.press("q")
    person.wait(PROMPT)
    assert person.run("stty -a | grep -o ' -icanon'; echo done") == "done\n"
