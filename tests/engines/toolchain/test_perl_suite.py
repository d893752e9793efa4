"""Perl's own tests of the basics, from the source that Debian has, run by the sandbox's perl.

The tests are those of 5.36 and the sandbox's perl is 5.42: docs/toolchains.md says what fails, and why.
"""

from __future__ import annotations

import io
import os
import re
import tarfile
from collections.abc import Iterator

import pytest

from belljar import Limits, Sandbox
from tests.debian import download

pytestmark = pytest.mark.slow

SOURCE = ("p/perl/perl_5.36.0.orig.tar.xz", "0f386dccbee8e26286404b2cca144e1005be65477979beb9b1ba272d4819bcf0")
GROUPS = ("base", "cmd", "comp", "op") if os.environ.get("BELLJAR_WHOLE") else ("base",)
TOP = "perl-5.36.0/"
WHOLE_FILES = {"base": 9, "cmd": 5, "comp": 20, "op": 130}
"""How many files of a group pass from their first test to their last; the rest is known to need what is not there."""
_LIBRARY = re.compile(rb"^\s*@INC\s*=\s*.*'\.\./lib'.*?;", re.MULTILINE)
"""Where a test sets the directory of modules: to that of a perl that is being built."""


def adapted(name: str, data: bytes) -> bytes:
    """A file of the suite that uses the modules of the perl which runs it."""
    if name.endswith((".t", ".pl")):
        data = _LIBRARY.sub(b"    ;", data)
    if name == "t/test.pl":
        data = data.replace(b"sub set_up_inc {", b"sub set_up_inc { return;")
        # For Windows; `system` is a function of ours, which can't have a block.
        data = data.replace(b"system({ $runperl } 1, ", b"system(1, ")
    return data


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(download(*SOURCE))) as source,
        tarfile.open(fileobj=made, mode="w") as suite,
    ):
        for member in source:
            name = member.name.removeprefix(TOP)
            file = source.extractfile(member) if name.startswith("t/") and member.isreg() else None
            if file is not None:
                data = adapted(name, file.read())
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                suite.addfile(entry, io.BytesIO(data))
    with Sandbox(limits=Limits(cpu_seconds=3600, wall_seconds=3600)) as sandbox:
        sandbox.files.write("/tmp/suite.tar", made.getvalue())
        sandbox.exec("mkdir /tmp/perl && tar xf /tmp/suite.tar -C /tmp/perl").check()
        yield sandbox


def passes(output: str) -> bool:
    """Whether a test's output has as many successes as it promises, and no failure that is not expected."""
    plan = re.search(r"^1\.\.(\d+)", output, re.MULTILINE)
    good = re.findall(r"^(?:ok \d+|not ok .*# TODO)", output, re.MULTILINE)
    return plan is not None and int(plan[1]) > 0 and len(good) == int(plan[1])


@pytest.mark.parametrize("group", GROUPS)
def test_perls_own_tests_pass(sandbox: Sandbox, group: str) -> None:
    found = sandbox.exec(f"cd /tmp/perl/t && ls {group}/*.t").stdout.split()
    outcome = {name: sandbox.exec(f"timeout 100 perl {name}", cwd="/tmp/perl/t", timeout=300) for name in found}
    failed = [name for name, done in outcome.items() if not passes(done.stdout)]
    assert len(found) - len(failed) >= WHOLE_FILES[group], failed
