import os, platform, sys

os.environ["MY_SETTING"] = "ü"
print(os.environ.get("MY_SETTING"), os.getenv("NOT_SET", "default"), os.popen("printf %s $MY_SETTING").read())
del os.environ["MY_SETTING"]
print("MY_SETTING" in os.environ, os.path.basename(sys.executable).startswith("python"), platform.python_implementation())
print(os.sep, os.linesep == "\n", os.name, sys.byteorder, sys.maxunicode, os.path.expandvars("$NOPE/x"), os.cpu_count() >= 1)
print(os.path.join("a", "/b", "c"), os.path.normpath("a//b/../c/."), os.path.splitext("x.tar.gz"), os.path.commonpath(["/a/b", "/a/c"]))
print(os.getcwd() == os.path.realpath("."), os.path.relpath("/a/b", "/a/c"), os.getpid() > 0)
