/* What somebody who took QEMU over would try, in QEMU's own walls: prints a line for each thing that worked. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static int tried, worked;

static void try(const char *what, long result) {
    tried++;
    if (result >= 0) {
        worked++;
        dprintf(2, "WORKED: %s\n", what);
    }
}

static void look_for(const char *path) {
    char what[300];
    snprintf(what, sizeof what, "open %s", path);
    try(what, open(path, O_RDONLY));
}

int main(void) {
    const char *hidden[] = {"/etc/passwd", "/etc/shadow", "/root", "/proc/1/root/etc/passwd", "/proc/2/mem", "/proc/kcore",
                            "/dev/kvm", "/dev/net/tun", "/dev/fuse", "/dev/mem", "/dev/sda", "/dev/vda",
                            "/var/run/docker.sock", "/sys/kernel", "/home/agent", "/proc/sysrq-trigger/x", "/work", "/usr/bin/bash"};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        look_for(hidden[i]);
    try("write to its own program", open("/usr/bin/qemu-system-x86_64", O_WRONLY));
    try("write to the kernel", open("/boot/vmlinux", O_WRONLY));
    try("make a file beside its libraries", open("/usr/lib/x", O_CREAT | O_WRONLY, 0600));
    try("a TCP socket", socket(AF_INET, SOCK_STREAM, 0));
    try("a UDP socket", socket(AF_INET, SOCK_DGRAM, 0));
    try("an IPv6 socket", socket(AF_INET6, SOCK_STREAM, 0));
    try("a Unix socket", socket(AF_UNIX, SOCK_STREAM, 0));
    try("a raw socket", socket(AF_INET, SOCK_RAW, 255));
    try("a packet socket", socket(AF_PACKET, SOCK_RAW, 0));
    try("a netlink socket", socket(AF_NETLINK, SOCK_RAW, 0));
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/x"};
    try("connect", connect(12, (struct sockaddr *)&address, sizeof address));
    try("bind", bind(12, (struct sockaddr *)&address, sizeof address));
    try("mount", mount("none", "/tmp", "tmpfs", 0, ""));
    try("a user namespace", unshare(CLONE_NEWUSER));
    try("a process", syscall(SYS_fork));
    try("execveat", syscall(SYS_execveat, 13, "", NULL, NULL, 0x1000));
    try("trace", ptrace(PTRACE_ATTACH, 1, 0, 0));
    try("BPF", syscall(SYS_bpf, 5, "", 48));
    try("io_uring", syscall(SYS_io_uring_setup, 1, ""));
    try("keys", syscall(SYS_keyctl, 0, -3, 0));
    try("userfaultfd", syscall(SYS_userfaultfd, 1));
    try("become root", setuid(0));
    try("another group", setgid(0));
    try("a device", mknod("/tmp/d", S_IFBLK | 0600, 0x700));
    try("a hard link", link("/usr/bin/qemu-system-x86_64", "/tmp/q"));
    try("change the shared memory", pwrite(13, "x", 1, 0));
    try("signal others", kill(-1, 0) == 0 && getpid() != 1 ? 0 : -1);
    dprintf(2, "tried %d, worked %d\n", tried, worked);
    return worked;
}
