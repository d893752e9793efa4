/* Calls that may block (a file system can), each in a child of its own that sends the answer through a pipe.
 *
 * A child writes whole frames; the agent passes each on once all of it is there, so a child that dies tears nothing.
 */
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "agent.h"
#include "port.h"

#define AT_ONCE 8
#define WATCHES_MAX 64
#define ANSWER_MAX ((16u << 20) + 4096)
#define CONTINUE_SECONDS 1.0
#define OPENING_SECONDS 5.0 /* that what the owner says waits for a watch */
#define READ_SIZE (256 << 10)
#define USER_RIGHTS "user:"

struct helper {
    struct helper *next;
    pid_t pid; /* 0 once reaped */
    int fd;    /* -1 once it has said all */
    int64_t call; /* not answered yet; 0: none */
    int64_t watch; /* its number; 0: it is no watch */
    bool opening;  /* a watch that was not answered yet */
    double began;
    struct buffer answer;
};

/* A call that waits until another one has ended. */
struct waiting {
    struct waiting *next;
    int64_t id;
    int descriptor;
    uint32_t name_length;
    size_t length;
    uint8_t data[]; /* its name, then its arguments */
};

static struct helper *helpers;
static struct waiting *first, *last;
static int64_t last_watch;

bool is_helper(pid_t pid) {
    for (struct helper *helper = helpers; helper != NULL; helper = helper->next)
        if (helper->pid == pid)
            return true;
    return false;
}

bool reaped_helper(pid_t pid) {
    for (struct helper *helper = helpers; helper != NULL; helper = helper->next)
        if (helper->pid == pid) {
            helper->pid = 0;
            return true;
        }
    return false;
}

void flush_answer(int channel) {
    write_all(channel, agent.out.data + agent.out.start, agent.out.end - agent.out.start);
    agent.out.start = agent.out.end = 0;
}

/* With all rights; but files that are made belong to the guest. */
static int create_as_guest(const struct guest *guest) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct rights[2];
    if (getuid() == guest->uid && getgid() == guest->gid)
        return 0;
    if (syscall(SYS_capget, &header, rights) != 0)
        return -1;
    setfsgid(guest->gid);
    setfsuid(guest->uid); /* takes the rights away that are for files */
    for (int i = 0; i < 2; i++)
        rights[i].effective = rights[i].permitted;
    return (int)syscall(SYS_capset, &header, rights);
}

static void call_stats(int64_t id, uint32_t processes) {
    struct statvfs found;
    if (statvfs("/", &found) != 0)
        memset(&found, 0, sizeof found);
    struct writer w = open_reply(id, 256);
    put_map(&w, 5);
    put_bytes(&w, "steps", 5);
    put_int(&w, 0);
    put_bytes(&w, "processes", 9);
    put_int(&w, processes);
    put_bytes(&w, "files", 5);
    put_int(&w, (int64_t)(found.f_files - found.f_ffree));
    put_bytes(&w, "bytes", 5);
    put_int(&w, (int64_t)((found.f_blocks - found.f_bfree) * found.f_frsize));
    put_bytes(&w, "uptime", 6);
    put_double(&w, now() - agent.began);
    close_frame(&w);
}

/* Connect the owner, by a socket of theirs, to a program that listens on a port. */
static void join_port(int64_t id, struct reader *arguments, int theirs, int channel) {
    int64_t port;
    if (!read_int(arguments, &port) || theirs < 0) {
        send_failure(id, 0, "a port needs a number and a descriptor", NULL);
        return;
    }
    int error = open_port(port, theirs, agent.guest);
    if (error)
        send_failure(id, error, strerror(error), NULL);
    else
        send_nil(id);
    flush_answer(channel);
    close(channel);
    wait(NULL); /* for what copies: it is known by this parent */
    _exit(0);
}

static void help(int64_t id, const uint8_t *name, uint32_t length, struct reader *arguments, int descriptor,
                 int64_t watch, uint32_t processes, int channel) {
    static const char rights[] = USER_RIGHTS;
    size_t prefix = sizeof rights - 1;
    prctl(PR_SET_NAME, "belljar-call");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    release(&agent.out);
    leave_parent((int[]){channel, descriptor}, 2);
    signal(SIGPIPE, SIG_IGN);
    if (length > prefix && memcmp(name, rights, prefix) == 0) {
        name += prefix;
        length -= (uint32_t)prefix;
        if (become_guest(agent.guest) != 0) {
            send_failure(id, errno, strerror(errno), NULL);
            length = 0;
        }
    } else if (create_as_guest(agent.guest) != 0) {
        send_failure(id, errno, strerror(errno), NULL);
        length = 0;
    }
    if (watch)
        watch_files(id, watch, arguments, channel);
    else if (is_text(name, length, "stats"))
        call_stats(id, processes);
    else if (is_text(name, length, "sync")) {
        sync();
        send_nil(id);
    } else if (is_text(name, length, "port"))
        join_port(id, arguments, descriptor, channel);
    else if (length && !call_files(id, name, length, arguments))
        send_failure(id, ENOSYS, "no such operation", NULL);
    flush_answer(channel);
    _exit(0);
}

static void start_helper(int64_t id, const uint8_t *name, uint32_t length, struct reader arguments, int descriptor) {
    int ends[2];
    int64_t watch = is_text(name, length, "watch") ? ++last_watch : 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        send_failure(id, errno, strerror(errno), NULL);
        return;
    }
    uint32_t processes = is_text(name, length, "stats") ? count_processes() : 0;
    pid_t pid = fork();
    if (pid == 0)
        help(id, name, length, &arguments, descriptor, watch, processes, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        send_failure(id, EAGAIN, strerror(EAGAIN), NULL);
        return;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    struct helper *helper = allocate(sizeof *helper);
    *helper = (struct helper){.next = helpers, .pid = pid, .fd = ends[0], .call = id, .watch = watch, .opening = watch != 0};
    helper->began = now();
    helpers = helper;
}

static int at_work(bool watches) {
    int count = 0;
    for (struct helper *helper = helpers; helper != NULL; helper = helper->next)
        count += helper->fd >= 0 && (helper->watch != 0) == watches;
    return count;
}

void run_helper(int64_t id, const uint8_t *name, uint32_t length, struct reader arguments, int descriptor) {
    bool watches = is_text(name, length, "watch");
    if (watches && at_work(true) >= WATCHES_MAX) {
        send_failure(id, 0, "too many watches", NULL);
        return;
    }
    if (watches || (first == NULL && at_work(false) < AT_ONCE)) {
        start_helper(id, name, length, arguments, descriptor);
        return;
    }
    size_t size = (size_t)(arguments.end - arguments.at);
    struct waiting *call = allocate(sizeof *call + length + size);
    *call = (struct waiting){.id = id, .name_length = length, .length = length + size, .descriptor = -1};
    if (descriptor >= 0)
        call->descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    memcpy(call->data, name, length);
    memcpy(call->data + length, arguments.at, size);
    agent.held += call->length;
    if (first == NULL)
        first = call;
    else
        last->next = call;
    last = call;
}

static void pass_on(struct helper *helper) {
    struct buffer *b = &helper->answer;
    while (b->end - b->start >= HEADER) {
        const uint8_t *at = b->data + b->start;
        size_t length = frame_length(at);
        if (length == 0 || length > ANSWER_MAX) {
            close(helper->fd);
            helper->fd = -1;
            return;
        }
        if (b->end - b->start < HEADER + length) {
            reserve(b, HEADER + length - (b->end - b->start));
            return;
        }
        if (helper->call) { /* what nobody asked for is dropped */
            reserve(&agent.out, HEADER + length);
            memcpy(agent.out.data + agent.out.end, at, HEADER + length);
            agent.out.end += HEADER + length;
            helper->call = 0;
            helper->opening = false;
        }
        b->start += HEADER + length;
    }
}

static void helper_ready(void *who, int which, short events) {
    struct helper *helper = who;
    (void)which, (void)events;
    if (helper->fd < 0)
        return;
    reserve(&helper->answer, READ_SIZE);
    ssize_t count = read(helper->fd, helper->answer.data + helper->answer.end,
                         helper->answer.room - helper->answer.end);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count > 0) {
        helper->answer.end += (size_t)count;
        pass_on(helper);
        return;
    }
    close(helper->fd);
    helper->fd = -1;
}

bool watch_is_opened(void) {
    bool found = false;
    for (struct helper *helper = helpers; helper != NULL; helper = helper->next)
        if (helper->watch && helper->opening && helper->call && helper->fd >= 0)
            found = found || now() - helper->began < OPENING_SECONDS;
    if (found)
        wake_at(now() + OPENING_SECONDS / 10);
    return found;
}

void next_changes(int64_t id, int64_t watch) {
    for (struct helper *helper = helpers; helper != NULL; helper = helper->next)
        if (helper->watch == watch && watch && helper->fd >= 0) {
            if (helper->call) {
                send_failure(id, 0, "the changes of this watch are asked for already", NULL);
                return;
            }
            helper->call = id;
            if (write(helper->fd, &id, sizeof id) != sizeof id)
                kill(helper->pid, SIGKILL);
            return;
        }
    send_failure(id, 0, "no such watch", NULL);
}

static void send_no_changes(int64_t id) {
    struct writer w = open_reply(id, 8);
    put_array(&w, 0);
    close_frame(&w);
}

void end_watch(int64_t id, int64_t watch) {
    for (struct helper *helper = helpers; helper != NULL; helper = helper->next)
        if (helper->watch == watch && watch && helper->fd >= 0) {
            if (helper->call)
                send_no_changes(helper->call);
            helper->call = 0;
            close(helper->fd); /* by which it ends */
            helper->fd = -1;
        }
    send_nil(id);
}

void forget_calls(void) {
    for (struct helper *helper = helpers; helper != NULL; helper = helper->next) {
        helper->call = 0; /* what it says is dropped */
        if (helper->watch && helper->fd >= 0) {
            close(helper->fd);
            helper->fd = -1;
        }
    }
    while (first != NULL) {
        struct waiting *call = first;
        first = call->next;
        agent.held -= call->length;
        if (call->descriptor >= 0)
            close(call->descriptor);
        free(call);
    }
}

void helpers_wait(void) {
    for (struct helper **at = &helpers; *at != NULL;) {
        struct helper *helper = *at;
        if (helper->fd < 0 && helper->call) {
            send_failure(helper->call, EIO, "the call ended without an answer", NULL);
            helper->call = 0;
        }
        if (helper->fd < 0)
            release(&helper->answer);
        if (helper->fd < 0 && helper->pid == 0) {
            *at = helper->next;
            free(helper);
            continue;
        }
        if (helper->fd >= 0 && may_send())
            wait_for(helper->fd, POLLIN, helper_ready, helper, 0);
        if (helper->call && !helper->watch) {
            if (now() - helper->began > CONTINUE_SECONDS) { /* a guest may be able to stop it */
                kill(helper->pid, SIGCONT);
                helper->began = now();
            }
            wake_at(helper->began + CONTINUE_SECONDS);
        }
        at = &helper->next;
    }
    while (first != NULL && at_work(false) < AT_ONCE) {
        struct waiting *call = first;
        first = call->next;
        struct reader arguments = reader_of(call->data + call->name_length, call->length - call->name_length);
        start_helper(call->id, call->data, call->name_length, arguments, call->descriptor);
        if (call->descriptor >= 0)
            close(call->descriptor);
        agent.held -= call->length;
        free(call);
        wake_at(0);
    }
}
