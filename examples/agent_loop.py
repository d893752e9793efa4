"""The shape of an agent: a model proposes commands, the sandbox runs them, the results go back."""

from collections.abc import Generator

from belljar import ExecResult, Sandbox


def model(goal: str) -> Generator[str, ExecResult, None]:
    """Stands in for a language model: yields commands and is sent their results."""
    result = yield "ls"
    assert "report.csv" in result.stdout
    result = yield "awk -F, 'NR > 1 {sum += $2} END {print sum}' report.csv"
    yield f"notify --text '{goal}: {result.stdout.strip()}'"


def notify(text: str) -> str:
    """Tell the person who asked."""
    print(f"  [notified] {text}")
    return "sent"


with Sandbox(files={"/workspace/report.csv": "item,amount\nbell,3\njar,4\n"}, tools={"notify": notify}) as sandbox:
    agent = model("total amount")
    command = next(agent)
    while True:
        outcome = sandbox.exec(command, timeout=10)
        print(f"$ {command}\n{outcome.stdout}{outcome.stderr}", end="")
        try:
            command = agent.send(outcome)
        except StopIteration:
            break
