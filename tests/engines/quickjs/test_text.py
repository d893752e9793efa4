"""Bytes and text by Node's rules: each case is done by Node too."""

from __future__ import annotations

import json
import random
import subprocess

import pytest

from belljar.engines.owner.js_build_host import node
from belljar.engines.quickjs.text import decode, encode, find

ENCODINGS = {"ascii": 0, "utf8": 1, "base64": 2, "latin1": 4, "hex": 5, "base64url": 7}
TEXTS = [
    "", "abc", "äöü", "a=b=", "YWJj", "YWJj\nZGVm", "YW-_/+", "YWJ", "Y", "YQ==YQ==", " Y W ", "0g", "0a0", "0A0bZZ",
    "ﬀ\U0001f600", "\0\x7f\x80", "====", "YQ=x",
]  # fmt: skip
ASK = """
const [datas, texts] = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const names = process.argv.slice(1);
console.log(JSON.stringify([
  datas.map((d) => names.map((n) => Buffer.from(d, 'hex').toString(n))),
  texts.map((t) => names.map((n) => Buffer.from(t, n).toString('hex'))),
]));
"""


def test_every_encoding_as_node_does_it() -> None:
    chance = random.Random(7)
    datas = [b"", b"\xff\xfe", b"\xe2\x82", b"\xed\xa0\x80x", b"\xf0\x9f\x98\x80", b"\xef\xbb\xbfbom"]
    datas += [chance.randbytes(chance.randrange(40)) for _ in range(60)]
    alphabet = "abcABC0129+/-_= \nzä€"
    texts = TEXTS + ["".join(chance.choices(alphabet, k=chance.randrange(30))) for _ in range(120)]
    asked = json.dumps([[data.hex() for data in datas], texts])
    command = [str(node()), "-e", ASK, *ENCODINGS]
    real = json.loads(subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout)
    assert [[encode(data, number) for number in ENCODINGS.values()] for data in datas] == real[0]
    assert [[decode(text, number).hex() for number in ENCODINGS.values()] for text in texts] == real[1]


@pytest.mark.parametrize(
    ("at", "unit", "forward", "found"),
    [
        (0, 1, True, 1),
        (2, 1, True, 4),
        (5, 1, True, -1),
        (5, 1, False, 4),
        (3, 1, False, 1),
        (0, 2, True, 4),
        (1, 2, False, 1),
    ],
)
def test_a_needle_is_found_in_steps(at: int, unit: int, forward: bool, found: int) -> None:
    assert find(b"xabxab", b"ab", at, unit, forward=forward) == found
