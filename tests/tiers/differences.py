"""Everything in which a tier differs from the others, by its documentation. A case asserts what stands here.

`Refused` is an error that the call raises; any other value stands for the behaviour of the tier, where a case asks for
it by `tier.behaviour(feature, usual)`. A feature that is not listed for a tier works there as everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from belljar import NotOnThisTier, SandboxError
from belljar.native.launch_host import owner_ids


@dataclass(frozen=True)
class Refused:
    """An error that says what to do instead."""

    error: type[SandboxError]
    text: str
    """A regular expression that its message matches."""


ONE_ID: dict[str, Any] = {} if owner_ids().base is not None else {"users are separate": False}
"""Of a native sandbox whose owner is an ordinary user, and has one id to give: inside, all files are its user's, root's
too. The host image's /usr, and what only a capability allows, are out of reach all the same (docs/native.md, `ids`)."""

DIFFERENCES: dict[str, dict[str, Any]] = {
    "virtual": {},
    "remote": {
        # That of its server.
        "name of the tier": "virtual",
    },
    "native": {
        "fork copies processes": False,
        **ONE_ID,
        # They are the owner's, as all mounts are; a sandbox's host name is written at its start.
        "snapshots keep memory mounts": False,
        "a removed /etc/hostname": "/etc/hostname\n",
        # The interpreter is a real bash: its work is limited as processor time, wall clock and memory are.
        "limits of the interpreter": False,
        "programs of the base image": (126, ""),
    },
    "remote-native": {
        "name of the tier": "native",
        **ONE_ID,
        # What a native sandbox has of these needs its owner on the same machine.
        "refused connections are events": False,
        "fork": Refused(NotOnThisTier, r"not possible on tier 'native' \(of a server"),
        "snapshots": Refused(NotOnThisTier, r"not possible on tier 'native' \(of a server"),
        "images of the owner": Refused(NotOnThisTier, r"not possible on tier 'native' \(of a server"),
        "network": Refused(NotOnThisTier, r"not possible on tier 'native' \(of a server"),
        "snapshots keep memory mounts": False,
        "a removed /etc/hostname": "/etc/hostname\n",
        "limits of the interpreter": False,
        "programs of the base image": (126, ""),
    },
    "microvm": {
        "snapshots keep memory mounts": False,
        "a removed /etc/hostname": "/etc/hostname\n",
        "limits of the interpreter": False,
        "programs of the base image": (126, ""),
    },
}
