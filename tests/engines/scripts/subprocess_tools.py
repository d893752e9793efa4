import subprocess

print(subprocess.run(["sort", "-n"], input="10\n9\n2\n", text=True, capture_output=True).stdout.split())
print(subprocess.check_output("echo hello | tr a-z A-Z | wc -c", shell=True, text=True).strip())
done = subprocess.run("echo out; echo err >&2; exit 3", shell=True, capture_output=True, text=True)
print(done.returncode, done.stdout, done.stderr, sep="|")
try:
    subprocess.run(["false"], check=True)
except subprocess.CalledProcessError as error:
    print(error)
try:
    subprocess.run(["no-such-program-here"])
except FileNotFoundError as error:
    print(error.filename, error)
with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cat:
    cat.stdin.write("through a pipe\n")
    cat.stdin.close()
    print(cat.stdout.read(), end="")
print(cat.returncode)
try:
    subprocess.run(["sleep", "10"], timeout=0.1)
except subprocess.TimeoutExpired as error:
    print(type(error).__name__, round(error.timeout, 1))
print(subprocess.run(["sh", "-c", "echo $GREETING; pwd"], env={"GREETING": "hi", "PATH": "/usr/bin:/bin"}, cwd="/", capture_output=True, text=True).stdout)
