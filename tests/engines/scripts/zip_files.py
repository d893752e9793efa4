import io, zipfile

with zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr(zipfile.ZipInfo("dir/hello.txt", (2024, 1, 2, 3, 4, 6)), "hello " * 100)
    z.writestr("empty", b"")
with zipfile.ZipFile("a.zip", "a") as z:
    z.writestr("more.bin", bytes(range(256)))
with zipfile.ZipFile("a.zip") as z:
    for info in z.infolist():
        print(info.filename, info.file_size, f"{info.CRC:08x}")
    print(z.testzip(), z.read("dir/hello.txt")[:11], z.getinfo("dir/hello.txt").date_time)
    z.extractall("out")
print(open("out/more.bin", "rb").read() == bytes(range(256)))
try:
    zipfile.ZipFile(io.BytesIO(b"not a zip"))
except zipfile.BadZipFile as error:
    print(error)
