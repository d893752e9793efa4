/* Attempts to leave a native sandbox, or to reach more of the kernel than it grants: `attacks NAME` tries one and prints
 * the name of the error, or what came of it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static char page[65536];

static long open_for(const char *path, int flags) { return open(path, flags); }
static long write_to(const char *path, const char *text) {
    int fd = open(path, O_WRONLY);
    return fd < 0 ? -1 : write(fd, text, strlen(text));
}

static long clone_user(void) { return syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0) == 0 ? (_exit(0), 0) : -1; }
static long clone_all(void) {
    long pid = syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0);
    return pid == 0 ? (_exit(0), 0) : pid;
}
static long join(void) {
    int fd = open("/proc/1/ns/mnt", O_RDONLY);
    return fd < 0 ? -1 : syscall(SYS_setns, fd, 0);
}
static long join_own(void) { return syscall(SYS_setns, open("/proc/self/ns/net", O_RDONLY), 0); }
static long kill_init(void) {
    long result = kill(1, SIGKILL);
    usleep(100000);
    return result;
}
static long peek_init(void) {
    struct iovec here = {page, 64}, there = {(void *)0x400000, 64};
    return process_vm_readv(1, &here, 1, &there, 1, 0);
}
static long raise_limit(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NPROC, &limit);
    limit.rlim_max = limit.rlim_cur = limit.rlim_max + 1;
    return setrlimit(RLIMIT_NPROC, &limit);
}
static long all_capabilities(void) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}};
    return syscall(SYS_capset, &head, sets);
}
static long ambient(void) { return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0); }
static long route(int kind, int flags) {
    struct {
        struct nlmsghdr head;
        struct ifinfomsg link;
    } message = {{sizeof message, kind, NLM_F_REQUEST | NLM_F_ACK | flags, 1, 0}, {.ifi_index = 1, .ifi_change = IFF_UP}};
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    if (fd < 0 || send(fd, &message, sizeof message, 0) < 0 || recv(fd, page, sizeof page, 0) < 0)
        return -1;
    struct nlmsghdr *answer = (void *)page;
    struct nlmsgerr *error = NLMSG_DATA(answer);
    if (answer->nlmsg_type == NLMSG_ERROR && error->error) {
        errno = -error->error;
        return -1;
    }
    return 0;
}
static long link_down(void) { return route(RTM_SETLINK, 0); }
static long list_links(void) { return route(RTM_GETLINK, NLM_F_DUMP); }
static long setuid_program(void) { /* a copy of ourselves, owned by us, with the set-user-id bit: never another user */
    return system("cp /proc/self/exe /tmp/s 2>/dev/null; chmod 6755 /tmp/s; exit 0");
}
static long terminal(int request) {
    int fd = posix_openpt(O_RDWR);
    return fd < 0 ? -1 : ioctl(fd, request, "x");
}
static long connect_abstract(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path + 1, name);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return connect(fd, (void *)&address, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}
static long x32(void) { return syscall(0x40000000 + SYS_getpid); }
static long int80(void) {
    long result = 20;
#ifdef __x86_64__
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
#endif
    return result;
}
static long write_mapping(void) { /* of a file of the image, through /proc/self/mem */
    int file = open("/usr/bin/env", O_RDONLY), mem = open("/proc/self/mem", O_RDWR);
    char *at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    return pwrite(mem, "x", 1, (off_t)at);
}
static long handle(void) {
    char handle[128] = {0};
    *(unsigned *)handle = 64;
    int mount;
    if (syscall(SYS_name_to_handle_at, AT_FDCWD, "/", handle, &mount, 0) != 0 && errno != EOPNOTSUPP)
        return -1;
    return syscall(SYS_open_by_handle_at, AT_FDCWD, handle, O_RDONLY);
}
static long forge_whiteout(void) { return mknod("/workspace/w", S_IFCHR | 0600, 0); }
static long forge_opaque(void) {
    mkdir("/workspace/o", 0755);
    return setxattr("/workspace/o", "trusted.overlay.opaque", "y", 1, 0);
}
static long realtime(void) {
    struct sched_param high = {.sched_priority = 50};
    return sched_setscheduler(0, SCHED_FIFO, &high);
}
static long climb(void) { /* out of a directory that is the root: fchdir to a descriptor, then .. */
    int root = open("/", O_RDONLY);
    for (int i = 0; i < 100; i++)
        if (fchdir(root) != 0 || chdir("..") != 0)
            return -1;
    return access("usr", F_OK) == 0 && access("workspace", F_OK) == 0 ? 1000 : 0;
}
static long descriptors(void) {
    int count = 0;
    for (int fd = 3; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}
static long strange_memory(void) { return syscall(SYS_memfd_create, "x", 8) /* MFD_HUGETLB needs room */; }

static long attack(const char *name) {
#define IS(text) (strcmp(name, text) == 0)
#define TRY(text, expression) if (IS(text)) return (long)(expression)
    TRY("unshare_user", unshare(CLONE_NEWUSER));
    TRY("unshare_mount", unshare(CLONE_NEWNS));
    TRY("unshare_pid", unshare(CLONE_NEWPID));
    TRY("unshare_network", unshare(CLONE_NEWNET));
    TRY("unshare_cgroup", unshare(CLONE_NEWCGROUP));
    TRY("unshare_time", unshare(0x80));
    TRY("unshare_files", unshare(CLONE_FILES | CLONE_FS));
    TRY("clone_user", clone_user());
    TRY("clone_namespaces", clone_all());
    TRY("clone3", syscall(SYS_clone3, page, 88));
    TRY("setns_init", join());
    TRY("setns_own", join_own());
    TRY("mount_tmpfs", mount("none", "/tmp", "tmpfs", 0, ""));
    TRY("mount_proc", mount("none", "/tmp", "proc", 0, ""));
    TRY("mount_bind", mount("/", "/tmp", NULL, MS_BIND, NULL));
    TRY("remount", mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
    TRY("umount", umount2("/proc", MNT_DETACH));
    TRY("umount_mask", umount2("/proc/keys", MNT_DETACH));
    TRY("pivot_root", syscall(SYS_pivot_root, ".", "."));
    TRY("chroot", chroot("/tmp"));
    TRY("fsopen", syscall(430, "tmpfs", 0));
    TRY("open_tree", syscall(428, AT_FDCWD, "/", 1));
    TRY("move_mount", syscall(429, AT_FDCWD, "/usr", AT_FDCWD, "/tmp", 0));
    TRY("mount_setattr", syscall(442, AT_FDCWD, "/usr", 0, page, 32));
    TRY("bpf", syscall(SYS_bpf, 5, page, 120));
    TRY("perf_event_open", syscall(SYS_perf_event_open, page, 0, -1, -1, 0));
    TRY("userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC));
    TRY("userfaultfd_user_mode", syscall(SYS_userfaultfd, O_CLOEXEC | 1));
    TRY("io_uring_setup", syscall(425, 8, page));
    TRY("io_uring_register", syscall(427, 0, 0, page, 1));
    TRY("keyctl", syscall(SYS_keyctl, 0, -3, 1));
    TRY("add_key", syscall(SYS_add_key, "user", "x", "y", 1, -3));
    TRY("request_key", syscall(SYS_request_key, "user", "x", 0, -3));
    TRY("ptrace_init", ptrace(PTRACE_ATTACH, 1, 0, 0));
    TRY("seize_init", ptrace(PTRACE_SEIZE, 1, 0, 0));
    TRY("peek_init", peek_init());
    TRY("init_mem", open_for("/proc/1/mem", O_RDWR));
    TRY("init_root", open_for("/proc/1/root/etc/passwd", O_RDONLY));
    TRY("init_environ", open_for("/proc/1/environ", O_RDONLY));
    TRY("init_maps", open_for("/proc/1/maps", O_RDONLY));
    TRY("init_fd", open_for("/proc/1/fd/3", O_RDWR));
    TRY("init_cwd", open_for("/proc/1/cwd/etc", O_RDONLY));
    TRY("init_exe", open_for("/proc/1/exe", O_RDONLY));
    TRY("kill_init", kill_init());
    TRY("stop_init", kill(1, SIGSTOP));
    TRY("pidfd_getfd", syscall(438, syscall(434, 1, 0), 3, 0));
    TRY("open_by_handle_at", handle());
    TRY("kexec_load", syscall(SYS_kexec_load, 0, 0, page, 0));
    TRY("init_module", syscall(SYS_init_module, page, 64, ""));
    TRY("finit_module", syscall(SYS_finit_module, 0, "", 0));
    TRY("delete_module", syscall(SYS_delete_module, "x", 0));
    TRY("reboot", syscall(SYS_reboot, 0xfee1dead, 672274793, 0, 0));
    TRY("swapon", syscall(SYS_swapon, "/tmp/x", 0));
    TRY("quotactl", syscall(SYS_quotactl, 0x800001 << 8, "/", 0, page));
    TRY("acct", syscall(SYS_acct, "/tmp/x"));
    TRY("settimeofday", syscall(SYS_settimeofday, page, 0));
    TRY("clock_settime", syscall(SYS_clock_settime, 0, page));
    TRY("adjtimex", syscall(SYS_adjtimex, page));
    TRY("sethostname", sethostname("evil", 4));
    TRY("syslog", syscall(SYS_syslog, 3, page, 100));
#ifdef __x86_64__
    TRY("iopl", syscall(SYS_iopl, 3));
    TRY("ioperm", syscall(SYS_ioperm, 0, 10, 1));
    TRY("modify_ldt", syscall(SYS_modify_ldt, 0, page, 64));
#endif
    TRY("personality", syscall(SYS_personality, 0x0400000));
    TRY("fanotify", syscall(SYS_fanotify_init, 0, 0));
    TRY("kcmp", syscall(SYS_kcmp, getpid(), 1, 0, 0, 0));
    TRY("move_pages", syscall(SYS_move_pages, 1, 0, 0, 0, 0, 0));
    TRY("tiocsti", terminal(TIOCSTI));
    TRY("tioclinux", terminal(TIOCLINUX));
    TRY("tiocsti_high_bits", syscall(SYS_ioctl, posix_openpt(O_RDWR), 0x100000000 | TIOCSTI, "x"));
    TRY("socket_audit", socket(AF_NETLINK, SOCK_RAW, 9));
    TRY("socket_generic_netlink", socket(AF_NETLINK, SOCK_RAW, 16));
    TRY("socket_netfilter", socket(AF_NETLINK, SOCK_RAW, 12));
    TRY("socket_xfrm", socket(AF_NETLINK, SOCK_RAW, 6));
    TRY("socket_packet", socket(AF_PACKET, SOCK_RAW, 0));
    TRY("socket_vsock", socket(40, SOCK_STREAM, 0));
    TRY("socket_alg", socket(38, SOCK_SEQPACKET, 0));
    TRY("socket_bluetooth", socket(31, SOCK_RAW, 1));
    TRY("socket_tipc", socket(30, SOCK_STREAM, 0));
    TRY("socket_xdp", socket(44, SOCK_RAW, 0));
    TRY("socket_sctp", socket(AF_INET, SOCK_SEQPACKET, 132));
    TRY("socket_raw", socket(AF_INET, SOCK_RAW, 1));
    TRY("netlink_change", link_down());
    TRY("netlink_read", list_links());
    TRY("setuid_root", setuid(0));
    TRY("setgid_root", setgid(0));
    TRY("setgroups", setgroups(1, (gid_t[]){0}));
    TRY("setuid_program", setuid_program());
    TRY("all_capabilities", all_capabilities());
    TRY("ambient_capability", ambient());
    TRY("raise_limit", raise_limit());
    TRY("realtime", realtime());
    TRY("nice", setpriority(PRIO_PROCESS, 0, -20));
    TRY("mknod_block", mknod("/tmp/b", S_IFBLK | 0600, 0x700));
    TRY("mknod_char", mknod("/tmp/c", S_IFCHR | 0600, 0x101));
    TRY("forge_whiteout", forge_whiteout());
    TRY("forge_opaque", forge_opaque());
    TRY("chown_root", chown("/workspace", 0, 0));
    TRY("core_pattern", write_to("/proc/sys/kernel/core_pattern", "|/tmp/x"));
    TRY("modprobe", write_to("/proc/sys/kernel/modprobe", "/tmp/x"));
    TRY("binfmt_misc", write_to("/proc/sys/fs/binfmt_misc/register", ":x:M::MZ::/tmp/x:"));
    TRY("sysrq", write_to("/proc/sysrq-trigger", "b"));
    TRY("oom_score", write_to("/proc/self/oom_score_adj", "-1000"));
    TRY("uid_map", write_to("/proc/self/uid_map", "0 0 1"));
    TRY("kcore", open_for("/proc/kcore", O_RDONLY) < 0 ? -1 : read(open("/proc/kcore", O_RDONLY), page, 1));
    TRY("keys", read(open("/proc/keys", O_RDONLY), page, 1));
    TRY("kallsyms", read(open("/proc/kallsyms", O_RDONLY), page, 1));
    TRY("dev_mem", open_for("/dev/mem", O_RDWR));
    TRY("dev_kmsg", open_for("/dev/kmsg", O_RDWR));
    TRY("dev_disk", open_for("/dev/vda", O_RDONLY));
    TRY("dev_fuse", open_for("/dev/fuse", O_RDWR));
    TRY("dev_kvm", open_for("/dev/kvm", O_RDWR));
    TRY("dev_net_tun", open_for("/dev/net/tun", O_RDWR));
    TRY("sys_kernel", open_for("/sys/kernel", O_RDONLY));
    TRY("sys_uevent", write_to("/sys/kernel/uevent_helper", "/tmp/x"));
    TRY("cgroup_procs", write_to("/sys/fs/cgroup/cgroup.procs", "1"));
    TRY("release_agent", open_for("/sys/fs/cgroup/memory/release_agent", O_WRONLY));
    TRY("shadow", open_for("/etc/shadow", O_RDONLY));
    TRY("write_usr", open("/usr/bin/evil", O_WRONLY | O_CREAT, 0755));
    TRY("write_mapping", write_mapping());
    TRY("climb", climb());
    TRY("descriptors", descriptors());
    TRY("x32", x32());
    TRY("int80", int80());
    TRY("huge_pages", strange_memory());
    if (strncmp(name, "abstract:", 9) == 0)
        return connect_abstract(name + 9);
    fprintf(stderr, "no attack %s\n", name);
    exit(99);
}

int main(int argc, char **argv) {
    errno = 0;
    long result = attack(argc > 1 ? argv[1] : "");
    if (result < 0)
        puts(strerrorname_np(errno));
    else
        printf("%ld\n", result);
    return 0;
}
