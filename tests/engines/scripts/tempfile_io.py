import io, os, tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as directory:
    path = Path(directory, "f.bin")
    path.write_bytes(bytes(range(10)))
    with open(path, "r+b") as f:
        f.seek(-3, os.SEEK_END)
        print(f.tell(), f.read(), f.seek(2), f.write(b"XY"), f.truncate(6))
    print(path.read_bytes())
print(path.exists())
with tempfile.NamedTemporaryFile("w+", suffix=".txt") as f:
    f.write("line one\nline two\nlast")
    f.flush()
    f.seek(0)
    print(f.readline(), list(f), f.name.endswith(".txt"), os.path.exists(f.name))
print(os.path.exists(f.name))
with open("u.txt", "w", encoding="utf-16") as f:
    f.write("žluťoučký")
print(open("u.txt", encoding="utf-16").read(), os.path.getsize("u.txt"))
buffer = io.BytesIO(b"abc\ndef")
print(io.TextIOWrapper(buffer).readlines(), io.StringIO("a\r\nb", newline=None).read())
with open("log", "a") as f:
    print(f.write("1\n"), f.tell())
with open("log", "x" if not os.path.exists("log") else "a") as f:
    f.write("2\n")
print(open("log").read().split())
try:
    open("log", "x")
except FileExistsError as error:
    print(error)
