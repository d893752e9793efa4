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


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_what_is_no_secret_passes_unchanged(chunks: list[bytes]) -> None:
    redactor = Redactor(["a-very-unlikely-secret-0123456789"])
    assert b"".join([*map(redactor.feed, chunks), redactor.flush()]) == b"".join(chunks)
