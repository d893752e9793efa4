"""A Deep Agent that repairs a repository. The model is scripted: no key is needed.

In a checkout of belljar: pip install '.[langchain,python]'
"""

from deepagents import create_deep_agent
from langchain_core.messages import AIMessage, HumanMessage
from repository import BEGIN, DIFF, RIGHT, TASK, TEST, WRONG, overlay, repository
from scripted_langchain import Scripted, call

from belljar import Sandbox
from belljar.integrations.deepagents import BelljarSandbox

SCRIPT = [
    call("execute", command=TEST),
    call("edit_file", file_path="/work/stats.py", old_string=WRONG, new_string=RIGHT),
    call("execute", command=TEST),
    AIMessage("The mean was divided by one too many."),
]

with repository() as directory, Sandbox(mounts=overlay(directory)) as sandbox:
    sandbox.exec(BEGIN).check()
    agent = create_deep_agent(Scripted(script=SCRIPT), backend=BelljarSandbox(sandbox=sandbox))
    state = agent.invoke({"messages": [HumanMessage(TASK)]})
    for message in state["messages"]:
        print(f"[{message.type}] {message.content}")
    print(sandbox.exec(DIFF).stdout)
