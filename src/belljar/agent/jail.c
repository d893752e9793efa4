/* The launcher, and the interpreter of plans. Policy is in native/plan.py, which also documents the plan.
 *
 * The launcher clones pid 1 into its namespaces, writes the id maps from outside, gives it the mounts that only the
 * owner may make, and waits: when pid 1 ends or the owner's connection closes, it kills what is left and ends. */
#include "jail.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/magic.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "serve.h"
#include "vm.h"

#define VERSION 1
#define ITEMS 12
#define TREES_MAX 200
#define LAYERS_MAX 32
#define TEXT_MAX 4096
#define CAPABILITIES 64
#define NETLINK_MAX 8192
#define WORDS_MAX 256
#define DESCRIPTOR_FIRST 5 /* of those that a program is started with */
#define DESCRIPTOR_LAST 256
#define GUEST_ITEM 9 /* items of a plan before its guest */

/* open_tree(2) and mount_setattr(2) are younger than some C libraries. */
#define TREE_CLONE 1
#define TREE_CLOEXEC O_CLOEXEC
#define MOVE_EMPTY 4
#define RECURSIVE 0x8000
#define EMPTY 0x1000
#define ATTR_IDMAP 0x00100000
struct attributes {
    uint64_t set, clear, propagation, userns;
};

struct jail {
    int connection, descriptors, gate;
    int trees[TREES_MAX];
    uint32_t tree_count;
    const char *layers[LAYERS_MAX];
    uint32_t layer_count;
    struct guest guest;
    struct reader program; /* words of one that is executed instead of serving; none: it serves */
    char what[128]; /* the step under way, for a message */
};

static char texts[4][TEXT_MAX];

/* A string that a system call takes. */
const char *step_text(struct reader *r, int slot) {
    const uint8_t *data;
    uint32_t length;
    if (!read_bytes(r, &data, &length) || length >= TEXT_MAX || memchr(data, 0, length) != NULL) {
        r->bad = true;
        data = (const uint8_t *)"";
        length = 0;
    }
    memcpy(texts[slot], data, length);
    texts[slot][length] = 0;
    return texts[slot];
}

int64_t step_number(struct reader *r) {
    int64_t value = 0;
    read_int(r, &value);
    return value;
}

/* close(2) after something that failed or not: keeps its errno, gives its result. */
static int closed(int fd, int result) {
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return result;
}

static int write_file(const char *path, int flags, const void *data, size_t length) {
    int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0600);
    return fd < 0 ? -1 : closed(fd, write_all(fd, data, length));
}

/* Mounts. */

/* A copy of a tree of mounts, attached nowhere. */
static int clone_tree(const char *source, uint64_t set, int userns) {
    int fd = (int)syscall(SYS_open_tree, AT_FDCWD, source, TREE_CLONE | TREE_CLOEXEC | RECURSIVE);
    struct attributes attributes = {.set = set};
    if (userns >= 0) {
        attributes.set |= ATTR_IDMAP;
        attributes.userns = (uint64_t)userns;
    }
    if (fd >= 0 && attributes.set != 0 &&
        syscall(SYS_mount_setattr, fd, "", EMPTY | RECURSIVE, &attributes, sizeof attributes) != 0)
        return closed(fd, -1);
    return fd;
}

static int attach(int fd, const char *target) {
    return closed(fd, (int)syscall(SYS_move_mount, fd, "", AT_FDCWD, target, MOVE_EMPTY));
}

static int bind_tree(struct reader *r, struct jail *jail) {
    (void)jail;
    const char *source = step_text(r, 1), *target = step_text(r, 0);
    uint64_t set = (uint64_t)step_number(r);
    int fd = r->bad ? -1 : clone_tree(source, set, -1);
    return fd < 0 ? -1 : attach(fd, target);
}

static int attach_tree(struct reader *r, struct jail *jail) {
    int64_t index = step_number(r);
    const char *target = step_text(r, 0);
    if (r->bad || index < 0 || index >= jail->tree_count || jail->trees[index] < 0) {
        errno = EBADF;
        return -1;
    }
    int fd = jail->trees[index];
    jail->trees[index] = -1;
    return attach(fd, target);
}

static int mount_fs(struct reader *r, struct jail *jail) {
    (void)jail;
    const char *source = step_text(r, 1), *target = step_text(r, 0), *type = step_text(r, 2);
    unsigned long flags = (unsigned long)step_number(r);
    const char *data = step_text(r, 3);
    return r->bad ? -1 : mount(source, target, *type ? type : NULL, flags, data);
}

/* Hides a path if there is one: a directory under an empty one, a file under /dev/null. */
static int mask(struct reader *r, struct jail *jail) {
    (void)jail;
    const char *path = step_text(r, 0);
    struct stat status;
    if (r->bad)
        return -1;
    if (lstat(path, &status) != 0)
        return errno == ENOENT ? 0 : -1;
    if (S_ISDIR(status.st_mode))
        return mount("tmpfs", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=555");
    int fd = clone_tree("/dev/null", 0, -1);
    return fd < 0 ? -1 : attach(fd, path);
}

static int pivot(struct reader *r, struct jail *jail) {
    (void)jail;
    const char *root = step_text(r, 0);
    if (r->bad || chdir(root) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0)
        return -1;
    return chdir("/");
}

/* Files. */

static int own(const char *path, struct reader *r) {
    mode_t mode = (mode_t)step_number(r);
    uid_t uid = (uid_t)step_number(r);
    gid_t gid = (gid_t)step_number(r);
    if (r->bad || lchown(path, uid, gid) != 0)
        return -1;
    return chmod(path, mode);
}

static int make_directory(struct reader *r, struct jail *jail) {
    (void)jail;
    const char *path = step_text(r, 0);
    if (r->bad || (mkdir(path, 0700) != 0 && errno != EEXIST))
        return -1;
    return own(path, r);
}

static int make_link(struct reader *r, struct jail *jail) {
    (void)jail;
    const char *path = step_text(r, 0), *target = step_text(r, 1);
    return r->bad ? -1 : symlink(target, path);
}

static int write_contents(struct reader *r, int flags) {
    const uint8_t *data;
    uint32_t length;
    const char *path = step_text(r, 0);
    read_bytes(r, &data, &length);
    return r->bad ? -1 : write_file(path, flags, data, length);
}

static int make_file(struct reader *r, struct jail *jail) {
    (void)jail;
    return write_contents(r, O_CREAT | O_TRUNC | O_NOFOLLOW) != 0 ? -1 : own(texts[0], r);
}

/* Writes to a file that is there, as those of /proc are. */
static int set_value(struct reader *r, struct jail *jail) {
    (void)jail;
    return write_contents(r, 0);
}

/* Names and the network. */

static int name_host(struct reader *r, struct jail *jail) {
    (void)jail;
    const char *name = step_text(r, 0);
    return r->bad ? -1 : sethostname(name, strlen(name));
}

/* Messages that ask for an acknowledgement. */
static int count_acknowledged(const uint8_t *data, uint32_t length) {
    int count = 0;
    struct nlmsghdr head;
    for (uint32_t at = 0; length - at >= sizeof head; at += NLMSG_ALIGN(head.nlmsg_len)) {
        memcpy(&head, data + at, sizeof head);
        count += (head.nlmsg_flags & NLM_F_ACK) != 0;
        if (head.nlmsg_len < sizeof head || NLMSG_ALIGN(head.nlmsg_len) >= length - at)
            break;
    }
    return count;
}

/* Sends prepared messages; each that asks for an acknowledgement must get one without an error. */
static int send_netlink(struct reader *r, struct jail *jail) {
    (void)jail;
    const uint8_t *data;
    uint32_t length;
    int protocol = (int)step_number(r);
    read_bytes(r, &data, &length);
    int fd = r->bad ? -1 : socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (fd < 0)
        return -1;
    int awaited = count_acknowledged(data, length);
    int error = send(fd, data, length, 0) == (ssize_t)length ? 0 : errno;
    while (awaited > 0 && error == 0) {
        _Alignas(struct nlmsghdr) uint8_t answer[NETLINK_MAX];
        ssize_t received = recv(fd, answer, sizeof answer, 0);
        if (received <= 0) {
            error = received < 0 ? errno : EPIPE;
            break;
        }
        size_t left = (size_t)received;
        for (struct nlmsghdr *head = (void *)answer; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left))
            if (head->nlmsg_type == NLMSG_ERROR) {
                error = error ? error : -((struct nlmsgerr *)NLMSG_DATA(head))->error;
                awaited--;
            }
    }
    close(fd);
    errno = error;
    return error ? -1 : 0;
}

union control {
    struct cmsghdr head;
    char space[CMSG_SPACE(TREES_MAX * sizeof(int))];
};

int send_descriptors(int socket, const int *fds, uint32_t count) {
    union control control = {0};
    struct iovec byte = {.iov_base = "!", .iov_len = 1};
    struct msghdr message = {.msg_iov = &byte, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(head), fds, count * sizeof(int));
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -1;
}

/* Gives the owner the directory that has all changes of the root: snapshots are made of it. */
static int send_upper(struct reader *r, struct jail *jail) {
    const char *path = step_text(r, 0);
    int fd = r->bad ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -1 : closed(fd, send_descriptors(jail->descriptors, &fd, 1));
}

/* Makes a socket of these namespaces for the owner: [family, type, address, [[level, option, value], ...]]. */
static int listen_on(struct reader *r, struct jail *jail) {
    const uint8_t *address;
    uint32_t length, count = 0, three;
    int family = (int)step_number(r), type = (int)step_number(r);
    read_bytes(r, &address, &length);
    read_array(r, &count);
    struct sockaddr_storage copy = {0};
    if (r->bad || length > sizeof copy)
        return -1;
    memcpy(&copy, address, length);
    int fd = socket(family, type | SOCK_CLOEXEC, 0), result = fd < 0 ? -1 : 0;
    for (uint32_t i = 0; i < count && result == 0; i++) {
        read_array(r, &three);
        int level = (int)step_number(r), option = (int)step_number(r), value = (int)step_number(r);
        result = r->bad ? -1 : setsockopt(fd, level, option, &value, sizeof value);
    }
    if (result == 0 && length > 0)
        result = bind(fd, (struct sockaddr *)&copy, length);
    if (result == 0 && (type & 0xf) == SOCK_STREAM)
        result = listen(fd, 128);
    if (result == 0)
        result = send_descriptors(jail->descriptors, &fd, 1);
    return closed(fd, result);
}

/* Walls. */

/* Landlock: a domain around pid 1, and so one around all that it starts: [attributes, [[path, rights], ...]]. */
static int restrict_paths(struct reader *r, struct jail *jail) {
    (void)jail;
    const uint8_t *data;
    uint32_t length, count = 0, two;
    uint64_t attributes[3] = {0};
    read_bytes(r, &data, &length);
    read_array(r, &count);
    if (r->bad || length > sizeof attributes)
        return -1;
    memcpy(attributes, data, length);
    int rules = (int)syscall(SYS_landlock_create_ruleset, attributes, length, 0), result = rules < 0 ? -1 : 0;
    for (uint32_t i = 0; i < count && result == 0; i++) {
        read_array(r, &two);
        const char *path = step_text(r, 0);
        struct landlock_path_beneath_attr rule = {.allowed_access = (uint64_t)step_number(r)};
        rule.parent_fd = r->bad ? -1 : open(path, O_PATH | O_CLOEXEC);
        result = rule.parent_fd < 0
                     ? -1
                     : closed(rule.parent_fd,
                              (int)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0));
    }
    return closed(rules, result == 0 ? (int)syscall(SYS_landlock_restrict_self, rules, 0) : -1);
}

static int install_filter(const uint8_t *program, uint32_t length) {
    struct sock_fprog head = {.len = (unsigned short)(length / 8), .filter = (struct sock_filter *)program};
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &head);
}

/* The filter of pid 1, which its children have beside their own. */
static int filter_self(struct reader *r, struct jail *jail) {
    (void)jail;
    const uint8_t *data;
    uint32_t length;
    return read_bytes(r, &data, &length) ? install_filter(data, length) : -1;
}

/* The mounter: a thread of pid 1 outside of its Landlock domain, in which nothing can be mounted. */

static struct {
    sem_t asked, done;
    int (*work)(void *argument);
    void *argument;
    int result, error, fuse;
    bool runs;
} mounter = {.fuse = -1};

static void take_semaphore(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0)
        ;
}

static void *run_mounter(void *nothing) {
    for (;;) {
        take_semaphore(&mounter.asked);
        mounter.result = mounter.work(mounter.argument);
        mounter.error = errno;
        sem_post(&mounter.done);
    }
    return nothing;
}

static int start_mounter(struct reader *r, struct jail *jail) {
    (void)r, (void)jail;
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    sem_init(&mounter.asked, 0, 0);
    sem_init(&mounter.done, 0, 0);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    errno = pthread_create(&thread, NULL, run_mounter, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    mounter.runs = errno == 0;
    return mounter.runs ? 0 : -1;
}

static int in_mounter(int (*work)(void *argument), void *argument) {
    if (!mounter.runs)
        return work(argument);
    mounter.work = work;
    mounter.argument = argument;
    sem_post(&mounter.asked);
    take_semaphore(&mounter.done);
    errno = mounter.error;
    return mounter.result;
}

/* Keeps the way to /dev/fuse, of which guests have none. */
static int keep_fuse(struct reader *r, struct jail *jail) {
    (void)jail;
    const char *path = step_text(r, 0);
    mounter.fuse = r->bad ? -1 : open(path, O_PATH | O_CLOEXEC);
    return mounter.fuse < 0 ? -1 : 0;
}

static int mount_device(void *argument) {
    const struct fuse_mount *wanted = argument;
    char path[64], options[256];
    snprintf(path, sizeof path, "/proc/self/fd/%d", mounter.fuse);
    int device = mounter.fuse < 0 ? (errno = ENODEV, -1) : open(path, O_RDWR | O_CLOEXEC);
    if (device < 0)
        return -1;
    snprintf(options, sizeof options, "fd=%d,rootmode=%o,user_id=%u,group_id=%u,allow_other,default_permissions",
             device, (unsigned)wanted->mode, (unsigned)getuid(), (unsigned)getgid());
    unsigned long flags = MS_NOSUID | MS_NODEV | (wanted->read_only ? MS_RDONLY : 0);
    return mount("belljar", wanted->target, "fuse", flags, options) == 0 ? device : closed(device, -1);
}

int mount_fuse(const struct fuse_mount *wanted) {
    return in_mounter(mount_device, (void *)wanted);
}

static int detach(void *argument) {
    return umount2(argument, MNT_DETACH | UMOUNT_NOFOLLOW);
}

int unmount_tree(const char *target) {
    return in_mounter(detach, (void *)target);
}

/* Waits until the launcher has put it into its control groups, which takes as long as all steps before. */
static int wait_for_cgroups(struct reader *r, struct jail *jail) {
    (void)r;
    char byte;
    return read_exactly(jail->gate, &byte, 1) != 0 ? -1 : unshare(CLONE_NEWCGROUP);
}

/* Steps. */

static int add_layer(struct reader *r, struct jail *jail) {
    const char *name = step_text(r, 0);
    char *copy = *name && jail->layer_count < LAYERS_MAX ? strdup(name) : NULL;
    if (copy != NULL)
        jail->layers[jail->layer_count++] = copy;
    return r->bad ? -1 : 0;
}

/* Has a program executed in a guest's walls, as pid 1, in place of the conversation: [word, ...]. */
static int set_program(struct reader *r, struct jail *jail) {
    jail->program = *r;
    return skip(r) ? 0 : -1;
}

static const struct {
    const char *name;
    int (*run)(struct reader *r, struct jail *jail);
} OPS[] = {
    {"mount", mount_fs},       {"bind", bind_tree},    {"attach", attach_tree},
    {"mask", mask},            {"pivot", pivot},       {"mkdir", make_directory},    {"symlink", make_link},
    {"write", make_file},      {"set", set_value},     {"upper", send_upper},        {"sethostname", name_host},
    {"netlink", send_netlink}, {"listen", listen_on},  {"landlock", restrict_paths}, {"seccomp", filter_self},
    {"layer", add_layer},      {"mounter", start_mounter}, {"fuse", keep_fuse},
    {"cgroup", wait_for_cgroups}, {"program", set_program}, {"random", seed_random},
    {"clock", set_clock},      {"switch", switch_root}, {"tap", open_tap},
};

/* One step, [op, arguments...]. `["try", layer, step]` may fail, and puts the layer up if it does not. */
static int run_step(struct reader *r, struct jail *jail) {
    uint32_t count = 0, length;
    const uint8_t *name;
    read_array(r, &count);
    struct reader next = *r;
    for (uint32_t i = 0; i < count; i++)
        skip(&next);
    read_bytes(r, &name, &length);
    int result = -1;
    texts[0][0] = 0;
    errno = next.bad || r->bad ? EPROTO : ENOSYS;
    if (is_text(name, length, "try")) {
        struct reader layer = *r;
        skip(r);
        if (run_step(r, jail) == 0)
            add_layer(&layer, jail);
        result = 0;
    } else
        for (size_t i = 0; i < sizeof OPS / sizeof *OPS; i++)
            if (is_text(name, length, OPS[i].name)) {
                errno = EINVAL;
                result = OPS[i].run(r, jail);
                int error = r->bad ? EPROTO : errno;
                snprintf(jail->what, sizeof jail->what, "%s %.100s", OPS[i].name, texts[0]);
                errno = error;
            }
    next.bad = next.bad || r->bad;
    *r = next; /* an op that failed may not have read all of it */
    return r->bad ? -1 : result;
}

/* In pid 1, which needs no more than it has: what all that it starts can ever have. */
static int bound_capabilities(uint64_t kept) {
    for (int i = 0; i < CAPABILITIES; i++)
        if ((kept >> i & 1) == 0 && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) != 0)
            return errno == EINVAL ? 0 : -1; /* the kernel knows no more */
    return 0;
}

/* Executes the steps, and bounds what all that follows can do. 0, or -1 once the owner was told what failed. */
static int run_steps(struct reader *r, struct jail *jail) {
    uint32_t count = 0;
    read_array(r, &count);
    for (uint32_t i = 0; i < count; i++)
        if (run_step(r, jail) != 0) {
            fail_step(jail->connection, (int)i, jail->what, errno);
            return -1;
        }
    if (bound_capabilities(jail->guest.capabilities) == 0)
        return 0;
    fail_step(jail->connection, (int)count, "bounding the capabilities", errno);
    return -1;
}

/* Guests. */

static void read_guest(struct reader *r, struct guest *guest) {
    uint32_t count;
    read_array(r, &count);
    read_bytes(r, &guest->filter, &guest->filter_length);
    read_array(r, &guest->rlimit_count);
    for (uint32_t i = 0; i < guest->rlimit_count && !r->bad; i++) {
        r->bad = r->bad || i == RLIMITS_MAX;
        if (!read_array(r, &count))
            break;
        guest->rlimits[i].resource = (int)step_number(r);
        guest->rlimits[i].limit = (uint64_t)step_number(r);
    }
    guest->capabilities = (uint64_t)step_number(r);
    guest->uid = (uid_t)step_number(r);
    guest->gid = (gid_t)step_number(r);
    guest->sets_groups = !read_nil(r);
    if (guest->sets_groups)
        read_array(r, &guest->group_count);
    for (uint32_t i = 0; i < guest->group_count && !r->bad; i++)
        if (i < GROUPS_MAX)
            guest->groups[i] = (gid_t)step_number(r);
        else
            r->bad = true;
    guest->walled = true;
}

int become_guest(const struct guest *guest) {
    if (guest->sets_groups && setgroups(guest->group_count, guest->groups) != 0)
        return -1;
    if (setresgid(guest->gid, guest->gid, guest->gid) != 0)
        return -1;
    return setresuid(guest->uid, guest->uid, guest->uid);
}

static int set_capabilities(uint64_t kept) {
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    for (int i = 0; i < 2; i++) {
        uint32_t word = (uint32_t)(kept >> (32 * i));
        sets[i] = (struct __user_cap_data_struct){.effective = word, .permitted = word, .inheritable = word};
    }
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return (int)syscall(SYS_capset, &head, sets);
}

static int lower_limits(const struct guest *guest) {
    for (uint32_t i = 0; i < guest->rlimit_count; i++) {
        struct rlimit limit;
        rlim_t wanted = (rlim_t)guest->rlimits[i].limit;
        if (getrlimit(guest->rlimits[i].resource, &limit) != 0)
            return -1;
        if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > wanted)
            limit.rlim_max = wanted;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(guest->rlimits[i].resource, &limit) != 0)
            return -1;
    }
    return 0;
}

int enter_guest(const struct guest *guest) {
    if (!guest->walled)
        return become_guest(guest);
    if (lower_limits(guest) != 0)
        return -1;
    if (become_guest(guest) != 0 || set_capabilities(guest->capabilities) != 0)
        return -1;
    return guest->filter_length == 0 ? 0 : install_filter(guest->filter, guest->filter_length);
}

/* The self-test. */

/* One call, as [what, expected result or nil for any error, call, arguments...]: 1 as expected, 0 not, -1 no call. */
static int try_call(struct reader *r) {
    static char buffers[6][256];
    uint32_t items = 0, length;
    int64_t expected = 0;
    long arguments[6] = {0};
    read_array(r, &items);
    skip(r);
    bool refused = read_nil(r);
    if (!refused)
        read_int(r, &expected);
    long call = (long)step_number(r);
    for (uint32_t i = 0; i + 3 < items && i < 6; i++) {
        struct reader after = *r;
        const uint8_t *data;
        int64_t value;
        if (read_int(&after, &value)) {
            arguments[i] = (long)value;
            *r = after;
        } else if (read_bytes(r, &data, &length) && length < sizeof buffers[i]) {
            memcpy(buffers[i], data, length);
            buffers[i][length] = 0;
            arguments[i] = (long)buffers[i];
        }
    }
    if (r->bad || items < 3 || items > 9)
        return -1;
    long result = syscall(call, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    return refused ? result < 0 : result == expected;
}

/* Tries what must not work, in a child with a guest's walls. 0, or -1 once the owner was told what did. */
static int prove(struct reader *r, struct jail *jail) {
    uint32_t count = 0, items;
    read_array(r, &count);
    pid_t pid = fork();
    if (pid == 0) {
        int result = enter_guest(&jail->guest) == 0 ? 1 : -1;
        uint32_t tried = 0;
        while (result == 1 && tried < count && tried < 250) {
            result = try_call(r);
            tried++;
        }
        _exit(result == 1 ? 0 : result == 0 ? (int)tried : 255);
    }
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) == 255) {
        snprintf(jail->what, sizeof jail->what, "self-test, status %#x", (unsigned)status);
        fail_step(jail->connection, 0, jail->what, ECHILD);
        return -1;
    }
    for (uint32_t i = 1; i <= count; i++) {
        if (i == (uint32_t)WEXITSTATUS(status) && read_array(r, &items)) {
            snprintf(jail->what, sizeof jail->what, "self-test, a guest could %.80s", step_text(r, 0));
            fail_step(jail->connection, (int)i, jail->what, EPERM);
            return -1;
        }
        skip(r);
    }
    return 0;
}

/* Pid 1. */

/* Waits for the launcher's word that the id maps are written, and for the trees that come with it. */
static int wait_for_launcher(struct jail *jail) {
    union control control;
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t received;
    do
        received = recvmsg(jail->gate, &message, MSG_CMSG_CLOEXEC);
    while (received < 0 && errno == EINTR);
    if (received != 1)
        return -1;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head != NULL && head->cmsg_type == SCM_RIGHTS) {
        jail->tree_count = (uint32_t)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(jail->trees, CMSG_DATA(head), jail->tree_count * sizeof(int));
    }
    return 0;
}

/* Takes the ids of its namespace and ties its life to the launcher's. */
static int settle_in(struct jail *jail, uid_t uid, gid_t gid) {
    if (jail->guest.sets_groups && setgroups(0, NULL) != 0)
        return -1;
    if (setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
        return -1;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    struct pollfd gate = {.fd = jail->gate};
    if (poll(&gate, 1, 0) != 0) { /* the launcher ended before that was said */
        errno = ECHILD;
        return -1;
    }
    setsid();
    umask(022);
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Executes the plan's program, with the descriptors from 5 on that it was started with. */
static int execute_program(struct jail *jail) {
    char *words[WORDS_MAX + 1], *no_variables[] = {NULL};
    uint32_t count = 0, length;
    const uint8_t *data;
    read_array(&jail->program, &count);
    for (uint32_t i = 0; i < count && i < WORDS_MAX; i++) {
        read_bytes(&jail->program, &data, &length);
        words[i] = strndup((const char *)data, length);
    }
    words[count < WORDS_MAX ? count : WORDS_MAX] = NULL;
    if (jail->program.bad || count == 0 || count > WORDS_MAX || enter_guest(&jail->guest) != 0)
        return 1;
    execve(words[0], words, no_variables);
    dprintf(2, "%s: %s\n", words[0], strerror(errno));
    return 127;
}

static int run_first(struct reader *plan, struct jail *jail, uid_t uid, gid_t gid) {
    if (wait_for_launcher(jail) != 0)
        return 1;
    if (settle_in(jail, uid, gid) != 0) {
        fail_step(jail->connection, 0, "taking the ids of the namespace", errno);
        return 1;
    }
    if (run_steps(plan, jail) != 0 || prove(plan, jail) != 0)
        return 1;
    close(jail->gate);
    for (uint32_t i = 0; i < jail->tree_count; i++)
        closed(jail->trees[i], 0);
    if (send_ready(jail->connection, jail->layers, jail->layer_count) != 0)
        return 1;
    if (jail->program.at != NULL)
        return execute_program(jail);
    return serve(jail->connection, jail->descriptors, &jail->guest);
}

/* The guest of a plan, which follows what is for the launcher. */
static void read_plan_guest(struct reader *plan, struct jail *jail) {
    for (int i = 0; i < GUEST_ITEM; i++)
        skip(plan);
    read_guest(plan, &jail->guest);
}

static struct jail machine;

int run_machine_plan(struct reader *plan, int connection) {
    uint32_t items = 0;
    read_array(plan, &items);
    read_plan_guest(plan, &machine);
    machine.connection = connection;
    machine.descriptors = -1;
    if (plan->bad || items != ITEMS)
        return fail_step(connection, 0, "plan", EPROTO), -1;
    if (run_steps(plan, &machine) != 0 || send_ready(connection, machine.layers, machine.layer_count) != 0)
        return -1;
    return serve(connection, -1, &machine.guest);
}

int run_machine_steps(struct reader *steps) {
    return run_steps(steps, &machine);
}

/* The launcher. */

static int write_map(pid_t pid, const char *name, const void *data, size_t length) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return write_file(path, 0, data, length);
}

/* Opens the trees that pid 1 can't: [[path, attributes, mapped], ...]. Of those that are `mapped` the sandbox's root
 * owns what root owns, and so on, if the file system can do that. */
static int open_trees(struct reader *r, struct jail *jail, pid_t pid) {
    uint32_t count = 0, three;
    char path[64];
    read_array(r, &count);
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    int userns = open(path, O_RDONLY | O_CLOEXEC);
    for (uint32_t i = 0; i < count; i++) {
        bool mapped = false;
        read_array(r, &three);
        const char *source = step_text(r, 0);
        uint64_t set = (uint64_t)step_number(r);
        read_bool(r, &mapped);
        snprintf(jail->what, sizeof jail->what, "open %.100s", source);
        errno = EPROTO;
        if (r->bad || i == TREES_MAX)
            return -1;
        int fd = mapped && userns >= 0 ? clone_tree(source, set, userns) : -1;
        if (fd < 0)
            fd = clone_tree(source, set, -1);
        if (fd < 0)
            return -1;
        jail->trees[jail->tree_count++] = fd;
    }
    return closed(userns, 0);
}

/* The first of the control groups, [directory, ...], in which a process can be born, or -1. */
static int open_birthplace(struct reader r) {
    uint32_t count = 0;
    read_array(&r, &count);
    int fd = count ? open(step_text(&r, 0), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    struct statfs found;
    if (fd >= 0 && (fstatfs(fd, &found) != 0 || found.f_type != CGROUP2_SUPER_MAGIC))
        return closed(fd, -1);
    return fd;
}

/* A process in new namespaces, which is in a control group from the start if `cgroup` is one. To move it there later
 * takes the kernel milliseconds: all forks of the machine have to pause. */
static pid_t clone_into(unsigned long flags, int *cgroup) {
    struct clone_args arguments = {
        .flags = flags | CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)*cgroup};
    pid_t pid = *cgroup < 0 ? -1 : (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
    if (pid >= 0)
        return pid;
    *cgroup = closed(*cgroup, -1); /* an older kernel, or one that refuses it */
    return (pid_t)syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
}

/* Puts pid 1 into control groups, [directory, ...], the first of which it may be `born` in. */
static int enter_cgroups(struct reader r, struct jail *jail, pid_t pid, bool born) {
    uint32_t count = 0;
    char decimal[16], path[TEXT_MAX + 16];
    int length = snprintf(decimal, sizeof decimal, "%d", (int)pid);
    read_array(&r, &count);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/cgroup.procs", step_text(&r, 0));
        if (born && i == 0)
            continue;
        snprintf(jail->what, sizeof jail->what, "enter %.100s", path);
        if (r.bad || write_file(path, 0, decimal, (size_t)length) != 0)
            return -1;
    }
    return 0;
}

static void remove_cgroups(struct reader r) {
    uint32_t count = 0;
    read_array(&r, &count);
    for (uint32_t i = 0; i < count && !r.bad; i++) {
        const char *path = step_text(&r, 0);
        for (int tries = 0; rmdir(path) != 0 && errno == EBUSY && tries < 100; tries++)
            usleep(1000); /* the last process has ended, but the group does not know yet */
    }
}

/* Until pid 1 ends or the owner's connection does; with pid 1 the kernel kills the whole pid namespace. */
static int wait_for_end(int connection, pid_t pid) {
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd ends[2] = {{.fd = pidfd, .events = POLLIN}, {.fd = connection, .events = POLLRDHUP}};
    while (poll(ends, 2, -1) < 0 && errno == EINTR)
        ;
    kill(pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int run_plan(struct reader *plan, int connection, int descriptors) {
    static struct jail jail;
    uint32_t items = 0, length, uid_length, gid_length;
    const uint8_t *kind, *uid_map, *gid_map;
    read_array(plan, &items);
    read_bytes(plan, &kind, &length);
    int64_t version = step_number(plan);
    unsigned long flags = (unsigned long)step_number(plan);
    read_bytes(plan, &uid_map, &uid_length);
    read_bytes(plan, &gid_map, &gid_length);
    uid_t uid = (uid_t)step_number(plan);
    gid_t gid = (gid_t)step_number(plan);
    struct reader cgroups = *plan;
    skip(plan);
    struct reader trees = *plan;
    skip(plan);
    read_guest(plan, &jail.guest);
    if (plan->bad || items != ITEMS || !is_text(kind, length, "plan") || version != VERSION)
        return fail_step(connection, 0, "plan", EPROTO), 1;
    jail.connection = connection;
    jail.descriptors = descriptors;
    int gate[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate) != 0)
        return fail_step(connection, 0, "socketpair", errno), 1;
    int cgroup = open_birthplace(cgroups);
    pid_t pid = clone_into(flags, &cgroup);
    if (pid < 0)
        return fail_step(connection, 0, "clone", errno), 1;
    jail.gate = gate[pid == 0];
    close(gate[pid != 0]);
    for (int fd = DESCRIPTOR_FIRST; pid != 0 && fd < DESCRIPTOR_LAST; fd++)
        if (fd != jail.gate)
            close(fd); /* they are the program's: it is their end that counts */
    if (pid == 0) {
        closed(cgroup, 0);
        _exit(run_first(plan, &jail, uid, gid));
    }
    snprintf(jail.what, sizeof jail.what, "write the id maps");
    if ((!jail.guest.sets_groups && write_map(pid, "setgroups", "deny", 4) != 0) ||
        write_map(pid, "uid_map", uid_map, uid_length) != 0 || write_map(pid, "gid_map", gid_map, gid_length) != 0 ||
        open_trees(&trees, &jail, pid) != 0 || send_descriptors(jail.gate, jail.trees, jail.tree_count) != 0 ||
        enter_cgroups(cgroups, &jail, pid, cgroup >= 0) != 0 || send_descriptors(jail.gate, NULL, 0) != 0) {
        fail_step(connection, 0, jail.what, errno);
        kill(pid, SIGKILL);
    }
    for (uint32_t i = 0; i < jail.tree_count; i++)
        close(jail.trees[i]);
    close(descriptors);
    closed(cgroup, 0);
    int status = wait_for_end(connection, pid);
    remove_cgroups(cgroups);
    return status;
}
