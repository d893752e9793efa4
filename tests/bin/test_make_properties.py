"""make reads whatever it is given: it builds, or says what is wrong, and never fails in our own code."""

from __future__ import annotations

import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from belljar.abi.limits import Limits
from tests.adapter import new_session, put, run_command

_PIECES = [
    "a", "b", "all", ":", "::", "=", ":=", "+=", "?=", "!=", "%", "%.o", " ", "\t", "\n", "\n\t", "$(", ")", "$", "$$",
    "${", "}", ",", "\\\n", "#", "ifeq (a,b)", "else", "endif", "define x", "endef", "include z", "$(call a,b)",
    "$(foreach i,a b,$(i))", "$(eval a: b)", "$(A)", "A", "|", ";", "&:", ".PHONY", "export", "override", "@echo hi",
    "$@", "$<", "$(word 1,a)", "$(patsubst %,x%,a)", "-include q", "vpath %.c d", "undefine A",
]  # fmt: skip


sys.setrecursionlimit(100_000)  # as the sessions do; hypothesis wants it to stay as it was


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=30).map("".join))
def test_any_makefile_ends_well(text: str) -> None:
    session = new_session(limits=Limits(wall_seconds=200))
    put(session, "/tmp/w/Makefile", text.encode())
    result = run_command(session, ["make", "-n"], cwd="/tmp/w")
    assert result.status in (0, 2)
