import os, subprocess, sys

first = subprocess.Popen(["printf", r"b\na\nc\na\n"], stdout=subprocess.PIPE)
second = subprocess.Popen(["sort"], stdin=first.stdout, stdout=subprocess.PIPE)
first.stdout.close()
third = subprocess.run(["uniq", "-c"], stdin=second.stdout, capture_output=True, text=True)
second.stdout.close()
print([line.split() for line in third.stdout.splitlines()])
first.wait(), second.wait()
print(os.system("exit 3") >> 8, os.popen("echo popen; true").read().strip())
sys.stdout.flush()
subprocess.call("echo from the child", shell=True)
with open("log.txt", "w") as log:
    subprocess.run(["ls", "/nonexistent-dir"], stderr=log, env={**os.environ, "LC_ALL": "C"})
print(open("log.txt").read().replace("'", ""), end="")
script = subprocess.run([sys.executable, "-c", "import sys; print(sys.argv[1:]); sys.exit(7)", "a", "b c"], capture_output=True, text=True)
print(script.stdout, script.returncode)
