import atexit, sys

atexit.register(print, "at exit")
print(sys.argv[1:], file=sys.stderr)
print("no newline at the end", end="")
sys.stdout.flush()
sys.exit("fatal: configuration missing")
