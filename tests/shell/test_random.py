"""$RANDOM: nobody can foretell it who has not set it."""

from belljar.engines.worker.programs import find, names
from belljar.kernel.machine_host import host_machine
from belljar.worker.session import Session


def draw(session: Session, script: str) -> list[str]:
    return session.exec(script).stdout.decode().split()


def test_every_shell_draws_its_own_numbers() -> None:
    session = Session(host_machine(), programs=find, names=names())
    script = "echo $RANDOM$RANDOM$RANDOM; (echo $RANDOM$RANDOM$RANDOM); x=$(echo $RANDOM$RANDOM$RANDOM); echo $x"
    drawn = draw(session, script) + draw(session, script)
    assert len(set(drawn)) == len(drawn) == 6


def test_subshells_of_a_shell_that_drew_draw_others() -> None:
    session = Session(host_machine(), programs=find, names=names())
    drawn = draw(session, "x=$RANDOM; for i in 1 2 3; do (echo $RANDOM$RANDOM$RANDOM); done; echo $RANDOM-$RANDOM")
    assert len(set(drawn)) == 4


def test_a_seed_decides() -> None:
    session = Session(host_machine(), programs=find, names=names())
    assert draw(session, "RANDOM=5; echo $RANDOM $RANDOM") == ["18498", "29338"]
