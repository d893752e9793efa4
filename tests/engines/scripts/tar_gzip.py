import bz2, gzip, io, lzma, tarfile, zlib

with tarfile.open("a.tar.gz", "w:gz") as tar:
    for name, text in (("x/a.txt", "alpha\n"), ("x/b.txt", "beta\n" * 50)):
        info = tarfile.TarInfo(name)
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text.encode()))
with tarfile.open("a.tar.gz") as tar:
    for member in tar:
        print(member.name, member.size, member.isfile())
    tar.extractall("out", filter="data")
print(open("out/x/a.txt").read(), end="")
data = b"the quick brown fox " * 200
for name, module in (("gzip", gzip), ("bz2", bz2), ("zlib", zlib), ("lzma", lzma)):
    packed = module.compress(data)
    print(name, len(packed) < len(data) // 5, module.decompress(packed) == data)
print(zlib.crc32(data), zlib.adler32(data))
