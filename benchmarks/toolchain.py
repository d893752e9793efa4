"""The compiler, Perl and Ruby of a virtual sandbox beside those of this machine: `python benchmarks/toolchain.py`.

Each figure is the shortest of several runs, taken in turns: what else the machine does then meets both. A task that
takes long is run less often: all of it ends within five minutes. Where the machine has no such program its columns are
empty.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from belljar import Limits, Sandbox

ROUNDS = 20
LONG = 6.0
"""Seconds after which a pair of tasks is not run again."""
FUNCTION = """
static int f{n}(int a, const char *s) {{
    int t = a;
    for (int i = 0; s[i]; i++) {{
        t = t * 31 + s[i];
        if (t % 7 == {n} % 7) t ^= {n};
        else t += (t >> 3) & 0xff;
    }}
    switch (t & 3) {{
    case 0: return t + {n};
    case 1: return t - {n};
    default: break;
    }}
    return printf("%d %s\\n", t, s);
}}
"""
KERNELS = {
    "integer": """
    unsigned s = 1;
    for (unsigned i = 0; i < 400000000u; i++) s = s * 1664525u + 1013904223u ^ i >> 3;
    return s & 1;""",
    "float": """
    double s = 0;
    for (int i = 1; i < 120000000; i++) s += 1.0 / ((double)i * i) * (i & 1 ? 1 : -1);
    return s > 2;""",
    "memory": """
    size_t n = 1 << 24;
    int s = 0, *a = malloc(n * sizeof *a);
    for (int r = 0; r < 3; r++)
        for (size_t i = 0; i < n; i++) {
            a[i] = (int)(i * 7 + r);
            s += a[(i * 4097) & (n - 1)];
        }
    return s & 1;""",
    "recursion": "return fib(38) & 1;",
    "strings": """
    char *b = malloc(1 << 20);
    int s = 0;
    for (int r = 0; r < 500; r++) {
        int n = 0;
        for (int i = 0; i < 2000; i++) n += sprintf(b + n, "%d,", i * r);
        for (char *p = b; (p = strchr(p, ',')); p++) s++;
    }
    return s & 1;""",
}
HEAD = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
FIB = "static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n"


def shortest(*tasks: Callable[[], object]) -> list[float]:
    """The shortest time of each task, in seconds."""
    found = [float("inf")] * len(tasks)
    began = time.perf_counter()
    for _ in range(ROUNDS):
        if time.perf_counter() - began > LONG:
            break
        for index, task in enumerate(tasks):
            start = time.perf_counter()
            task()
            found[index] = min(found[index], time.perf_counter() - start)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as top, Sandbox(limits=Limits(cpu_seconds=3600, wall_seconds=3600)) as sandbox:

        def inside(script: str) -> None:
            done = sandbox.exec(script)
            assert done.exit_code in (0, 1), done.stderr

        def outside(script: str) -> None:
            subprocess.run(["bash", "-c", script], cwd=top, check=False, stdout=subprocess.DEVNULL)

        def put(name: str, text: str) -> None:
            sandbox.files.write(f"/workspace/{name}", text)
            (Path(top) / name).write_text(text)

        def compare(title: str, script: str, wanted: str) -> None:
            if shutil.which(script.split()[0]) is None and not script.startswith("./"):
                (ours,) = shortest(lambda: inside(script))
                print(f"| {title} | {ours * 1e3:.0f} ms | | | {wanted} |", flush=True)
                return
            ours, theirs = shortest(lambda: inside(script), lambda: outside(script))
            row = f"| {title} | {ours * 1e3:.0f} ms | {theirs * 1e3:.0f} ms | {ours / theirs:.2f} | {wanted} |"
            print(row, flush=True)

        print(
            f"load {os.getloadavg()[0]:.1f}\n\n| what | sandbox | machine | ratio | wanted |\n|---|---|---|---|---|",
            flush=True,
        )
        body = "".join(FUNCTION.format(n=n) for n in range(125))
        calls = "".join(f'    s += f{n}({n}, "x");\n' for n in range(125))
        put("big.c", f"{HEAD}{body}int main(void) {{\n    int s = 0;\n{calls}    return s & 1;\n}}\n")
        inside("cc --version >/dev/null")
        lines = len((Path(top) / "big.c").read_text().splitlines())
        compare(f"gcc -O2 -c, {lines} lines", "gcc -O2 -c big.c", "6")
        compare("cc --version", "cc --version", "60 ms")
        inside("perl -e 1")
        compare("perl -e 1", "perl -e 1", "40 ms")
        inside("ruby -e 1")
        compare("ruby -e 1", "ruby -e 1", "")
        for name, text in KERNELS.items():
            put(f"{name}.c", f"{HEAD}{FIB}int main(void) {{ {text} }}\n")
            inside(f"gcc -O2 {name}.c -o {name} && ./{name}")
            outside(f"gcc -O2 {name}.c -o {name}")
            compare(f"{name}, built with -O2", f"./{name}", "1.5")


if __name__ == "__main__":
    main()
