"""Branches of a sandbox."""

from __future__ import annotations

import pytest

from belljar import Mount, Sandbox
from tests.tiers.conftest import Make, Tier

pytestmark = pytest.mark.feature("fork")


def test_files_are_branched(make: Make) -> None:
    sb = make()
    sb.exec("mkdir d; echo common > d/f; echo keep > k; ln -s d/f l; chmod 700 d")
    branch = make.keep(sb.fork())
    branch.exec("echo branch > d/f; rm k")
    sb.exec("echo origin > new")
    assert branch.exec("cat l; ls; stat -c %a d").stdout == "branch\nd\nl\n700\n"
    assert sb.exec("cat l; ls").stdout == "common\nd\nk\nl\nnew\n"


def test_several(make: Make) -> None:
    sb = make(files={"/workspace/n": "0"})
    branches = sb.fork(3)
    assert isinstance(branches, list)
    for number, branch in enumerate(map(make.keep, branches)):
        branch.files.write("n", str(number))
    assert [branch.exec("cat n").stdout for branch in branches] == ["0", "1", "2"]
    assert len({branch.name for branch in (sb, *branches)}) == 4


def test_settings_are_those_of_the_origin(make: Make) -> None:
    sb = make(env={"A": "1"}, cwd="/srv/x", user="other", hostname="box")
    branch = make.keep(sb.fork())
    assert branch.exec("echo $A; pwd; id -un; hostname").stdout == "1\n/srv/x\nother\nbox\n"


def test_a_branch_outlives_its_origin(make: Make) -> None:
    sb = make(files={"/workspace/f": "x"})
    branch = make.keep(sb.fork())
    sb.close()
    assert branch.exec("cat f; echo y > g; cat g").stdout == "xy\n"


def test_a_branch_of_a_branch(make: Make) -> None:
    sb = make(files={"/workspace/f": "0"})
    branch = sb
    for n in range(1, 4):
        branch = make.keep(branch.fork())
        branch.exec(f"echo -n {n} >> f")
    assert branch.files.read("f") == "0123"
    assert sb.files.read("f") == "0"


def test_tools_are_in_a_branch(make: Make) -> None:
    sb = make(tools={"double": lambda n: int(n) * 2})
    assert make.keep(sb.fork()).exec("double 21").stdout == "42\n"


@pytest.mark.feature("mounts")
def test_memory_mounts_are_branched(make: Make) -> None:
    sb = make(mounts={"/m": Mount.memory({"f": "1"})})
    branch = make.keep(sb.fork())
    branch.exec("echo 2 > /m/f")
    assert sb.exec("cat /m/f").stdout == "1"


def test_processes_of_a_branch(make: Make, tier: Tier) -> None:
    """Those of the origin go on there; in the branch they do too, where the tier can copy processes."""
    sb = make()
    process = sb.spawn("while [ ! -e go ]; do sleep 0.05; done; echo went > went")
    branch = make.keep(sb.fork())
    branch.files.write("go", "")
    if tier.behaviour("fork copies processes", True):
        assert branch.exec("until [ -e went ]; do sleep 0.05; done", timeout=60).ok
    else:
        assert branch.exec("sleep 2; [ ! -e went ]").ok
    assert not process.exited
    sb.files.write("go", "")
    assert process.wait(120) == 0


@pytest.mark.feature("snapshots")
def test_a_durable_branch_has_files_and_no_processes(make: Make) -> None:
    sb = make(files={"/workspace/f": "x"})
    sb.spawn("sleep 60")
    branch = make.keep(sb.fork(durable=True))
    assert branch.exec("cat f").stdout == "x"
    assert branch.stats()["processes"] == 0


@pytest.mark.parametrize("count", [0, -1, "2"])
def test_what_is_no_number_of_branches(sb: Sandbox, count: int) -> None:
    with pytest.raises((TypeError, ValueError), match=r"branch|count|fork"):
        sb.fork(count)
