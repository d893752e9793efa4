"""web/src/diff.ts, run by Node: it leads from one text to the other, by the shortest way."""

from __future__ import annotations

import json
import random
import subprocess
from typing import Any

from belljar.engines.owner.js_build_host import node
from tests.server.console.build import ROOT

PROGRAM = """
import { diff, hunks } from "./web/src/diff.ts";
let text = "";
for await (const piece of process.stdin) text += piece;
const answers = JSON.parse(text).map(([before, after]) => [diff(before, after), hunks(diff(before, after))]);
console.log(JSON.stringify(answers));
"""


def compare(pairs: list[tuple[str, str]]) -> list[Any]:
    command = [str(node()), "--input-type=module", "--no-warnings", "--eval", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, input=json.dumps(pairs), capture_output=True, text=True, check=True)
    answers: list[Any] = json.loads(done.stdout)
    return answers


def longest_common(a: list[str], b: list[str]) -> int:
    row = [0] * (len(b) + 1)
    for x in a:
        before, row = row, [0] * (len(b) + 1)
        for place, y in enumerate(b):
            row[place + 1] = before[place] + 1 if x == y else max(before[place + 1], row[place])
    return row[-1]


def test_it_is_right_and_shortest() -> None:
    chance = random.Random(22)
    texts = [
        "",
        "a\n",
        "\n",
        "a",
        "a\n\n",
        *("".join(f"{chance.choice('abc')}\n" for _ in range(chance.randrange(30))) for _ in range(60)),
    ]
    pairs = [(chance.choice(texts), chance.choice(texts)) for _ in range(300)]
    for (before, after), (lines, shown) in zip(pairs, compare(pairs), strict=True):
        a, b = before.split("\n"), after.split("\n")
        a, b = (a[:-1] if a[-1] == "" else a), (b[:-1] if b[-1] == "" else b)
        assert [line["text"] for line in lines if line["kind"] != "added"] == a
        assert [line["text"] for line in lines if line["kind"] != "removed"] == b
        assert sum(line["kind"] == "same" for line in lines) == longest_common(a, b)
        changed = [line for line in lines if line["kind"] != "same"]
        assert [line for hunk in shown for line in hunk if line["kind"] != "same"] == changed


def test_what_differs_too_much_is_all_of_one_and_all_of_the_other() -> None:
    before = "".join(f"{number}\n" for number in range(3000))
    after = "".join(f"x{number}\n" for number in range(3000))
    ((lines, _),) = compare([(before, after)])
    assert [line["kind"] for line in lines] == ["removed"] * 3000 + ["added"] * 3000
