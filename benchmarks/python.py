"""How guest Python compares with native `python3` in the same run. Run: python -m benchmarks.python [--quick]

The least and the median of each are shown, and their ratios to a native start in the same run. Programs that compute
are run turn by turn with native ones and shown as ratios.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from belljar import Sandbox

LOOPS = {
    "generator loop": "sum(i * i for i in range(3_000_000))",
    "dict and sort": "d = {str(i): i for i in range(300_000)}\nsorted(d.items(), key=lambda p: -p[1])",
    "json": "import json\nt = json.dumps([{'a': i, 'b': [str(i)]} for i in range(40_000)])\njson.loads(t)",
    "re": "import re\nt = 'abc 123 def-456 ' * 40_000\nre.findall(r'[a-z]+-(\\d+)', t)\nre.sub(r'\\d', 'x', t)",
    "numpy matmul": "import numpy as np\na = np.ones((300, 300))\nfor _ in range(5): a = a @ a / 300",
}
TIMED = "import time\n{setup}\nt = time.perf_counter()\nexec({code!r}, {{}})\nprint(time.perf_counter() - t)"


def least_and_median(run: Callable[[], object], turns: int, pause: float = 0.0) -> tuple[float, float]:
    """Of a call, in milliseconds; `pause` lets a spare process be made between two, as it would be."""
    times = []
    for _ in range(turns):
        time.sleep(pause)
        began = time.perf_counter()
        run()
        times.append((time.perf_counter() - began) * 1e3)
    return min(times), statistics.median(times)


def native(code: str, **variables: str) -> str:
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def private_kilobytes(pid: int) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_"))


def children(pid: int) -> list[int]:
    found = []
    for task in os.listdir("/proc"):
        if task.isdigit():
            try:
                fields = Path(f"/proc/{task}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(task))
    return found


def show(name: str, least: float, median: float, against: tuple[float, float] | None = None) -> None:
    ratio = (
        f"   {least / against[0]:.3f}x the least, {median / against[1]:.3f}x the median of native" if against else ""
    )
    print(f"{name:<46}{least:>9.2f} ms{median:>9.2f} ms{ratio}")


def starts(sandbox: Sandbox, turns: int) -> None:
    plain = least_and_median(lambda: native("print(1)"), turns)
    print(f"{'':<46}{'least':>9}   {'median':>9}")
    show("native python3 -c 'print(1)'", *plain)
    show("python3 -c 'print(1)' in a live sandbox", *_start(sandbox, "print(1)", turns), plain)
    try:
        data = least_and_median(lambda: native("import numpy, pandas"), max(2, turns // 5))
        show("native import numpy, pandas", *data)
    except subprocess.CalledProcessError:
        data = None
        print("(numpy and pandas are not installed here: the next has nothing beside it)")
    show("import numpy, pandas in a live sandbox", *_start(sandbox, "import numpy, pandas", turns), data)
    show('sandbox.python.run("1+1")', *least_and_median(lambda: sandbox.python.run("1+1"), turns * 10), plain)
    prefix = sandbox.python.precompile("import json\nbase = [1, 2, 3]", globals={"look": lambda n: n})
    prefix.run("1")
    show("prefix.run", *least_and_median(lambda: prefix.run("sum(base)"), turns, 0.1), plain)
    prefix.close()


def _start(sandbox: Sandbox, code: str, turns: int) -> tuple[float, float]:
    return least_and_median(lambda: sandbox.exec(["python3", "-c", code]).check(), turns, 0.1)


def loops(sandbox: Sandbox, turns: int) -> None:
    ratios = []
    for name, code in LOOPS.items():
        setup = "import numpy" if "numpy" in code else ""
        program = TIMED.format(setup=setup, code=code)
        ours, theirs = [], []
        try:
            for _ in range(turns):
                ours.append(float(sandbox.exec(["python3", "-c", program]).check().stdout))
                theirs.append(float(native(program)))
        except subprocess.CalledProcessError:
            print(f"{name:<46} (not installed natively)")
            continue
        ratio = min(ours) / min(theirs)
        ratios.append(ratio)
        print(f"{name:<46}{min(ours) * 1e3:>9.1f} ms beside {min(theirs) * 1e3:.1f} ms: {ratio:.2f}x")
        if "numpy" in code:
            # Native numpy computes on all processors, and waits for them when they are busy: the ratio above then says
            # little. The guest has one.
            alone = min(float(native(program, OPENBLAS_NUM_THREADS="1")) for _ in range(turns))
            named = "  the native one on one processor"
            print(f"{named:<46}{'':>12} beside {alone * 1e3:.1f} ms: {min(ours) / alone:.2f}x")
    print(f"{'geometric mean':<46}{statistics.geometric_mean(ratios):>9.2f}x")


def memory(count: int) -> None:
    from belljar.engines.owner.template_host import template

    boxes = [Sandbox() for _ in range(count)]
    for box in boxes:
        assert box.python.run("x = [n * 2 for n in range(1000)]\nsum(x)").value == 999_000
    process = template("python").process
    assert process is not None
    sizes = sorted(private_kilobytes(pid) for pid in children(process.pid))[-count:]
    mean, median = statistics.mean(sizes) / 1024, statistics.median(sizes) / 1024
    print(f"{count} live interpreters: {mean:.1f} MB private each (median {median:.1f})")
    for box in boxes:
        box.close()


def main() -> None:
    quick = "--quick" in sys.argv
    with Sandbox() as sandbox:
        sandbox.exec("python3 -c 1").check()
        sandbox.exec("python3 -c 'import numpy'").check()
        starts(sandbox, 5 if quick else 20)
        loops(sandbox, 2 if quick else 4)
    memory(10 if quick else 100)


if __name__ == "__main__":
    main()
