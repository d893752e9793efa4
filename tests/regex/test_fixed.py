"""Long lists of fixed strings match what the same strings match one by one."""

import re

from hypothesis import given
from hypothesis import strategies as st

from belljar import regex

FILLER = [f"zz{n}zz" for n in range(70)]
WORDS = st.lists(st.text(alphabet="abé.-", min_size=1, max_size=4), min_size=1, max_size=5)


@given(
    WORDS,
    st.lists(st.text(alphabet="abéA.- ", max_size=8), max_size=5),
    st.booleans(),
    st.sampled_from(["", "line", "word"]),
)
def test_lines(words: list[str], lines: list[str], ignore_case: bool, whole: str) -> None:
    compiled = regex.compile_any(
        words + FILLER,
        syntax="fixed",
        ignore_case=ignore_case,
        whole_line=whole == "line",
        whole_word=whole == "word",
    )
    text = "".join(line + "\n" for line in lines)
    data = text.encode()
    found = [data[start:end].decode() for start, end in compiled.lines(data)]
    edges = {"": ("", ""), "line": ("^", "$"), "word": (r"(?<!\w)", r"(?!\w)")}[whole]
    choice = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    expected = re.compile(f"{edges[0]}(?:{choice}){edges[1]}", re.IGNORECASE if ignore_case else 0)
    assert found == [line for line in lines if expected.search(line)]
    if whole != "word":
        for line in lines:
            spans = [match.span() for match in compiled.finditer(line)]
            assert spans == [match.span() for match in expected.finditer(line)]


def test_a_hundred_thousand_words() -> None:
    words = [f"word{n}x" for n in range(100_000)]
    compiled = regex.compile_any(words, syntax="fixed")
    assert list(compiled.lines(b"none\nword4711x here\nword4711\n")) == [(5, 19)]
