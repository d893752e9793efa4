"""Build an image once, start many sandboxes from it, and hand it to another tool."""

from belljar import Image, Sandbox, Store

store = Store.memory()  # Store.sqlite("store.db") outlives the program


def with_tests(image: Image) -> Image:
    """An extension: what several recipes have in common."""
    return image.files({"/workspace/test.sh": ("#!/bin/bash\ngrep -q 5000 /workspace/numbers && echo passed\n", 0o755)})


recipe = Image().env(STAGE="test").run("seq 10000 | shuf > /workspace/numbers").use(with_tests)
image = recipe.build(store, name="numbers", on_progress=lambda p: print(f"[{p.number}/{p.count}] {p.step}: {p.state}"))
again = recipe.build(Store.memory())
print("the same image elsewhere:", again.digest == image.digest)

for n in range(3):
    with Sandbox(image="numbers", store=store) as sandbox:
        print(n, sandbox.exec("/workspace/test.sh").stdout, end="")
        sandbox.exec("rm -r /workspace/*")  # the next one has its own

image.to_oci("numbers.tar")  # docker load < numbers.tar
print("read back:", Image.oci("numbers.tar").build(store).digest == image.digest)
