"""Hunks put back together: all of them are the new file, none the old one, however they are split."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from belljar.bin.git.repository.diffs import Pair
from belljar.bin.git.repository.patch_hunks import apply_hunks, parse_edited, read_hunks
from belljar.bin.git.repository.work import hash_blob
from tests.adapter import new_session

TEXTS = st.lists(
    st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"@@ -1 +1 @@\n", b"\\ x\n", b"a\r\n"]), max_size=30
).map(b"".join) | st.binary(max_size=30).filter(lambda data: b"\0" not in data)
PROCESS = new_session().kernel.init


@settings(max_examples=150, deadline=None)
@given(TEXTS, TEXTS)
def test_hunks_make_the_file(before: bytes, after: bytes) -> None:
    pair = Pair("f", "f", 0o100644, 0o100644, before, after, hash_blob(before), hash_blob(after))
    _, hunks = read_hunks(PROCESS, pair)
    split = [part for hunk in hunks for part in hunk.split()]
    assert apply_hunks(before, hunks) == after
    assert apply_hunks(before, split) == after
    assert apply_hunks(before, []) == before
    assert all(hunk.fits(before) for hunk in [*hunks, *split])
    for hunk in hunks:
        assert parse_edited(hunk, hunk.text()) == hunk
