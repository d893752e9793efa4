"""The worker's way to the network's broker: the owner hands over a socket when it is first needed."""

from __future__ import annotations

from collections.abc import Callable

from belljar.abi.errno import EACCES
from belljar.abi.errors import SysError
from belljar.kernel.fiber import Hub
from belljar.kernel.machine_host import DescriptorPoller
from belljar.net.guest.uplink import Uplink
from belljar.net.wire import BrokerFrame, broker_frames
from belljar.worker.frames_host import FrameChannel
from belljar.worker.hosted import Hosted


def network_dialer(hosted: Hosted, hub: Hub, poller: DescriptorPoller) -> Callable[[Uplink], FrameChannel[BrokerFrame]]:
    """Asks the owner for a way to its broker. EACCES if no network was granted."""

    def connect(uplink: Uplink) -> FrameChannel[BrokerFrame]:
        answer, descriptors = hosted.question(b"net", "open", [])
        if answer.errno or not descriptors:
            raise SysError(answer.errno or EACCES)
        return FrameChannel(descriptors[0].take(), hub, poller, broker_frames(), uplink.take, uplink.lost)

    return connect
