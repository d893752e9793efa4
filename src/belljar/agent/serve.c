/* The conversation: one loop that never blocks. Frames in, acts, frames out. See serve.h. */
#include "serve.h"

#include <sys/syscall.h>
#include <time.h>

#include "agent.h"
#include "vm.h"

#define READ_LEAST (64 << 10)
#define KEPT_ROOM (1 << 20)  /* an empty buffer larger than this is given back */
#define HELD_MAX (256u << 20) /* of the owner's bytes that nobody takes: no more is read from it */
#define FDS_MAX 32
#define GO_ON_MAX (64 << 10)
#define TURNS 64 /* reads from the owner before others have their turn */

struct agent agent;

static int connection;
static struct buffer in;
static int arrived[FDS_MAX], arrived_count; /* descriptors whose message is not complete yet */
static struct rlimit files_limit;
static sigset_t usual_signals;

struct waiter {
    on_ready *tell;
    void *who;
    int which;
};
static struct pollfd *polled;
static struct waiter *waiters;
static size_t poll_count, poll_room;
static double wake_time;

double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void *allocate(size_t size) {
    void *found = malloc(size ? size : 1);
    if (found == NULL)
        _exit(1);
    return found;
}

void reserve(struct buffer *b, size_t more) {
    if (b->start == b->end)
        b->start = b->end = 0;
    if (b->room - b->end >= more)
        return;
    if (b->start) {
        memmove(b->data, b->data + b->start, b->end - b->start);
        b->end -= b->start;
        b->start = 0;
    }
    if (b->room - b->end < more) {
        size_t room = b->end + more;
        if (room < 2 * b->room)
            room = 2 * b->room;
        b->data = realloc(b->data, room);
        if (b->data == NULL)
            _exit(1);
        b->room = room;
    }
}

void release(struct buffer *b) {
    free(b->data);
    *b = (struct buffer){0};
}

static void shrink(struct buffer *b) {
    if (b->start == b->end && b->room > KEPT_ROOM)
        release(b);
}

struct writer open_frame(size_t most) {
    reserve(&agent.out, most + HEADER);
    struct writer w = writer_of(agent.out.data + agent.out.end, most + HEADER);
    w.at += HEADER;
    return w;
}

void close_frame(struct writer *w) {
    size_t length = written(w) - HEADER;
    if (w->full)
        _exit(1); /* a frame larger than its writer said: a bug of ours */
    set_frame_length(w->start, length);
    agent.out.end += written(w);
}

bool may_send(void) {
    return agent.out.end - agent.out.start < BACKLOG;
}

void send_failure(int64_t id, int error, const char *message, const char *path) {
    size_t length = strlen(message), path_length = path == NULL ? 0 : strlen(path);
    struct writer w = open_frame(length + path_length + 64);
    put_array(&w, 5);
    put_str(&w, "failure");
    put_int(&w, id);
    put_int(&w, error);
    put_bytes(&w, message, length);
    if (path == NULL)
        put_nil(&w);
    else
        put_bytes(&w, path, path_length);
    close_frame(&w);
}

struct writer open_reply(int64_t id, size_t most) {
    struct writer w = open_frame(most + 64);
    put_array(&w, 3);
    put_str(&w, "reply");
    put_int(&w, id);
    return w;
}

void send_nil(int64_t id) {
    struct writer w = open_reply(id, 1);
    put_nil(&w);
    close_frame(&w);
}

void send_bool(int64_t id, bool value) {
    struct writer w = open_reply(id, 1);
    put_bool(&w, value);
    close_frame(&w);
}

void wait_for(int fd, short events, on_ready *tell, void *who, int which) {
    if (poll_count == poll_room) {
        poll_room = poll_room ? 2 * poll_room : 64;
        polled = realloc(polled, poll_room * sizeof *polled);
        waiters = realloc(waiters, poll_room * sizeof *waiters);
        if (polled == NULL || waiters == NULL)
            _exit(1);
    }
    polled[poll_count] = (struct pollfd){fd, events, 0};
    waiters[poll_count++] = (struct waiter){tell, who, which};
}

void wake_at(double time) {
    if (time < wake_time)
        wake_time = time;
}

void leave_parent(const int *kept, int count) {
    unsigned from = 3;
    for (;;) {
        unsigned next = ~0u;
        for (int i = 0; i < count; i++)
            if (kept[i] >= 0 && (unsigned)kept[i] >= from && (unsigned)kept[i] < next)
                next = (unsigned)kept[i];
        if (next > from && syscall(SYS_close_range, from, next == ~0u ? next : next - 1, 0) != 0)
            for (unsigned fd = from; fd < next && fd < files_limit.rlim_max; fd++)
                close((int)fd);
        if (next == ~0u)
            break;
        from = next + 1;
    }
    setrlimit(RLIMIT_NOFILE, &files_limit);
    if (in_machine)
        setpriority(PRIO_PROCESS, 0, 0);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &usual_signals, NULL);
}

static int claim_descriptor(void) {
    int fd = arrived[0];
    memmove(arrived, arrived + 1, (size_t)--arrived_count * sizeof *arrived);
    return fd;
}

/* Each gives -1 for a message that makes no sense, which ends the conversation. */

static int take_boot(struct reader *r, const uint8_t *body, size_t length) {
    free(agent.boot);
    agent.boot = allocate(length);
    memcpy(agent.boot, body, length);
    struct reader copy = reader_of(agent.boot + (r->at - body), (size_t)(r->end - r->at));
    agent.env = copy;
    skip(&copy);
    read_bytes(&copy, &agent.cwd, &agent.cwd_length);
    skip(&copy); /* user and hostname are the plan's */
    skip(&copy);
    return read_limits(&copy, &agent.limits, true) ? 0 : -1;
}

/* Has all programs wait, says so, and waits for one frame, ["go_on", whether it is a branch, [jobs that stay], steps],
 * while the owner saves the machine as it is. In a branch there is another owner, who knows only of those jobs: nobody
 * answers what was asked before, and programs wait until they are told to continue. */
static int hold_still(int64_t id) {
    static uint8_t frame[GO_ON_MAX];
    uint32_t fields, size;
    const uint8_t *kind;
    bool branch = false;
    if (in.start != in.end) {
        send_failure(id, EBUSY, "the owner goes on to talk", NULL);
        return 0;
    }
    stop_others();
    send_nil(id);
    fcntl(connection, F_SETFL, 0);
    if (write_all(connection, agent.out.data + agent.out.start, agent.out.end - agent.out.start) != 0)
        return -1;
    release(&agent.out);
    ssize_t length = receive_frame(connection, frame, sizeof frame);
    if (length <= 0)
        return -1;
    struct reader r = reader_of(frame, (size_t)length);
    read_array(&r, &fields);
    read_bytes(&r, &kind, &size);
    read_bool(&r, &branch);
    struct reader kept = r;
    skip(&r);
    if (r.bad || !is_text(kind, size, "go_on"))
        return -1;
    if (branch) {
        reset_ports();
        forget_jobs(kept);
        forget_calls();
        forget_callers();
    }
    if (run_machine_steps(&r) != 0 || (branch && send_ready(connection, NULL, 0) != 0))
        return -1;
    if (!branch)
        continue_others();
    return fcntl(connection, F_SETFL, O_NONBLOCK);
}

static int take_call(struct reader *r, uint32_t fields) {
    int64_t id, number, fds = 0;
    const uint8_t *name, *data;
    uint32_t length, count, size;
    int descriptor = -1;
    read_int(r, &id);
    read_bytes(r, &name, &length);
    struct reader arguments = *r;
    skip(r);
    arguments.end = r->at;
    if (fields > 4)
        read_int(r, &fds);
    if (r->bad || fds < 0 || fds > arrived_count)
        return -1;
    for (; fds > 0; fds--) {
        if (descriptor >= 0)
            close(descriptor); /* no call takes two */
        descriptor = claim_descriptor();
    }
    read_array(&arguments, &count);
    if (arguments.bad)
        return -1;
    bool taken = true;
    if (is_text(name, length, "input") && count == 2) {
        if (read_int(&arguments, &number) && read_bytes(&arguments, &data, &size))
            job_input(number, 0, data, size, id);
    } else if (is_text(name, length, "tool") && count == 1) {
        add_tool(id, &arguments);
    } else if (is_text(name, length, "fuse") && count == 3) {
        mount_tree(id, &arguments);
    } else if (in_machine && is_text(name, length, "port") && count == 1) {
        connect_port(id, &arguments);
    } else if (in_machine && is_text(name, length, "send_tree") && count == 1) {
        open_tree_port(id, &arguments, send_tree);
    } else if (in_machine && is_text(name, length, "take_tree") && count == 0) {
        open_tree_port(id, &arguments, take_tree);
    } else if (in_machine && is_text(name, length, "hold_still") && count == 0) {
        return hold_still(id);
    } else if (in_machine && is_text(name, length, "continue") && count == 0) {
        continue_others();
        send_nil(id);
    } else if (is_text(name, length, "unmount") && count == 1) {
        remove_tree(id, &arguments);
    } else if (is_text(name, length, "changes") && count == 1) {
        if (read_int(&arguments, &number))
            next_changes(id, number);
    } else if (is_text(name, length, "unwatch") && count == 1) {
        if (read_int(&arguments, &number))
            end_watch(id, number);
    } else {
        taken = false;
        run_helper(id, name, length, arguments, descriptor);
    }
    if (descriptor >= 0)
        close(descriptor);
    if (taken && arguments.bad)
        send_failure(id, 0, "bad arguments", NULL);
    return 0;
}

static int take_frame(const uint8_t *body, size_t length) {
    struct reader r = reader_of(body, length);
    uint32_t fields, size;
    const uint8_t *kind, *data;
    int64_t id = 0, stream = 0, number = 0, columns = 0;
    bool all = false;
    read_array(&r, &fields);
    read_bytes(&r, &kind, &size);
    if (is_text(kind, size, "boot"))
        return take_boot(&r, body, length);
    if (is_text(kind, size, "start"))
        return start_job(&r, fields);
    if (is_text(kind, size, "call"))
        return take_call(&r, fields);
    if (is_text(kind, size, "answer")) {
        take_answer(&r, fields);
    } else if (is_text(kind, size, "input")) {
        uint32_t count;
        read_int(&r, &id);
        read_bytes(&r, &data, &count);
        if (fields > 3)
            read_int(&r, &stream);
        if (!r.bad)
            job_input(id, stream, data, count, 0);
    } else if (is_text(kind, size, "credit")) {
        read_int(&r, &id);
        read_int(&r, &stream);
        if (read_int(&r, &number))
            job_credit(id, stream, number);
    } else if (is_text(kind, size, "signal")) {
        read_int(&r, &id);
        read_int(&r, &number);
        if (fields > 3)
            read_bool(&r, &all);
        if (!r.bad)
            job_signal(id, number, all);
    } else if (is_text(kind, size, "resize")) {
        read_int(&r, &id);
        read_int(&r, &number);
        if (read_int(&r, &columns))
            job_resize(id, number, columns);
    } else if (is_text(kind, size, "renew")) {
        if (read_int(&r, &id))
            job_renew(id, &r);
    } else if (in_machine && is_text(kind, size, "go_on")) {
        return 0; /* it was not held still, and goes on anyway */
    } else {
        return -1;
    }
    return r.bad ? -1 : 0;
}

/* Whether there was something to take. */
static bool receive(bool *ended) {
    reserve(&in, READ_LEAST);
    union {
        char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
        struct cmsghdr aligned;
    } control;
    struct iovec place = {in.data + in.end, in.room - in.end};
    struct msghdr message = {
        .msg_iov = &place, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
    ssize_t count = in_machine ? read(connection, place.iov_base, place.iov_len)
                               : recvmsg(connection, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (count <= 0) {
        *ended = true;
        return false;
    }
    struct cmsghdr *part = in_machine ? NULL : CMSG_FIRSTHDR(&message); /* a message of the kernel's brings at most one */
    bool brings = part != NULL && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS;
    size_t size = brings ? part->cmsg_len - CMSG_LEN(0) : 0;
    for (size_t at = 0; at + sizeof(int) <= size; at += sizeof(int)) {
        int fd;
        memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
        if (arrived_count < FDS_MAX)
            arrived[arrived_count++] = fd;
        else
            close(fd);
    }
    in.end += (size_t)count;
    return true;
}

/* -1: the owner broke the rules. */
static int take_frames(void) {
    while (in.end - in.start >= HEADER && !watch_is_opened()) {
        const uint8_t *at = in.data + in.start;
        size_t length = frame_length(at);
        if (length == 0 || length > FRAME_MAX)
            return -1;
        if (in.end - in.start < HEADER + length) {
            reserve(&in, HEADER + length - (in.end - in.start));
            return 0;
        }
        in.start += HEADER + length;
        if (take_frame(at + HEADER, length) != 0)
            return -1;
    }
    if (in.start == in.end)
        while (arrived_count)
            close(claim_descriptor());
    shrink(&in);
    return 0;
}

static bool send_some(void) {
    while (agent.out.start < agent.out.end) {
        const uint8_t *data = agent.out.data + agent.out.start;
        size_t size = agent.out.end - agent.out.start;
        ssize_t count = in_machine ? write(connection, data, size)
                                   : send(connection, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return errno == EAGAIN;
        agent.out.start += (size_t)count;
    }
    shrink(&agent.out);
    return true;
}

static void reap(void) {
    for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;)
        if (!reaped_helper(pid))
            reaped_relay(pid);
}

static void ignore_signal(int number) {
    (void)number; /* its only effect is that ppoll returns */
}

static void prepare(void) {
    struct sigaction child = {.sa_handler = ignore_signal};
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigemptyset(&usual_signals);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL); /* an owner under nohup ignores some, and programs would not get them */
    sigaction(SIGCHLD, &child, NULL);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    signal(SIGPIPE, SIG_IGN);
    getrlimit(RLIMIT_NOFILE, &files_limit);
    struct rlimit most = {files_limit.rlim_max, files_limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &most);
    umask(022);
    prctl(PR_SET_NAME, "belljar-agent");
    if (getpid() != 1)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int serve(int socket, int descriptors, struct guest *guest) {
    static const uint8_t no_env[] = {0x80};
    agent.descriptors = descriptors;
    connection = socket;
    if (in_machine)
        fcntl(connection, F_SETFL, O_NONBLOCK); /* it is a port, which takes no flags with each call */
    agent.began = now();
    agent.guest = guest;
    agent.env = reader_of(no_env, sizeof no_env);
    agent.cwd = (const uint8_t *)"/";
    agent.cwd_length = 1;
    agent.limits = (struct limits){600, 60, 64 << 20, 1024, 1024};
    if (!agent.directory[0])
        strcpy(agent.directory, "/run/belljar");
    prepare();
    bool ended = false;
    while (!ended) {
        poll_count = 0;
        wake_time = 1e18;
        bool takes = agent.held < HELD_MAX && !watch_is_opened();
        short events = (short)((takes ? POLLIN : 0) | (agent.out.start < agent.out.end ? POLLOUT : 0));
        wait_for(connection, events, NULL, NULL, 0);
        jobs_wait();
        helpers_wait();
        tools_wait();
        double left = wake_time > 1e17 ? 3600 : wake_time - now();
        if (left < 0)
            left = 0;
        struct timespec timeout = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
        if (ppoll(polled, poll_count, &timeout, &usual_signals) < 0 && errno != EINTR)
            break;
        for (size_t i = 1; i < poll_count; i++)
            if (polled[i].revents)
                waiters[i].tell(waiters[i].who, waiters[i].which, polled[i].revents);
        reap();
        for (int turn = 0; turn < TURNS && !ended; turn++) {
            if (take_frames() != 0)
                ended = true;
            if (agent.held >= HELD_MAX || watch_is_opened() || ended || !receive(&ended))
                break;
        }
        jobs_advance();
        if (!send_some())
            break;
    }
    if (getpid() != 1)
        kill_everything();
    return 0;
}
