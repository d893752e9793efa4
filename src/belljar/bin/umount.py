"""umount - remove a mount

Usage: umount DIRECTORY...
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, utility
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    lazy: bool = flag("-l", "--lazy", "(ignored)")
    force: bool = flag("-f", "--force", "(ignored)")
    system: bool = flag("--system", "for every command that is started from now on (takes root)")


@utility("umount", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("bad usage")
    status = 0
    for path in operands:
        try:
            (process.system_namespace() if options.system else process.parent_namespace()).unmount(path)
        except SysError as error:
            reason = "not mounted." if error.name == "EINVAL" else error.reason
            process.warn(f"{path}: {reason}")
            status = 32
    return status
