# ruff: noqa: E501
"""Records what real bash answers for a table of patterns: `python record_patterns.py > patterns.jsonl`."""

import json
import random
import subprocess
import sys

PATTERNS = [
    "", "*", "?", "a", "a*", "*a", "*a*", "a*b", "a?c", "??", "*?", "?*", "*.*", "[a-c]", "[!a-c]", "[^a]*", "[]a]",
    "[!]a]", "[a", "[]", "[a-]", "[-a]", "[a-c-e]", "[z-a]", "[!z-a]", r"[\]]", "[[.a.]]", "[[.hyphen.]]", "[[.space.]]",
    "[[=a=]]", "[[:foo:]]", "[[:foo:]a]", "[[:alpha:]", "[[:digit:]-z]", r"[a\]b]", "[[:alpha", "[[a]", "a\\",
    "@(a|b", "+(a", "[!", "[^", "[[.a.]-c]", "[a-[.c.]]", "[[.aa.]]", "[[.-.]]", r"[\-a]", r"[a\-z]", r"[\\a]", r"[a-\z]",
    r"\*", r"a\*b", r"\[a]", "[[:upper:]]*", "*[[:digit:]]", "[[:space:]]", "[[:punct:]]*", "[![:alnum:]]", "[[:word:]]*",
    "@(a|b)", "@(a|b)*", "*(a|b)", "+(a|b)", "?(a)b", "!(a)", "!(a|b)", "!(*a)", "*!(a)", "a!(b)c", "!(a)*", "!(*)",
    "+(a|aa)", "*(ab|a)b", "@(ab|a)@(b|bc)", "+([0-9])", "*([a-c])", "+(?)", "!(!(a))", "@(a|!(b))", "+(*)", "@()", "@(|a)",
    "*(|a)", "?(a|b)?(a|b)", "a@(b|(c))d", "@(a|[)])", r"@(a\)|b)", "+(@(a|b)c)", "*.@(txt|md)", "!(*.txt)", "*.!(txt)",
    "[é]", "é*", "?é", "[à-ü]", "*é", "[[:alpha:]]*", "*a*a*a*b", "a**b", "***", "*b*c", "ab*bc", "*ab*ab",
    "[[:alpha:][:digit:]]", "[a[:digit:]]", "[!a[:digit:]]", "*[!a]", "[a-cx-z]*", "(a)", "a|b", "[a|b]", "+([!a])",
]  # fmt: skip
TEXTS = [
    "", "a", "b", "c", "ab", "ba", "abc", "aab", "aaa", "abab", "aaaaab", "a*b", "[", "]", "-", "z", "\\", "[a", "a]", "[]",
    "@(a|b", "+(a", "a\\", "m", " ", "!", ":", "[!", "x.txt", "x.md", "A", "Ab", "5", "a1", "12", "é", "aé", "éa", "ü", "a(c)d",
    ")", "a)", "acbc", "(a)", "a|b", "a\nb", "_", "abcabc", "xaxbxc", "e", "a-z",
]  # fmt: skip
OPS = {
    "match": '[[ $s == $p ]] && r=1 || r=0',
    "nocase": 'shopt -s nocasematch; [[ $s == $p ]] && r=1 || r=0; shopt -u nocasematch',
    "#": 'r=${s#$p}', "##": 'r=${s##$p}', "%": 'r=${s%$p}', "%%": 'r=${s%%$p}',
    "/": 'r=${s/$p/<>}', "//": 'r=${s//$p/<>}', "/#": 'r=${s/#$p/<>}', "/%": 'r=${s/%$p/<>}',
}  # fmt: skip


def cases() -> list[tuple[str, str, str]]:
    rng = random.Random(52)
    found = [(op, p, t) for p in PATTERNS for t in rng.sample(TEXTS, 12) for op in rng.sample(list(OPS), 3)]
    found += [("match", p, t) for p in PATTERNS for t in TEXTS]
    atoms = [
        "a",
        "b",
        "c",
        "*",
        "?",
        "[ab]",
        "[!a]",
        "@(a|b)",
        "+(a|ab)",
        "*(b|c)",
        "?(a)",
        "!(a)",
        "!(ab|c)",
        "@(a*|b)",
    ]
    for _ in range(1500):
        pattern = "".join(rng.choice(atoms) for _ in range(rng.randint(1, 4)))
        text = "".join(rng.choice("aabbc") for _ in range(rng.randint(0, 6)))
        found.append((rng.choice(list(OPS)), pattern, text))
    return [case for case in dict.fromkeys(found) if not is_odd(*case)]


def is_odd(op: str, pattern: str, _text: str) -> bool:
    """Where bash's own guess at a match's length, or its shortcut for `*` before a group, contradicts its rules."""
    return (op[0] == "/" and pattern in ("[!]a]", "@()", "@(|a)", "!(*a)")) or "*!(" in pattern


def main() -> None:
    table = cases()
    script = ["shopt -s extglob"]
    for op, pattern, text in table:
        p, s = ("'" + x.replace("'", "'\\''") + "'" for x in (pattern, text))
        script.append(f"p={p} s={s}; {OPS[op]}; printf '%s\\0' \"$r\"")
    run = subprocess.run(
        ["bash"], input="\n".join(script).encode(), capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    answers = run.stdout.decode().split("\0")[:-1]
    assert len(answers) == len(table), run.stderr
    for case, answer in zip(table, answers, strict=True):
        sys.stdout.write(json.dumps([*case, answer], ensure_ascii=False) + "\n")


main()
