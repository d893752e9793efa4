"""Plans of native sandboxes: what is in them, in which order, for owners with many ids and with one."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pytest

from belljar.abi.errors import ImageError
from belljar.abi.limits import MIB, Limits
from belljar.lockdown.bpf import X86_64
from belljar.native import plan as plans
from belljar.native.accounts import Account, choose_account
from belljar.native.plan import Ground, Ids, Inside, encode_plan
from belljar.native.roots import Bind

AGENT = Account("agent", 1000, 1000, "/home/agent")
MANY, ONE = Ids(0, 0, 0x70000000), Ids(501, 502, None)


def make(ids: Ids = MANY, account: Account = AGENT, **changes: Any) -> dict[str, Any]:
    ground: dict[str, Any] = {
        "machine": X86_64,
        "ids": ids,
        "landlock": struct.pack("<QQQ", 0xFFFF, 3, 3),
        "lowers": ["/cache/a", "/cache/b"],
        "binds": [Bind("/usr", "/usr")],
        "cgroups": ["/sys/fs/cgroup/x"],
    }
    inside: dict[str, Any] = {
        "account": account,
        "hostname": "here",
        "cwd": "/workspace",
        "limits": Limits(file_bytes=5 * MIB, files=77, processes=9, memory_bytes=100 * MIB),
        "bounded": True,
        "files": [("/etc/passwd", b"x")],
        "network": [["netlink", 0, b""]],
    }
    for name, value in changes.items():
        (ground if name in ground else inside)[name] = value
    frame = encode_plan(Ground(**ground), Inside(**inside))
    assert struct.unpack_from("<I", frame)[0] == len(frame) - 4
    names = "kind version flags uid_map gid_map uid gid cgroups trees guest steps tests".split()
    return dict(zip(names, msgspec.msgpack.decode(frame[4:]), strict=True))


def ops(plan: dict[str, Any], name: str) -> list[list[Any]]:
    return [step for step in plan["steps"] if step[0] == name]


def position(plan: dict[str, Any], *step: Any) -> int:
    return next(at for at, each in enumerate(plan["steps"]) if each[: len(step)] == list(step))


def test_an_owner_with_many_ids_gives_a_range() -> None:
    plan = make(MANY)
    assert plan["uid_map"] == plan["gid_map"] == b"0 1879048192 65536"
    assert (plan["uid"], plan["gid"]) == (0, 0)
    assert plan["guest"][3:] == [1000, 1000, [1000]]
    image = plans.ATTR_RDONLY | plans.ATTR_NOSUID | plans.ATTR_NODEV
    assert plan["trees"] == [["/cache/a", image, False], ["/cache/b", image, False], ["/usr", image, True]]
    assert [step[1:] for step in ops(plan, "attach")] == [[0, "/sys/0"], [1, "/sys/1"], [2, "/sys/root/usr"]]
    assert ["layer", "ids"] in plan["steps"]


def test_an_owner_with_one_id_gives_that() -> None:
    plan = make(ONE)
    assert (plan["uid_map"], plan["gid_map"]) == (b"1000 501 1", b"1000 502 1")
    assert (plan["uid"], plan["gid"]) == (1000, 1000)
    assert plan["guest"][3:] == [1000, 1000, None]
    assert plan["trees"] == []
    assert ops(plan, "attach") == []
    image = plans.ATTR_RDONLY | plans.ATTR_NOSUID | plans.ATTR_NODEV
    assert ["bind", "/cache/a", "/sys/0", image] in plan["steps"]
    assert ["layer", "ids"] not in plan["steps"]
    assert {tuple(step[3:]) for step in ops(plan, "mkdir")} <= {(1000, 1000), (-1, -1)}


def test_the_order_of_walls() -> None:
    plan = make()
    at = [
        position(plan, "mount", "", "/"),
        position(plan, "write", "/sys/upper/etc/passwd"),
        position(plan, "mount", "overlay"),
        position(plan, "attach", 2),
        position(plan, "mount", "proc"),
        position(plan, "pivot"),
        position(plan, "netlink"),
        position(plan, "mask", "/proc/kcore"),
        position(plan, "seccomp"),
        position(plan, "mounter"),
        position(plan, "try", "landlock"),
    ]
    assert at == sorted(at)
    assert plan["steps"][-1] == ["layer", "seccomp"]


def test_limits() -> None:
    plan = make()
    assert "size=5242880,nr_inodes=77,mode=755" in ops(plan, "mount")[1]
    limits = dict(plan["guest"][1])
    assert limits[plans.RLIMIT_NPROC] == 9
    assert plans.RLIMIT_DATA not in limits
    assert dict(make(bounded=False)["guest"][1])[plans.RLIMIT_DATA] == 100 * MIB
    assert dict(make(ONE)["guest"][1])[plans.RLIMIT_NPROC] == 9 + plans.AGENT_PROCESSES


def test_only_root_inside_has_capabilities_and_none_of_an_administrator() -> None:
    assert make()["guest"][2] == 0
    kept = make(account=Account("root", 0, 0, "/root"))["guest"][2]
    assert {number for number in range(64) if kept >> number & 1} == {0, 1, 3, 4, 5, 6, 7, 10}


def test_a_root_without_lower_directories_is_the_writable_one() -> None:
    plan = make(lowers=[], binds=[])
    assert ["bind", "/sys/upper", "/sys/root", 0] in plan["steps"]
    assert not [step for step in ops(plan, "mount") if step[1] == "overlay"]


def test_a_kernel_without_landlock_has_no_such_step() -> None:
    assert ops(make(landlock=b""), "try") == [step for step in ops(make(), "try") if step[1] != "landlock"]


@pytest.mark.parametrize(("version", "size"), [(1, 8), (4, 16), (6, 24)])
def test_landlock_handles_what_the_kernel_knows_and_no_ports(version: int, size: int) -> None:
    rights = {1: (1 << 13) - 1, 4: (1 << 15) - 1, 6: (1 << 16) - 1}[version]
    plan = make(landlock=struct.pack("<QQQ", rights, 3, 3)[:size])
    _, _, (_, handled, rules) = next(step for step in ops(plan, "try") if step[1] == "landlock")
    assert len(handled) == size
    assert struct.unpack_from("<Q", handled)[0] == rights
    assert size == 8 or handled[8:16] == bytes(8)
    assert rules == [["/", rights & ~(1 << 6 | 1 << 11)]]


def test_directories_on_the_way_are_made() -> None:
    plan = make(cwd="/srv/deep/work", files=[("/usr/share/ca/x.crt", b"")])
    made = [step[1] for step in ops(plan, "mkdir")]
    for path in ("srv", "srv/deep", "srv/deep/work", "usr/share", "usr/share/ca"):
        assert f"/sys/upper/{path}" in made
    assert made.index("/sys/upper/srv") < made.index("/sys/upper/srv/deep")
    assert ["mkdir", "/sys/upper/srv/deep/work", 0o755, 1000, 1000] in plan["steps"]


@pytest.mark.parametrize("path", ["/../../etc/cron.d", "/a/../../../etc", "/./..//x", "/..", "//", "/a/.."])
def test_no_path_leads_out_of_the_writable_layer(path: str) -> None:
    plan = make(account=Account("agent", 1000, 1000, path), cwd=path, files=[(f"{path}/file", b"")])
    for step in (*ops(plan, "mkdir"), *ops(plan, "write")):
        assert ".." not in step[1].split("/")
        assert step[1].startswith("/sys/")


def test_an_id_that_a_sandbox_has_not() -> None:
    with pytest.raises(ImageError, match="0 to 65535"):
        choose_account("70000", "", "")


PASSWD = "root:x:0:0:root:/root:/bin/sh\nbob:x:1000:50:Bob:/home/bob:/bin/zsh\n"
GROUP = "root:x:0:\nstaff:x:50:\n"


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("root", Account("root", 0, 0, "/root")),
        ("bob", Account("bob", 1000, 50, "/home/bob")),
        ("1000", Account("bob", 1000, 50, "/home/bob")),
        ("bob:root", Account("bob", 1000, 0, "/home/bob")),
        ("0:50", Account("root", 0, 50, "/root")),
        ("agent", Account("agent", 1001, 1001, "/home/agent")),
        ("4711:4712", Account("agent", 4711, 4712, "/home/agent")),
    ],
)
def test_accounts(user: str, expected: Account) -> None:
    account, passwd, group = choose_account(user, PASSWD, GROUP)
    assert account == expected
    assert passwd.startswith(PASSWD)
    assert group.startswith(GROUP)
    assert f"{account.name}:x:{account.uid}:" in passwd


def test_an_image_without_accounts_gets_some() -> None:
    account, passwd, group = choose_account("agent", "", "")
    assert account == AGENT
    assert [line.split(":")[0] for line in passwd.splitlines()] == ["root", "nobody", "agent"]
    assert "agent:x:1000:\n" in group


@pytest.mark.parametrize("text", ["nonsense", ":::::::::", "a:b:c:d:e:f:g\n", "agent:x:notanumber:1::/:/bin/sh\n"])
def test_a_hostile_passwd_file_does_no_harm(text: str) -> None:
    account, _, _ = choose_account("agent", text, text)
    assert account.uid == 1000
    assert account.home == "/home/agent"
