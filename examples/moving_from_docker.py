"""The same agent on both tiers, by one argument; over an image that Docker saved, if you have one.

docker save -o app.tar my-app:latest
python moving_from_docker.py app.tar
"""

import sys

from belljar import Image, Limits, Sandbox, SandboxError, Store

PROGRAM = """
words = open("/etc/os-release").read().split()
print(len(words), "words")
"""


def work(image: Image | None, tier: str) -> None:
    """What `docker run --rm --network none --memory 1g image ...` would do, in a sandbox that is thrown away."""
    with Sandbox(tier=tier, image=image, limits=Limits(memory_bytes=1 << 30, wall_seconds=60)) as sandbox:
        sandbox.files.write("/tmp/count.py", PROGRAM)
        print(f"{tier}: {sandbox.exec('uname -s; grep ^ID= /etc/os-release').stdout.split()}")
        print(sandbox.exec("python3 /tmp/count.py || echo no Python here").stdout.strip())


store = Store.memory()  # Store.sqlite("store.db") keeps the image
saved = Image.oci(sys.argv[1]).build(store, name="app") if len(sys.argv) > 1 else None
work(saved, "virtual")  # belljar's own programs over the image's files
try:
    work(saved or Image.host(), "native")  # the image's programs, or this machine's
except SandboxError as error:
    print(f"no native tier here: {error}")
