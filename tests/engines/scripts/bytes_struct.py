import array, struct

header = struct.pack(">4sHIq", b"BELL", 1, 2**31, -5)
print(header.hex(" "), struct.unpack(">4sHIq", header), struct.calcsize("<hhi"))
data = bytearray(b"hello world")
view = memoryview(data)
view[0:5] = b"HELLO"
print(data, bytes(view[6:]), view.nbytes, data.find(b"w"))
numbers = array.array("h", [1, 2, 300])
numbers.extend([4])
print(numbers, numbers.tobytes(), numbers.itemsize)
print(int.from_bytes(b"\x01\x00", "little"), (1000).to_bytes(2, "big"), b"a,b".split(b","), bytes([65, 66]).decode())
for size, value in struct.iter_unpack("<BH", b"\x01\x02\x00\x03\x04\x00"):
    print(size, value)
