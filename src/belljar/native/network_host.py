"""The owner's side of a native sandbox's network: steps and files for its plan, then the proxy on its sockets."""

from __future__ import annotations

import os
import socket
import ssl
import stat
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Final

from belljar.kernel.fs.openat2_host import IN_ROOT, NO_MAGICLINKS, openat2
from belljar.native.network import GUEST, LISTENERS, NEAR_ADDRESS, RESOLVER, Step, closed, redirected
from belljar.native.trust import BUNDLES, trust
from belljar.net.broker.authority_host import SandboxAuthority
from belljar.net.broker.gate_host import Gate
from belljar.net.broker.proxy_host import start_proxy
from belljar.net.broker.udp_host import Packets
from belljar.net.network import Network

_BUNDLE_MAX: Final = 4 << 20
_NO_RULES: Final = (
    "\na sandbox with a network needs the kernel's nf_tables, with NAT (Linux 5.2 or newer), and veth: as root,"
    " modprobe -a nf_tables nft_chain_nat nft_nat nft_ct nft_reject_inet nft_limit veth"
)
NO_RESOLVER: Final = b"# this sandbox has no network\noptions timeout:0 attempts:1\n"
"""So that resolvers that wait for an answer, whatever the kernel says, wait for none."""


class NativeNetwork:
    """The network of one sandbox, while its plan is made: `steps`, `files` and `environment` go into it.

    Without a network the namespace has no way out at all. One that denies everything is given where that is recorded.
    """

    def __init__(self, network: Network | None, name: str, lowers: Sequence[str] = ()) -> None:
        self.redirected = network is not None
        self.files: dict[str, bytes] = {"/etc/resolv.conf": NO_RESOLVER}
        """Files to write in the root, with directories on the way to them."""
        self.environment: dict[str, str] = {}
        """Variables for what the image and the owner do not set."""
        self._authority: SandboxAuthority | None = None
        self._rate = 0.0 if network is None else network.limits.requests_per_second
        self._udp = network is not None and network.asks_owner
        if network is None:
            return
        self.files["/etc/resolv.conf"] = f"nameserver {RESOLVER}\n".encode()
        if network.asks_owner:
            self._authority = SandboxAuthority(name)
            files, self.environment = trust(
                self._authority.certificate,
                self._authority.common_name,
                lambda path: find_in_root(lowers, path),
                _public_authorities,
            )
            self.files.update(files)

    def steps(self) -> list[Step]:
        """Steps that set up the namespace."""
        return redirected(ip_versions(), self._rate, udp=self._udp) if self.redirected else closed()

    def serve(self, gate: Gate, sockets: Sequence[socket.socket]) -> Callable[[], None]:
        """Start the proxy on the sockets of the plan's `listen` steps, in their order. They are the gate's then. Gives
        a function that ends it before the gate does.
        """
        return serve_redirected(gate, sockets, self._authority)


def serve_redirected(
    gate: Gate, sockets: Sequence[socket.socket], authority: SandboxAuthority | None
) -> Callable[[], None]:
    """Start the proxy on the sockets that the steps of `redirected` made."""
    packets = [each for each in sockets if each.family == socket.AF_PACKET]
    listeners = [each for each in sockets if each.family != socket.AF_PACKET]
    tcp, dns_listeners, dns_datagrams = (listeners[kind :: len(LISTENERS)] for kind in range(len(LISTENERS)))
    return start_proxy(
        gate,
        tcp=tcp,
        dns_listeners=dns_listeners,
        dns_datagrams=dns_datagrams,
        udp=Packets(packets, tuple(GUEST.values()), NEAR_ADDRESS),
        authority=authority,
    )


def explain_rules(failure: str) -> str:
    """Say what the kernel lacks, if it was a step of ours that failed; else ""."""
    return _NO_RULES if "(netlink" in failure else ""


def ip_versions() -> tuple[int, ...]:
    """The IP versions of this machine's kernel."""
    return (4, 6) if os.path.exists("/proc/net/if_inet6") else (4,)


def find_in_root(lowers: Sequence[str], path: str) -> tuple[str, bytes] | None:
    """A file of an image, or a directory (with b""), and its path without links. None for what is not there."""
    for lower in lowers:
        with suppress(OSError), ExitStack() as opened:
            root = os.open(lower, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            opened.callback(os.close, root)
            fd = openat2(root, os.fsencode(path), os.O_RDONLY | os.O_NONBLOCK, IN_ROOT | NO_MAGICLINKS)
            opened.callback(os.close, fd)
            place = "/" + os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), os.readlink(f"/proc/self/fd/{root}"))
            mode = os.fstat(fd).st_mode
            if stat.S_ISDIR(mode):
                return place, b""
            if stat.S_ISREG(mode):
                return place, _read(fd)
    return None


def _read(fd: int) -> bytes:
    with open(fd, "rb", closefd=False) as file:
        return file.read(_BUNDLE_MAX)


def _public_authorities() -> bytes:
    """This machine's own, for images that have none."""
    path = ssl.get_default_verify_paths().cafile or BUNDLES[0]
    with suppress(OSError), open(path, "rb") as file:
        return file.read(_BUNDLE_MAX)
    return b""
