/* Pid 1 of a virtual machine. See vm.h.
 *
 * Up to the plan nothing depends on the sandbox, so that the machine can be saved then and continued as many. The ports
 * are virtio's: streams of bytes to the owner. "control" has the conversation; each of "relay0", "relay1", ... has the
 * messages of one FUSE device, or the bytes of one connection. Each message begins with its length; a length of 0 is the
 * end, which each side says once: then the port is free again. ABORT in place of a length ends a connection. */
#include "vm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/random.h>
#include <linux/reboot.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "jail.h"
#include "port.h"
#include "serve.h"

#define PORTS "/sys/class/virtio-ports"
#define RELAYS_MAX 28
#define ABORT 0xffffffffu
#define PIECE (64 << 10)
#define MESSAGE_MAX ((1u << 20) + 4096)
#define PLAN_MAX (4u << 20)
#define FIRST_PRIORITY (-15)
#define SEED_MAX 512
#define CHILD (-2)

bool in_machine;

static struct {
    int port; /* -1: the machine has no such port */
    pid_t pid; /* of the relay; 0: the port is free */
} relays[RELAYS_MAX];

/* Steps. */

static int insert_module(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int result = (int)syscall(SYS_finit_module, fd, "", 0), error = errno;
    close(fd);
    errno = error;
    return result == 0 || error == EEXIST ? 0 : -1;
}

int seed_random(struct reader *r, struct jail *jail) {
    (void)jail;
    const uint8_t *data;
    uint32_t length;
    _Alignas(struct rand_pool_info) uint8_t space[sizeof(struct rand_pool_info) + SEED_MAX];
    struct rand_pool_info *seed = (void *)space;
    if (!read_bytes(r, &data, &length) || length > SEED_MAX)
        return -1;
    seed->entropy_count = (int)length * 8;
    seed->buf_size = (int)length;
    memcpy(seed->buf, data, length);
    int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
    int result = fd < 0 ? -1 : ioctl(fd, RNDADDENTROPY, seed);
    if (result == 0)
        result = ioctl(fd, RNDRESEEDCRNG);
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return result;
}

int set_clock(struct reader *r, struct jail *jail) {
    (void)jail;
    int64_t nanoseconds = step_number(r);
    struct timespec time = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    return r->bad ? -1 : clock_settime(CLOCK_REALTIME, &time);
}

int switch_root(struct reader *r, struct jail *jail) {
    (void)jail;
    const char *root = step_text(r, 0);
    layer = open("/layer/upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->bad || chdir(root) != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0)
        return -1;
    return chdir("/");
}

int open_tap(struct reader *r, struct jail *jail) {
    (void)jail;
    const char *path = step_text(r, 0), *name = step_text(r, 1);
    int number = (int)step_number(r);
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
    int fd = r->bad ? -1 : open(path, O_RDWR);
    if (fd < 0)
        return -1;
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (ioctl(fd, TUNSETIFF, &request) != 0)
        return -1;
    return fd == number || (dup2(fd, number) == number && close(fd) == 0) ? 0 : -1;
}

/* Ports. */

/* Opens the port of a name, once the kernel has found it. */
static int open_named(const char *wanted, int tries) {
    for (; tries > 0; tries--) {
        DIR *directory = opendir(PORTS);
        for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;) {
            char path[300], name[64] = {0};
            snprintf(path, sizeof path, PORTS "/%s/name", entry->d_name);
            int fd = open(path, O_RDONLY | O_CLOEXEC);
            ssize_t length = fd < 0 ? -1 : read(fd, name, sizeof name - 1);
            if (fd >= 0)
                close(fd);
            name[strcspn(name, "\n")] = 0;
            if (length <= 0 || strcmp(name, wanted) != 0)
                continue;
            snprintf(path, sizeof path, "/dev/%s", entry->d_name);
            closedir(directory);
            return open(path, O_RDWR | O_CLOEXEC);
        }
        if (directory != NULL)
            closedir(directory);
        if (tries > 1)
            usleep(10000);
    }
    errno = ENOENT;
    return -1;
}

/* Relays: a process for each FUSE device. */

static struct {
    int port, device;
    pthread_mutex_t lock; /* held while a message is written to the port */
    bool ended;           /* the end was said */
} relay = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void say_end(void) {
    static const uint8_t end[4];
    pthread_mutex_lock(&relay.lock);
    if (!relay.ended)
        write_all(relay.port, end, sizeof end);
    relay.ended = true;
    pthread_mutex_unlock(&relay.lock);
}

/* The kernel's messages to the owner. */
static void *relay_out(void *nothing) {
    uint8_t *message = allocate(MESSAGE_MAX);
    for (;;) {
        ssize_t length = read(relay.device, message, MESSAGE_MAX);
        if (length < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN))
            continue;
        if (length <= 0)
            break; /* it is unmounted */
        pthread_mutex_lock(&relay.lock);
        if (!relay.ended)
            write_all(relay.port, message, (size_t)length);
        pthread_mutex_unlock(&relay.lock);
    }
    say_end();
    return nothing;
}

/* The owner's to the kernel, until the end. */
static void relay_in(void) {
    uint8_t *message = allocate(MESSAGE_MAX);
    for (;;) {
        uint32_t length;
        if (read_exactly(relay.port, message, sizeof length) != 0)
            return;
        memcpy(&length, message, sizeof length);
        if (length == 0 || length < sizeof length || length > MESSAGE_MAX ||
            read_exactly(relay.port, message + sizeof length, length - sizeof length) != 0)
            return;
        if (write(relay.device, message, length) < 0 && errno == ENODEV)
            continue; /* it is unmounted, and the owner is told by the other thread */
    }
}

/* A connection's bytes to the owner. */
static void *relay_bytes_out(void *nothing) {
    uint8_t *piece = allocate(PIECE + 4);
    for (;;) {
        ssize_t count = read(relay.device, piece + 4, PIECE);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        set_frame_length(piece, (size_t)count + 4);
        pthread_mutex_lock(&relay.lock);
        write_all(relay.port, piece, (size_t)count + 4);
        pthread_mutex_unlock(&relay.lock);
    }
    say_end();
    return nothing;
}

/* The owner's to the connection, until its end. */
static void relay_bytes_in(void) {
    uint8_t *piece = allocate(MESSAGE_MAX);
    for (;;) {
        if (read_exactly(relay.port, piece, 4) != 0)
            return;
        size_t length = frame_length(piece);
        if (length == ABORT) {
            shutdown(relay.device, SHUT_RDWR);
        } else if (length == 0) {
            shutdown(relay.device, SHUT_WR);
            return;
        } else if (length <= 4 || length > MESSAGE_MAX || read_exactly(relay.port, piece, length - 4) != 0) {
            return;
        } else {
            write_all(relay.device, piece, length - 4); /* if nobody takes it, it is dropped */
        }
    }
}

/* Starts a child for a free port. Its number; -1 with errno; CHILD in the child, whose descriptors are that and `kept`. */
static int take_port(int kept) {
    int free = 0;
    while (free < RELAYS_MAX && (relays[free].pid != 0 || relays[free].port < 0))
        free++;
    pid_t pid = free == RELAYS_MAX ? (errno = EMFILE, -1) : fork();
    if (pid == 0) {
        relay.port = relays[free].port;
        relay.device = kept;
        leave_parent((int[]){kept, relay.port}, 2);
        prctl(PR_SET_NAME, "belljar-relay");
        signal(SIGPIPE, SIG_IGN);
        return CHILD;
    }
    if (pid < 0)
        return -1;
    relays[free].pid = pid;
    return free;
}

/* Starts a relay between a free port and a descriptor, which it takes. The port's number, or -1 with errno. */
static int start_relay(int device, void *(*out)(void *), void (*in)(void)) {
    pthread_t thread;
    int number = take_port(device);
    if (number == CHILD) {
        if (pthread_create(&thread, NULL, out, NULL) == 0) {
            in();
            if (out == relay_bytes_out)
                pthread_join(thread, NULL);
        }
        say_end();
        _exit(0);
    }
    int error = errno;
    close(device);
    errno = error;
    return number;
}

static void answer_port(int64_t id, int number) {
    if (number < 0) {
        send_failure(id, errno, strerror(errno), NULL);
        return;
    }
    struct writer w = open_reply(id, 16);
    put_int(&w, number);
    close_frame(&w);
}

void open_tree_port(int64_t id, struct reader *arguments, void (*serve)(struct reader *arguments, int port)) {
    int number = take_port(layer);
    if (number == CHILD) {
        serve(arguments, relay.port);
        _exit(0);
    }
    answer_port(id, number);
}

int relay_device(int device) {
    return start_relay(device, relay_out, relay_in);
}

void connect_port(int64_t id, struct reader *arguments) {
    int64_t port;
    if (!read_int(arguments, &port))
        return;
    int fd = port > 0 && port < 65536 ? connect_loopback((uint16_t)port) : (errno = EINVAL, -1);
    answer_port(id, fd < 0 ? -1 : (fcntl(fd, F_SETFL, 0), start_relay(fd, relay_bytes_out, relay_bytes_in)));
}

bool is_relay(pid_t pid) {
    for (int i = 0; i < RELAYS_MAX; i++)
        if (pid != 0 && relays[i].pid == pid)
            return true;
    return false;
}

bool reaped_relay(pid_t pid) {
    for (int i = 0; i < RELAYS_MAX; i++)
        if (relays[i].pid == pid) {
            relays[i].pid = 0;
            return true;
        }
    return false;
}

void reset_ports(void) {
    static uint8_t rest[PIECE];
    for (int i = 0; i < RELAYS_MAX; i++) {
        if (relays[i].pid != 0) {
            kill(relays[i].pid, SIGKILL);
            while (waitpid(relays[i].pid, NULL, 0) < 0 && errno == EINTR)
                ;
            relays[i].pid = 0;
        }
        if (relays[i].port < 0)
            continue;
        fcntl(relays[i].port, F_SETFL, O_NONBLOCK);
        while (read(relays[i].port, rest, sizeof rest) > 0)
            ;
        fcntl(relays[i].port, F_SETFL, 0);
    }
}

/* The machine. */

static void load_modules(const char *list) {
    char path[256];
    FILE *file = fopen(list, "re");
    while (file != NULL && fgets(path, sizeof path, file) != NULL) {
        path[strcspn(path, "\n")] = 0;
        if (insert_module(path) != 0)
            fprintf(stderr, "belljar: %s: %s\n", path, strerror(errno));
    }
    if (file != NULL)
        fclose(file);
}

/* Drivers of devices that differ from sandbox to sandbox: these are left alone until a plan has them probed. */
static void load_drivers(void) {
    int fd = open("/sys/bus/virtio/drivers_autoprobe", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write_all(fd, (const uint8_t *)"0", 1) != 0)
        fprintf(stderr, "belljar: devices can't wait: %s\n", strerror(errno));
    else
        load_modules("/drivers");
    if (fd >= 0)
        close(fd);
}

static int set_up_devices(void) {
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "") != 0 ||
        mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "") != 0 ||
        (mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "") != 0 && errno != EBUSY))
        return -1;
    load_modules("/modules");
    load_drivers();
    return 0;
}

/* Ends the machine: everything is killed and written. */
static void end_machine(void) {
    kill(-1, SIGKILL);
    sync();
    mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY, NULL);
    sync();
    reboot(RB_AUTOBOOT);
}

static int serve_machine(void) {
    static const uint8_t hello[] = {0x91, 0xa5, 'h', 'e', 'l', 'l', 'o'}; /* ["hello"]: it is up, and wants a plan */
    int connection = open_named("control", 500);
    uint8_t *plan = allocate(PLAN_MAX);
    if (connection < 0)
        return -1;
    for (int i = 0; i < RELAYS_MAX; i++) {
        char name[16];
        snprintf(name, sizeof name, "relay%d", i);
        relays[i].port = open_named(name, 1);
    }
    if (send_frame(connection, hello, sizeof hello) != 0)
        return -1;
    ssize_t length = receive_frame(connection, plan, PLAN_MAX);
    if (length <= 0)
        return -1;
    struct reader reader = reader_of(plan, (size_t)length);
    return run_machine_plan(&reader, connection);
}

int vm_main(void) {
    in_machine = true;
    setsid();
    setpriority(PRIO_PROCESS, 0, FIRST_PRIORITY); /* a fork bomb is to be stopped */
    signal(SIGPIPE, SIG_IGN);
    if (set_up_devices() != 0 || (agent.program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)) < 0 ||
        serve_machine() != 0)
        fprintf(stderr, "belljar: the machine can't be served: %s\n", strerror(errno));
    end_machine();
    return 1;
}
