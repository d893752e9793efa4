"""A command of several lines, as the history keeps it: compared with bash 5.2.15."""

from __future__ import annotations

import pytest

from belljar.shell.history import join_lines


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("for i in 1 2; do\necho $i\ndone", "for i in 1 2; do echo $i; done"),
        ("if true\nthen echo a\nelse\n  echo b\nfi", "if true; then echo a; else   echo b; fi"),
        ("f()\n{\necho x;\n}", "f() { echo x; }"),
        ("case x in\nx) echo c;;\nesac", "case x in x) echo c;; esac"),
        ("{\necho in\ny\n}", "{ echo in; y; }"),
        ('echo "a\nb"; echo c &&\necho d |\ncat', 'echo "a\nb"; echo c && echo d | cat'),
        ("(\necho e\n)", "( echo e; )"),
        ("echo a \\\nb", "echo a b"),
        ("cat <<E\nh\nE", "cat <<E\nh\nE"),
        ("while false # c\ndo :\ndone", "while false # c\ndo :; done"),
    ],
)
def test_lines_are_joined_where_that_means_the_same(typed: str, kept: str) -> None:
    assert join_lines(typed) == kept
