"""What is compiled and run in a sandbox, and one-liners of Perl and Ruby, say what they say on a real machine.

`python -m tests.spec.record tests/engines/toolchain/perl.spec` recorded that.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from belljar import Sandbox
from tests.spec.cases import Case, read_cases

pytestmark = pytest.mark.slow

CASES = [
    case for name in ("cc.spec", "perl.spec", "ruby.spec") for case in read_cases(Path(__file__).with_name(name))[1]
]


@pytest.mark.battery(sample=60)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_says_what_a_real_machine_says(sandbox: Sandbox, case: Case) -> None:
    sandbox.exec("rm -rf /tmp/w; mkdir /tmp/w")
    for name, value in case.files.items():
        assert isinstance(value, bytes)
        sandbox.files.write(f"/tmp/w/{name}", value)
    done = sandbox.exec(["bash", "-c", case.script], cwd="/tmp/w", stdin=case.stdin, timeout=300)
    assert (done.stdout, done.exit_code) == (case.stdout.decode(), case.status), done.stderr
    if case.stderr is not None:
        assert done.stderr == case.stderr.decode()
