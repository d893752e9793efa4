"""A LangChain agent whose model writes programs: they repair a repository, and call one of the agent's own tools.

The model is scripted: no key is needed. In a checkout of belljar: pip install '.[langchain,python]'
"""

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from repository import BEGIN, DIFF, RIGHT, TASK, TEST, WRONG, overlay, repository
from scripted_langchain import Scripted, call

from belljar import Sandbox
from belljar.integrations.langchain import ReplMiddleware


def owner(file: str) -> str:
    """Who looks after a file."""
    return {"stats.py": "Ada", "test_stats.py": "Grace"}[file]


LOOK = f"""
import os, subprocess
def tests(): return subprocess.run({TEST!r}, shell=True, capture_output=True, text=True).stdout
owners = {{file: tools.owner(file=file) for file in os.listdir("/work") if file.endswith(".py")}}
tests(), owners
"""
REPAIR = f"""
code = open("/work/stats.py").read()
open("/work/stats.py", "w").write(code.replace({WRONG!r}, {RIGHT!r}))
tests(), owners["stats.py"]
"""

with repository() as directory, Sandbox(mounts=overlay(directory)) as sandbox:
    sandbox.exec(BEGIN).check()
    checkpoints = InMemorySaver()
    thread = {"configurable": {"thread_id": "1"}}

    def turn(text: str, *script: AIMessage) -> None:
        """One turn of the conversation, as a process of its own would do it: variables come from the checkpoints."""
        repl = ReplMiddleware("python", tools=["owner"], sandbox=sandbox)
        agent = create_agent(Scripted(script=said + list(script)), [owner], middleware=[repl], checkpointer=checkpoints)
        state = agent.invoke({"messages": [HumanMessage(text)]}, thread)
        said[:] = [message for message in state["messages"] if message.type == "ai"]
        for message in state["messages"][-len(script) * 2 + 1 :]:
            print(f"[{message.type}] {message.content}")
        repl.close()

    said: list[AIMessage] = []
    turn("What is wrong, and whose is it?", call("py_eval", code=LOOK), AIMessage("The mean is wrong; it is Ada's."))
    turn(TASK, call("py_eval", code=REPAIR), AIMessage("Repaired."))
    print(sandbox.exec(DIFF).stdout)
