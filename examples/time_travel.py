"""Go back to any step of an agent's work: a snapshot after each one, differences between them, a second try."""

import tempfile
from pathlib import Path

from belljar import Sandbox, Snapshot, Store

STEPS = {
    "plan": "mkdir -p app && echo 'def add(a, b): return a + b' > app/sums.py",
    "test": "echo 'from sums import add; assert add(1, 2) == 3' > app/test_sums.py && cd app && python3 test_sums.py",
    "break": "sed -i 's/a + b/a - b/' app/sums.py && rm app/test_sums.py",
}

with tempfile.TemporaryDirectory() as directory:
    store = Store.sqlite(Path(directory, "store.db"))
    with Sandbox(store=store) as sandbox:
        for label, command in STEPS.items():
            sandbox.exec(command).check()
            sandbox.snapshot(label)

    # The sandbox is gone; another process could do all of the rest.
    for snapshot in Snapshot.list(store):
        earlier = Snapshot.find(snapshot.parent, store) if snapshot.parent else None
        changes = [] if earlier is None else earlier.diff(snapshot)
        said = [f"{change.kind} {change.path}" for change in changes if change.path.startswith("/workspace/app/")]
        print(f"{snapshot.label}: {', '.join(said)}")

    good = Snapshot.find("test", store)
    print("then:", good.files.read("/workspace/app/sums.py"), end="")
    with Sandbox.restore(good) as sandbox:
        print("again:", sandbox.exec("cd app && python3 test_sums.py && echo passed").stdout, end="")
    store.close()
