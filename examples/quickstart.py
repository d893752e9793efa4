"""Run commands, read files back, and see a limit at work."""

from belljar import Limits, Sandbox

with Sandbox(files={"/workspace/words.txt": "bell\njar\nbell\n"}) as sandbox:
    print(sandbox.exec("sort words.txt | uniq -c | sort -rn").stdout, end="")
    sandbox.exec("tr a-z A-Z < words.txt > loud.txt").check()
    print(sandbox.files.read("loud.txt"), end="")
    stopped = sandbox.exec("while :; do :; done", limits=Limits(cpu_seconds=0.3))
    print(f"a runaway: exit code {stopped.exit_code}, limit {stopped.limit}")
