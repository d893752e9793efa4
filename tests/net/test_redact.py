"""An echoed secret is masked however it is written and wherever the stream is cut."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.net.redact import Redactor, parts

SECRET = "ghp_s3cr3t/+token?=42"


@pytest.mark.parametrize(
    "echo",
    [
        SECRET.encode(),
        quote(SECRET, safe="").encode(),
        json.dumps({"a": SECRET + '"'}).encode(),
        SECRET.encode().hex().encode(),
        base64.b64encode(SECRET.encode()),
        base64.b64encode(b"user:" + SECRET.encode()),
        base64.urlsafe_b64encode(b"xy" + SECRET.encode() + b"!"),
        base64.b64encode(b"z" + SECRET.encode() + b"tail"),
    ],
)
@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_each_spelling_is_masked(echo: bytes, cut: int) -> None:
    redactor = Redactor([SECRET])
    data = b"before " + echo + b" after"
    out = b"".join(redactor.feed(data[at : at + cut]) for at in range(0, len(data), cut)) + redactor.flush()
    assert len(out) == len(data)
    assert out.startswith(b"before ")
    assert out.endswith(b" after")
    assert redactor.count >= 1
    for form in (SECRET.encode(), base64.b64encode(SECRET.encode())[2:-4], SECRET.encode().hex().encode()):
        assert form not in out


def test_the_parts_of_a_header_are_secrets_too() -> None:
    assert "abc123" in parts("Bearer abc123")
    assert {"bob:hunter2", "hunter2"} <= parts("Basic " + base64.b64encode(b"bob:hunter2").decode())


def test_a_longer_secret_that_begins_with_a_shorter_one() -> None:
    redactor = Redactor(["toke", "token-long", "ong-tail"])
    assert redactor.feed(b"x toke") + redactor.feed(b"n-long-tail y") + redactor.flush() == b"x *************** y"


def test_what_can_not_become_a_secret_is_not_held_back() -> None:
    redactor = Redactor(["s3cret-s3cret-s3cret"])
    assert redactor.feed(b"data: 1\n\n") == b"data: 1\n\n"
    assert redactor.feed(b"data: s3cr") == b"data: "
    assert redactor.feed(b"ew") == b"s3crew"


@given(st.lists(st.text("abA%+", min_size=4, max_size=9), min_size=1, max_size=3), st.data())
def test_wherever_it_is_cut_the_same_is_hidden(secrets: list[str], data: st.DataObject) -> None:
    """In pieces or whole: the same bytes come out, as long as what went in, and no secret among them."""
    pieces = [st.sampled_from([secret.encode() for secret in secrets]), st.text("abA%+", max_size=5).map(str.encode)]
    text = b"".join(data.draw(st.lists(st.one_of(pieces), max_size=8)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    redactor = Redactor(secrets)
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    out = b"".join([*map(redactor.feed, parts), redactor.flush()])
    assert out == Redactor(secrets).whole(text)
    assert len(out) == len(text)
    assert not any(secret.encode() in out for secret in secrets)


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_what_is_no_secret_passes_unchanged(chunks: list[bytes]) -> None:
    redactor = Redactor(["a-very-unlikely-secret-0123456789"])
    assert b"".join([*map(redactor.feed, chunks), redactor.flush()]) == b"".join(chunks)
