"""Starts a native sandbox: its control group, its plan, its launcher; and ends all of it."""

from __future__ import annotations

import fcntl
import os
import platform
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from belljar.abi.base import environment
from belljar.abi.errors import SysError
from belljar.abi.limits import Limits
from belljar.abi.wire import FRAME_MAX, Failure, Ready, WorkerMessage, worker_frames
from belljar.lockdown.bpf import MACHINES
from belljar.lockdown.polling_host import readable
from belljar.lockdown.seal_host import landlock_rules
from belljar.lockdown.standard_host import open_standard_descriptors
from belljar.native.accounts import Account, choose_account
from belljar.native.agent_build_host import AgentUnavailable, agent_program
from belljar.native.plan import IDS, Ground, Ids, Inside, Step, Tree, encode_plan
from belljar.owner.cgroup_host import Cgroup
from belljar.owner.handle_host import CgroupUnavailable, WorkerHandle, WorkerUnavailable
from belljar.owner.launch_host import inheritable_descriptors
