"""Programs that can't be in the virtual tier: one clear line that says so, and which tier has them."""

from __future__ import annotations

from belljar.bin._kit import Program, utility
from belljar.kernel.process import Process

NATIVE = "the native and vm tiers run real programs"
VM = "the vm tier has it"


def absent(name: str, what: str, where: str) -> Program:
    """A program that explains why it is not there, with the shell's status for that."""

    def explain(process: Process, args: list[str]) -> int:
        process.error(f"{process.name}: {what} can't run in the virtual tier: {where}\n")
        return 127

    return utility(name, doc=f"{name} - not in this tier: {what}")(explain)
