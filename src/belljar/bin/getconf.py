"""getconf - query system configuration variables

Usage: getconf NAME [PATH]
       getconf -a
"""

from belljar.abi.base import DEFAULT_PATH
from belljar.abi.flags import ARG_MAX, NAME_MAX, PATH_MAX
from belljar.bin._kit import UsageError, utility
from belljar.kernel.process import Process


@utility("getconf", usage_status=2)
def main(process: Process, args: list[str]) -> int:
    machine, pages = process.kernel.machine, process.kernel.memory_bytes // 4096
    values = {
        "ARG_MAX": ARG_MAX, "CHILD_MAX": process.budget.limits.processes, "OPEN_MAX": process.budget.limits.open_files,
        "NAME_MAX": NAME_MAX, "PATH_MAX": PATH_MAX, "PAGE_SIZE": 4096, "PAGESIZE": 4096, "LONG_BIT": 64,
        "INT_MAX": 2**31 - 1,
        "CLK_TCK": 100, "PIPE_BUF": 4096, "LINE_MAX": 2048, "HOST_NAME_MAX": 64, "NPROCESSORS_CONF": machine.cores,
        "_NPROCESSORS_CONF": machine.cores, "_NPROCESSORS_ONLN": machine.cores, "NPROCESSORS_ONLN": machine.cores,
        "_PHYS_PAGES": pages, "_AVPHYS_PAGES": pages,
        "PATH": DEFAULT_PATH,
        "GNU_LIBC_VERSION": "glibc 2.36", "_POSIX_VERSION": 200809, "POSIX2_VERSION": 200809, "SYMLOOP_MAX": 40,
    }  # fmt: skip
    if args == ["-a"]:
        for name, found in values.items():
            process.print(f"{name:<34} {found}")
        return 0
    if not args:
        raise UsageError("usage: getconf NAME [PATH]", hint=False)
    if args[0] not in values:
        process.warn(f"Unrecognized variable `{args[0]}'")
        return 2
    process.print(str(values[args[0]]))
    return 0
