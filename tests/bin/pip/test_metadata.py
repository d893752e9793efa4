"""Our reading of METADATA is that of `packaging`, for the fields that pip asks for."""

from __future__ import annotations

import pytest
from packaging.metadata import parse_email

from belljar.bin.pip.metadata import parse_headers, parse_metadata

PLAIN = b"""Metadata-Version: 2.1
Name: thing
Version: 1.2.post1
Summary: does: things
Home-page: https://thing.example
Author: N\xc3\xb6
Author-email: n@thing.example
License: MIT
Project-URL: Source, https://thing.example/src
Project-URL: Home, https://thing.example/, really
Requires-Python: >=3.8
Requires-Dist: other>=1 ; python_version < "3.9"
Requires-Dist: more[extra]
Provides-Extra: extra

Name: not this one
"""
FOLDED = b"Name: a\nVersion: 1\nLicense: first line\n        second line\n\tthird\nrequires-dist: b\n"


@pytest.mark.parametrize(
    "data",
    [
        PLAIN,
        PLAIN.replace(b"\n", b"\r\n"),
        FOLDED,
        b"Name: a\nVersion: 1\nno header\nSummary: in the body\n",
        b"Name: a\nVersion: 1",
        b"NAME:a\nVersion:\t1\nSummary:\n",
        b"",
        b"\nName: a\n",
        b"Name: a\x0bb\nVersion: 1\x1c2\n",
    ],
)
def test_as_packaging_reads_it(data: bytes) -> None:
    theirs, _ = parse_email(data)
    ours = parse_metadata(data)
    assert ours == {key: value for key, value in theirs.items() if key in ours}
    assert set(ours) == set(theirs) & PLAIN_FIELDS


PLAIN_FIELDS = set(parse_metadata(PLAIN)) | {"license_expression"}


def test_what_is_there_twice_is_what_it_was_first() -> None:
    assert parse_metadata(b"Name: a\nName: b\n") == {"name": "a"}


def test_headers() -> None:
    assert list(parse_headers(b"Wheel-Version: 1.0\nTag: a\nTag: b\n")) == [
        ("wheel-version", "1.0"),
        ("tag", "a"),
        ("tag", "b"),
    ]
    assert list(parse_headers(b" : x\nA: b\n")) == []
