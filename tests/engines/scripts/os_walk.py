import os, shutil, stat

os.makedirs("t/a/b")
os.makedirs("t/c")
for name in ("t/1.txt", "t/a/2.log", "t/a/b/3.txt"):
    with open(name, "w") as f:
        f.write(name * 3)
for top, dirs, files in os.walk("t"):
    dirs.sort()
    print(top, dirs, sorted(files))
print(sorted((e.name, e.is_dir(), e.stat().st_size if e.is_file() else 0) for e in os.scandir("t")))
os.chmod("t/1.txt", 0o640)
print(stat.filemode(os.stat("t/1.txt").st_mode), oct(os.stat("t/1.txt").st_mode))
shutil.copytree("t", "u", ignore=shutil.ignore_patterns("*.log"))
print(sorted(os.path.join(d, f) for d, _, fs in os.walk("u") for f in fs))
shutil.rmtree("t")
print(os.path.exists("t"), os.listdir("."))
try:
    os.rmdir("u")
except OSError as error:
    print(type(error).__name__, error)
try:
    open("missing/file")
except FileNotFoundError as error:
    print(error, error.filename)
