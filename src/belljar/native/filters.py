"""System calls that programs in a native sandbox may make: an allow-list for guests, and one for pid 1.

For compilers, package managers, language runtimes, databases and debuggers. Calls that need privileges are refused
with EPERM, unknown ones with ENOSYS, so that programs fall back; those that only an attack makes end the process.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from belljar.abi.errno import EAFNOSUPPORT, ENOSYS, EPERM, EPROTONOSUPPORT
from belljar.lockdown.bpf import (
    ALLOW,
    ARGUMENTS,
    ERRNO,
    JUMP_EQUAL,
    JUMP_GREATER_EQUAL,
    JUMP_SET,
    KILL_PROCESS,
    MACHINES,
    Machine,
    check_machine,
    give,
    jump,
    load,
)

ALLOWED: Final = frozenset(
    """
    read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn
    pread64 pwrite64 readv writev access pipe select sched_yield mremap msync mincore madvise shmget shmat shmctl dup
    dup2 pause nanosleep getitimer alarm setitimer getpid sendfile connect accept sendto recvfrom sendmsg recvmsg
    shutdown bind listen getsockname getpeername socketpair setsockopt getsockopt fork vfork execve exit wait4 kill
    uname semget semop semctl shmdt msgget msgsnd msgrcv msgctl fcntl flock fsync fdatasync truncate ftruncate getdents
    getcwd chdir fchdir rename mkdir rmdir creat link unlink symlink readlink chmod fchmod chown fchown lchown umask
    gettimeofday getrlimit getrusage sysinfo times ptrace getuid getgid setuid setgid geteuid getegid setpgid getppid
    getpgrp setsid setreuid setregid getgroups setgroups setresuid getresuid setresgid getresgid getpgid setfsuid
    setfsgid getsid capget capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend sigaltstack utime mknod
    statfs fstatfs getpriority setpriority sched_setparam sched_getparam sched_setscheduler sched_getscheduler
    sched_get_priority_max sched_get_priority_min sched_rr_get_interval mlock munlock mlockall munlockall prctl
    arch_prctl setrlimit sync gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr
    llistxattr flistxattr removexattr lremovexattr fremovexattr tkill time futex sched_setaffinity sched_getaffinity
    io_setup io_destroy io_getevents io_submit io_cancel epoll_create getdents64 set_tid_address restart_syscall
    semtimedop fadvise64 timer_create timer_settime timer_gettime timer_getoverrun timer_delete clock_gettime
    clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl tgkill utimes mq_open mq_unlink mq_timedsend
    mq_timedreceive mq_notify mq_getsetattr waitid ioprio_set ioprio_get inotify_init inotify_add_watch inotify_rm_watch
    openat mkdirat mknodat fchownat futimesat newfstatat unlinkat renameat linkat symlinkat readlinkat fchmodat
    faccessat pselect6 ppoll set_robust_list get_robust_list splice tee sync_file_range vmsplice utimensat epoll_pwait
    signalfd timerfd_create eventfd fallocate timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1
    dup3 pipe2 inotify_init1 preadv pwritev rt_tgsigqueueinfo recvmmsg prlimit64 name_to_handle_at syncfs sendmmsg
    getcpu process_vm_readv process_vm_writev sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create
    execveat membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx rseq
    get_mempolicy io_pgetevents
    pidfd_send_signal pidfd_open close_range openat2 faccessat2 epoll_pwait2 landlock_create_ruleset landlock_add_rule
    landlock_restrict_self futex_waitv cachestat fchmodat2 map_shadow_stack futex_wake futex_wait futex_requeue mseal
    """.split()
)
"""Calls that are let through whatever their arguments. The kernel decides about ids, signals and tracing: a guest has
no capability that would help it, pid 1 can't be traced, and nothing outside its namespaces has a name there."""

REFUSED: Final = frozenset(
    """
    mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr open_tree_attr
    setns bpf perf_event_open userfaultfd keyctl add_key request_key open_by_handle_at fanotify_init fanotify_mark
    quotactl quotactl_fd swapon swapoff acct settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname
    syslog vhangup iopl ioperm kcmp pidfd_getfd process_madvise process_mrelease migrate_pages move_pages mbind
    set_mempolicy set_mempolicy_home_node lookup_dcookie
    """.split()
)
"""Calls that programs try and do without: EPERM. What is in neither list is ENOSYS, as on an older kernel; so are
io_uring, and clone3, whose flags a filter can't see."""

KILLED: Final = frozenset("kexec_load kexec_file_load init_module finit_module delete_module reboot".split())
"""Calls with which no program of a sandbox begins: the process ends."""

OWNERS: Final = frozenset("chown fchown lchown fchownat".split())

MOUNTING: Final = frozenset("mount umount2 open_tree move_mount fsopen fsconfig fsmount mount_setattr".split())
"""Calls that pid 1 may make besides: it mounts trees of the owner's later."""

NAMESPACES: Final = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
NEW_TIME: Final = 0x80
"""CLONE_NEWTIME: only for unshare; clone has the signal there."""
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
"""Input forged on a terminal; the console's selection."""
PERSONALITIES: Final = (0, 0x8, 0x20000, 0x40000, 0x60000, 0xFFFFFFFF)
"""PER_LINUX, PER_LINUX32, UNAME26, ADDR_NO_RANDOMIZE (debuggers), and the question which it is."""
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
PROTOCOLS: Final = (0, 1, 6, 17, 58)
"""IP protocols of sockets: the type's own, ICMP, TCP, UDP, ICMPv6."""
NETLINK_ROUTE: Final = 0
"""The only netlink protocol: the C library reads interfaces and addresses by it; without CAP_NET_ADMIN nothing more."""


def guest_filter(machine: Machine, *, one_id: bool = False) -> bytes:
    """The filter of every guest process. With `one_id`, for root of a sandbox that has no other id: changes of owner
    succeed and do nothing, so that package managers work.
    """
    return _build(machine.audit, ALLOWED, OWNERS if one_id else frozenset(), True)


def init_filter(machine: Machine) -> bytes:
    """The filter of pid 1. Guests have it too, beside theirs, so it refuses nothing that theirs lets through."""
    return _build(machine.audit, ALLOWED | MOUNTING, frozenset(), True)


def build_filter(machine: Machine, allowed: frozenset[str], *, sockets: bool) -> bytes:
    """The filter of a program of ours: only these calls, and those that are looked at closely. `sockets`: it may make
    some.
    """
    return _build(machine.audit, allowed, frozenset(), sockets)


@cache
def _build(audit: int, allowed: frozenset[str], ignored: frozenset[str], sockets: bool) -> bytes:
    machine = next(each for each in MACHINES.values() if each.audit == audit)
    numbers = machine.numbers
    refused = [jump(JUMP_EQUAL, TIOCSTI, 2, 0), jump(JUMP_EQUAL, TIOCLINUX, 1, 0), give(ALLOW)]
    verdicts = {
        numbers["clone"]: _check(0, [jump(JUMP_SET, NAMESPACES, 1, 0), give(ALLOW)], EPERM),
        numbers["unshare"]: _check(0, [jump(JUMP_SET, NAMESPACES | NEW_TIME, 1, 0), give(ALLOW)], EPERM),
        numbers["ioctl"]: _check(1, refused, EPERM),
        numbers["personality"]: _check(0, _one_of(PERSONALITIES), EPERM),
        numbers["socket"]: _check_socket() if sockets else [give(ERRNO | EPERM)],
    }
    for name, number in numbers.items():
        if name in ignored:
            verdicts[number] = [give(ERRNO | 0)]
        elif name in allowed:
            verdicts[number] = [give(ALLOW)]
        elif name in REFUSED or name in ALLOWED:
            verdicts[number] = [give(ERRNO | EPERM)]
        elif name in KILLED:
            verdicts[number] = [give(KILL_PROCESS)]
    unknown = [give(ERRNO | ENOSYS)]
    ranges: list[tuple[int, list[bytes]]] = []
    for number in range(max(verdicts) + 2):
        verdict = verdicts.get(number, unknown)
        if not ranges or verdict != ranges[-1][1]:
            ranges.append((number, verdict))
    return b"".join(check_machine(machine) + _search(ranges))


def _search(ranges: list[tuple[int, list[bytes]]]) -> list[bytes]:
    """Find a number's range by halves: the kernel runs a filter for each call there is when it is installed."""
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    below, above = _search(ranges[:middle]), _search(ranges[middle:])
    first = ranges[middle][0]
    return [jump(JUMP_GREATER_EQUAL, first, len(below), 0), *below, *above]


def _check(argument: int, allowing: list[bytes], errno: int) -> list[bytes]:
    """Load an argument's low word, run what may allow it, and refuse it with an error otherwise."""
    return [load(ARGUMENTS + 8 * argument), *allowing, give(ERRNO | errno)]


def _one_of(values: tuple[int, ...]) -> list[bytes]:
    return [part for value in values for part in (jump(JUMP_EQUAL, value, 0, 1), give(ALLOW))]


def _check_socket() -> list[bytes]:
    """Let sockets through by family and protocol: Unix ones, IP ones of PROTOCOLS, and NETLINK_ROUTE."""
    ip = [load(ARGUMENTS + 8 * 2), *_one_of(PROTOCOLS), give(ERRNO | EPROTONOSUPPORT)]
    netlink = [load(ARGUMENTS + 8 * 2), *_one_of((NETLINK_ROUTE,)), give(ERRNO | EPROTONOSUPPORT)]
    families = [
        jump(JUMP_EQUAL, AF_UNIX, 0, 1),
        give(ALLOW),
        jump(JUMP_EQUAL, AF_INET, 1, 0),
        jump(JUMP_EQUAL, AF_INET6, 0, len(ip)),
        *ip,
        jump(JUMP_EQUAL, AF_NETLINK, 0, len(netlink)),
        *netlink,
    ]
    return _check(0, families, EAFNOSUPPORT)
