import fileinput, fnmatch, glob, os, shutil

for name in ("a.txt", "b.txt", "c.md", ".hidden.txt"):
    with open(name, "w") as f:
        f.write(f"{name}\nTODO: fix {name}\n")
print(sorted(glob.glob("*.txt")), sorted(glob.glob("[!a]*")), fnmatch.filter(["x.py", "y.pyc"], "*.py"))
with fileinput.input(sorted(glob.glob("*.txt")), inplace=True) as lines:
    for line in lines:
        print(line.replace("TODO", "DONE"), end="")
print(open("a.txt").read(), end="")
for line in fileinput.input(["b.txt", "c.md"]):
    if "fix" in line:
        print(fileinput.filename(), fileinput.filelineno(), line.strip())
shutil.make_archive("all", "zip", ".", "a.txt") if False else shutil.copy2("a.txt", "copy.txt")
print(os.path.getsize("copy.txt"), shutil.which("sh") is not None, shutil.disk_usage(".").total > 0)
