import base64, binascii, hashlib, hmac, secrets, uuid, zlib

data = b"bell jar"
for name in ("md5", "sha1", "sha256", "sha3_256", "blake2b"):
    print(name, hashlib.new(name, data).hexdigest()[:32])
print(hmac.new(b"key", data, "sha256").hexdigest()[:32], hmac.compare_digest(b"a", b"a"))
print(base64.b64encode(data), base64.urlsafe_b64encode(bytes([251, 255])), base64.b32encode(data), base64.b85encode(data))
print(binascii.hexlify(data, "-"), bytes.fromhex("62 65"), zlib.crc32(data))
print(uuid.uuid5(uuid.NAMESPACE_URL, "https://example.com"), len(secrets.token_hex(8)), uuid.UUID(int=5))
print("naïve café".encode("utf-8"), "naïve".encode("latin-1"), b"\xff".decode("utf-8", "replace"), "ß".casefold())
