/* Started programs: their pipes or terminal, their limits, and everything that they start.
 *
 * Between the agent and each program stands a keeper, a child of the agent that is a subreaper (PR_SET_CHILD_SUBREAPER):
 * whatever the program starts, a daemon with a session of its own too, stays a descendant of it. So one look at the
 * parents in /proc tells which processes belong to which program. A keeper ends with the last of its descendants.
 */
#include <math.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "agent.h"
#include "vm.h"

#define HELD (64 << 10) /* output below this waits for the program's end, so that a short one is answered by one frame */
#define REST_MAX (2 << 20) /* of what an ended program left in a pipe */
/* What an ended program left behind may still add to its output as long as it is busy: for LINGER seconds of processor
 * time, or LINGER_MAX of any, which is for a machine that lets it wait for its processor. */
#define LINGER 0.1
#define LINGER_MAX 2.0
#define LOOK 0.002 /* seconds between two looks at whether it is */
#define KILL_PAUSE 0.005
#define MANY 16 /* processes that are stopped before they are killed, so that none goes on to fork when another has died */
#define STOP_LOOKS 50 /* until they are killed in any case */
#define SAMPLE (in_machine ? 0.25 : 0.05) /* seconds between two looks at processor time and processes */
#define SAMPLE_LEFT 0.5 /* the same, where the owner waits for nothing */
#define DISCARD_PAUSE 0.01
#define DISCARDED_MAX 1024
#define CONTROL_IN 3
#define CONTROL_OUT 4
#define HIGH 16 /* descriptors from here on are in nobody's way */

enum { INPUTS = 2, OUTPUTS = 3, STREAMS = 5 };

/* Input on its way; `call` is answered when it is written. */
struct piece {
    struct piece *next;
    int64_t call;
    size_t length, done;
    uint8_t data[];
};

struct input {
    int fd;
    int rest; /* the other end, to take back what nobody read; -1: that is lost */
    bool ending;
    struct piece *first, *last;
};

struct output {
    int fd;
    uint8_t *held;
    uint32_t size;
    int64_t credit;
};

/* What a keeper, or the program before it is executed, says by the report pipe. */
struct report {
    enum { BEGUN, FAILED, ENDED } kind; /* value: its pid, an errno, its wait status */
    int value;
    bool left; /* ENDED: other processes go on */
    int64_t cpu; /* ENDED: microseconds of processor time, with that of all it waited for */
};

struct job {
    struct job *next;
    int64_t id;
    pid_t keeper, pid;
    int report; /* -1 once the keeper has ended */
    char *cwd;
    bool live, merged, control, terminal;
    bool told; /* the owner knows that it ended, and has forgotten it */
    bool leaves, killing, truncated, has_ended;
    int status, signal; /* a signal that came before it began */
    int64_t used; /* microseconds of processor time, once it has ended */
    struct input inputs[INPUTS];
    struct output outputs[OUTPUTS];
    struct limits limits;
    const char *limit; /* the one that stopped it */
    double allowed, began, ended, deadline, sent, cpu, cpu_before;
    double cpu_ended; /* when first looked at after its program had ended; -1 before */
    uint32_t processes, moving; /* moving: of those, not stopped yet */
    int stops;                  /* looks so far at which they were stopped */
    bool strikes;               /* they are killed now */
    bool busy;  /* some process of it was running when last looked at */
    int quiet;  /* looks in a row at which none was */
};

static struct job *jobs;
static int discarded[DISCARDED_MAX], discarded_count; /* pipes that ended programs left to others */
static double discard_after, next_sample, next_look;

static struct job *find_job(int64_t id) {
    for (struct job *job = jobs; job != NULL; job = job->next)
        if (job->id == id && !job->told)
            return job;
    return NULL;
}

static void close_fd(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

bool read_limits(struct reader *r, struct limits *limits, bool raise) {
    static const char *const names[] = {"wall_seconds", "cpu_seconds", "output_bytes", "processes", "open_files"};
    double *const places[] = {&limits->wall_seconds, &limits->cpu_seconds, &limits->output_bytes, &limits->processes,
                              &limits->open_files};
    uint32_t count;
    read_map(r, &count);
    for (uint32_t i = 0; i < count && !r->bad; i++) {
        const uint8_t *name;
        uint32_t length;
        double value;
        read_bytes(r, &name, &length);
        read_number(r, &value);
        value = value < 0 ? 0 : value;
        for (int at = 0; at < 5; at++)
            if (is_text(name, length, names[at]) && (raise || value < *places[at]))
                *places[at] = value;
    }
    return !r->bad;
}

/* Input. */

static void close_input(struct input *input) {
    bool returns = input->rest >= 0;
    close_fd(&input->fd);
    close_fd(&input->rest);
    while (input->first != NULL) {
        struct piece *piece = input->first;
        input->first = piece->next;
        agent.held -= piece->length;
        if (piece->call)
            send_bool(piece->call, returns); /* if so, by the Exited */
        free(piece);
    }
}

static void pump_input(struct input *input) {
    while (input->fd >= 0 && input->first != NULL) {
        struct piece *piece = input->first;
        ssize_t count = piece->done == piece->length
                            ? 0
                            : write(input->fd, piece->data + piece->done, piece->length - piece->done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN)
            return;
        if (count < 0) { /* nobody reads, or the terminal is gone */
            close_input(input);
            return;
        }
        piece->done += (size_t)count;
        if (piece->done < piece->length)
            continue;
        input->first = piece->next;
        agent.held -= piece->length;
        if (piece->call)
            send_bool(piece->call, true);
        free(piece);
    }
    if (input->ending)
        close_fd(&input->fd);
}

static void queue_input(struct input *input, const uint8_t *data, size_t length, int64_t call) {
    struct piece *piece = allocate(sizeof *piece + length);
    *piece = (struct piece){.call = call, .length = length};
    memcpy(piece->data, data, length);
    agent.held += length;
    if (input->first == NULL)
        input->first = piece;
    else
        input->last->next = piece;
    input->last = piece;
    pump_input(input);
}

void job_input(int64_t id, int64_t stream, const uint8_t *data, uint32_t length, int64_t call) {
    struct job *job = find_job(id);
    struct input *input = job == NULL || (stream != 0 && stream != CONTROL_IN) ? NULL : &job->inputs[stream != 0];
    if (input == NULL || input->fd < 0 || input->ending) {
        if (call)
            send_bool(call, false);
    } else if (length == 0 && !call) {
        input->ending = true;
        pump_input(input);
    } else {
        queue_input(input, data, length, call);
    }
}

/* Limits. */

static void stop_job(struct job *job, const char *limit, double allowed) {
    if (job->limit == NULL && !job->told) {
        job->limit = limit;
        job->allowed = allowed;
    }
    job->killing = true;
    next_look = 0;
}

/* Output. */

static int stream_of(int index) {
    return index == 2 ? CONTROL_OUT : index + 1;
}

static void flush_output(struct job *job, int index) {
    struct output *o = &job->outputs[index];
    if (!job->live && o->size < HELD)
        return;
    while (o->size && o->credit > 0 && may_send()) {
        uint32_t count = o->credit < o->size ? (uint32_t)o->credit : o->size;
        struct writer w = open_frame(count + 64);
        put_array(&w, 4);
        put_str(&w, "output");
        put_int(&w, job->id);
        put_int(&w, stream_of(index));
        put_bytes(&w, o->held, count);
        close_frame(&w);
        o->credit -= count;
        o->size -= count;
        memmove(o->held, o->held + count, o->size);
    }
}

/* How much of a piece of output the limit lets through. */
static size_t charge_output(struct job *job, size_t size) {
    double room = job->limits.output_bytes - job->sent;
    job->sent += (double)size;
    if ((double)size <= room)
        return size;
    job->truncated = true;
    stop_job(job, "output_bytes", job->limits.output_bytes);
    return room > 0 ? (size_t)room : 0;
}

/* Read into what is held, up to `room` bytes of it; false: nothing more for now. */
static bool read_output(struct job *job, struct output *o, uint32_t room) {
    static uint8_t data[HELD];
    if (o->fd < 0 || o->size >= room)
        return false;
    ssize_t count = read(o->fd, data, room - o->size < HELD ? room - o->size : HELD);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (count <= 0) { /* a terminal ends with EIO */
        close_fd(&o->fd);
        return false;
    }
    size_t kept = charge_output(job, (size_t)count);
    if (o->held == NULL)
        o->held = allocate(HELD);
    memcpy(o->held + o->size, data, kept);
    o->size += (uint32_t)kept;
    return true;
}

static bool pump_output(struct job *job, int index) {
    struct output *o = &job->outputs[index];
    flush_output(job, index);
    if (!may_send() || !read_output(job, o, HELD))
        return false;
    flush_output(job, index);
    return true;
}

/* What was written to the other streams before, is sent before what is written to the control channel. */
static bool others_are_sent(struct job *job) {
    for (int i = 0; i < 2; i++) {
        int waiting = 0;
        if (job->outputs[i].fd >= 0)
            ioctl(job->outputs[i].fd, FIONREAD, &waiting);
        for (uint64_t before = (uint64_t)job->sent; waiting > 0 && pump_output(job, i);) {
            waiting -= (int)((uint64_t)job->sent - before);
            before = (uint64_t)job->sent;
        }
        if (waiting > 0 || job->outputs[i].size)
            return false;
    }
    return true;
}

/* Of the control channel only what was there before the others were looked at: what came since may follow output. */
static void output_ready(void *who, int index, short events) {
    struct job *job = who;
    struct output *o = &job->outputs[index];
    int there = 0;
    (void)events;
    if (index != 2) {
        pump_output(job, index);
    } else if (ioctl(o->fd, FIONREAD, &there) == 0 && others_are_sent(job) && may_send()) {
        uint32_t most = o->size + (uint32_t)there;
        if (there == 0)
            pump_output(job, index); /* its end */
        else if (read_output(job, o, most < HELD ? most : HELD))
            flush_output(job, index);
    }
}

static void input_ready(void *who, int index, short events) {
    (void)events;
    pump_input(&((struct job *)who)->inputs[index]);
}

void job_credit(int64_t id, int64_t stream, int64_t count) {
    struct job *job = find_job(id);
    if (job == NULL || count <= 0 || count > WINDOW || (stream != 1 && stream != 2 && stream != CONTROL_OUT))
        return;
    struct output *o = &job->outputs[stream == CONTROL_OUT ? 2 : stream - 1];
    o->credit = o->credit + count < WINDOW ? o->credit + count : WINDOW;
    flush_output(job, stream == CONTROL_OUT ? 2 : (int)stream - 1);
}

/* Signals and the like. */

void job_signal(int64_t id, int64_t number, bool all) {
    struct job *job = find_job(id);
    if (job == NULL || number < 0 || number >= NSIG)
        return;
    if (all) {
        job->killing = true;
        next_look = 0;
    } else if (job->pid == 0) {
        job->signal = (int)number;
    } else if (!job->has_ended) {
        kill(-job->pid, (int)number);
    }
}

static unsigned short clamp(int64_t number) {
    return (unsigned short)(number < 0 ? 0 : number > 65535 ? 65535 : number);
}

void job_resize(int64_t id, int64_t rows, int64_t columns) {
    struct job *job = find_job(id);
    struct winsize size = {.ws_row = clamp(rows), .ws_col = clamp(columns)};
    if (job != NULL && job->terminal && job->outputs[0].fd >= 0)
        ioctl(job->outputs[0].fd, TIOCSWINSZ, &size);
}

void job_renew(int64_t id, struct reader *r) {
    struct job *job = find_job(id);
    struct limits limits = agent.limits;
    struct reader again = *r;
    uint32_t count;
    read_map(&again, &count);
    if (!read_limits(r, &limits, false) || job == NULL)
        return;
    if (count)
        job->limits = limits;
    job->sent = 0;
    job->cpu_before = job->cpu;
    job->deadline = INFINITY; /* its owner limits the time of a run */
}

/* Starting. */

struct start {
    struct reader argv, env;
    const char *cwd;
    double open_files;
    bool terminal;
    int theirs[STREAMS]; /* the descriptors it will have; -1: none */
    int report;
};

static void report(int fd, struct report what) {
    while (write(fd, &what, sizeof what) < 0 && errno == EINTR)
        ;
}

static char *text_of(struct reader *r) {
    const uint8_t *data;
    uint32_t length;
    read_bytes(r, &data, &length);
    char *text = allocate((size_t)length + 1);
    memcpy(text, data, length);
    text[length] = 0;
    return text;
}

static char **words_of(struct reader r) {
    uint32_t count;
    read_array(&r, &count);
    char **words = allocate(((size_t)count + 2) * sizeof *words);
    for (uint32_t i = 0; i < count; i++)
        words[i] = text_of(&r);
    words[count] = NULL;
    return r.bad || !count ? NULL : words;
}

static void set_all(struct reader r) {
    uint32_t count;
    read_map(&r, &count);
    for (uint32_t i = 0; i < count && !r.bad; i++) {
        char *name = text_of(&r), *value = text_of(&r);
        setenv(name, value, 1);
    }
}

/* That of Boot, then its own; the owner's commands are found first. */
static void set_environment(const struct start *s) {
    clearenv();
    set_all(agent.env);
    set_all(s->env);
    if (agent.has_tools) {
        const char *path = getenv("PATH") == NULL ? "" : getenv("PATH");
        size_t room = strlen(path) + sizeof agent.directory + 8;
        char *longer = allocate(room);
        snprintf(longer, room, "%s/bin:%s", agent.directory, path);
        setenv("PATH", longer, 1);
    }
}

extern char **environ;

/* As execvp, with the errors of a shell: gives the errno that tells most. */
static int execute(char **argv) {
    const char *path = getenv("PATH") == NULL ? "/bin" : getenv("PATH");
    char found[PATH_MAX];
    int error = ENOENT;
    for (bool more = true; more;) {
        if (strchr(argv[0], '/') != NULL) {
            more = false;
            if ((size_t)snprintf(found, sizeof found, "%s", argv[0]) >= sizeof found)
                return ENAMETOOLONG;
        } else {
            size_t length = strcspn(path, ":");
            more = path[length] != 0;
            int size = snprintf(found, sizeof found, "%.*s%s%s", (int)length, path, length ? "/" : "", argv[0]);
            path += length + more;
            if ((size_t)size >= sizeof found)
                continue;
        }
        execve(found, argv, environ);
        if (errno == ENOEXEC) { /* a script without a first line */
            size_t count = 0;
            while (argv[count] != NULL)
                count++;
            memmove(argv + 2, argv + 1, count * sizeof *argv);
            argv[0] = "sh";
            argv[1] = found;
            execve("/bin/sh", argv, environ);
        }
        if ((errno != ENOENT && errno != ENOTDIR) || strchr(argv[0], '/') != NULL)
            error = errno;
    }
    return error;
}

static void run_program(const struct start *s) {
    int high[STREAMS], output = s->report;
    setsid();
    for (int i = 0; i < STREAMS; i++)
        high[i] = s->theirs[i] < 0 ? -1 : fcntl(s->theirs[i], F_DUPFD_CLOEXEC, HIGH);
    output = fcntl(s->report, F_DUPFD_CLOEXEC, HIGH);
    for (int i = 0; i < STREAMS; i++)
        if (high[i] >= 0)
            dup2(high[i], i);
    leave_parent((int[]){3, 4, output}, 3);
    for (int i = CONTROL_IN; i <= CONTROL_OUT; i++)
        if (high[i] < 0 && i != output)
            close(i);
    if (s->terminal)
        ioctl(0, TIOCSCTTY, 0);
    char **argv = words_of(s->argv);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    if (s->open_files < (double)files.rlim_max)
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)s->open_files, (rlim_t)s->open_files});
    set_environment(s);
    errno = EINVAL;
    if (argv == NULL || s->cwd == NULL || enter_guest(agent.guest) != 0 || chdir(s->cwd) != 0) {
        report(output, (struct report){.kind = FAILED, .value = errno});
        _exit(1);
    }
    report(output, (struct report){.kind = BEGUN, .value = getpid()});
    char *name = argv[0];
    int error = execute(argv);
    bool missing = error == ENOENT && strchr(name, '/') == NULL;
    dprintf(2, "belljar: %s: %s\n", name, missing ? "command not found" : strerror(error));
    _exit(error == ENOENT || error == ENOTDIR ? 127 : 126);
}

/* The keeper's life. */
static void keep(struct start *s) {
    int kept[STREAMS + 1];
    memcpy(kept, s->theirs, sizeof s->theirs);
    kept[STREAMS] = s->report;
    leave_parent(kept, STREAMS + 1);
    prctl(PR_SET_NAME, "belljar-exec");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pid_t pid = vfork(); /* it has this memory until it is executed, and this process waits */
    if (pid == 0)
        run_program(s);
    if (pid < 0)
        report(s->report, (struct report){.kind = FAILED, .value = errno});
    leave_parent(&s->report, 1);
    for (;;) {
        int status;
        pid_t ended = waitpid(-1, &status, 0);
        if (ended < 0 && errno == ECHILD)
            _exit(0);
        if (ended != pid)
            continue;
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        struct rusage used;
        getrusage(RUSAGE_CHILDREN, &used);
        int64_t seconds = used.ru_utime.tv_sec + used.ru_stime.tv_sec;
        report(s->report, (struct report){.kind = ENDED,
                                          .value = status,
                                          .left = ended == 0,
                                          .cpu = seconds * 1000000 + used.ru_utime.tv_usec + used.ru_stime.tv_usec});
    }
}

static int connect_pipe(int *reader, int *writer) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    *reader = ends[0];
    *writer = ends[1];
    /* So that the program can open it again by name (/dev/stdout). */
    return fchown(ends[0], agent.guest->uid, agent.guest->gid) == 0 || errno == EPERM ? 0 : -1;
}

static int open_terminal(struct job *job, struct start *s, const struct winsize *size) {
    int unlocked = 0, master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    job->outputs[0].fd = master;
    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) != 0)
        return -1;
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    s->theirs[0] = slave;
    if (slave < 0 || ioctl(master, TIOCSWINSZ, size) != 0)
        return -1;
    if (fchown(slave, agent.guest->uid, (gid_t)-1) != 0 && errno != EPERM)
        return -1;
    s->theirs[1] = fcntl(slave, F_DUPFD_CLOEXEC, 0);
    s->theirs[2] = fcntl(slave, F_DUPFD_CLOEXEC, 0);
    job->inputs[0].fd = fcntl(master, F_DUPFD_CLOEXEC, 0);
    return s->theirs[1] < 0 || s->theirs[2] < 0 || job->inputs[0].fd < 0 ? -1 : 0;
}

/* The end of a pipe that does not wait, which the program's own must. */
static int open_again(int fd) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static int open_streams(struct job *job, struct start *s, bool has_stdin, bool follows, bool returns) {
    int pair[2];
    if (has_stdin) {
        if (connect_pipe(&s->theirs[0], &job->inputs[0].fd) != 0)
            return -1;
        if (returns && (job->inputs[0].rest = open_again(s->theirs[0])) < 0)
            return -1;
    } else if (follows) { /* a socket, by which nobody can tell whether there will be any */
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
            return -1;
        s->theirs[0] = pair[0];
        job->inputs[0].fd = pair[1];
        shutdown(pair[1], SHUT_RD);
    } else if ((s->theirs[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) {
        return -1;
    }
    if (connect_pipe(&job->outputs[0].fd, &s->theirs[1]) != 0)
        return -1;
    if (!job->merged)
        return connect_pipe(&job->outputs[1].fd, &s->theirs[2]);
    s->theirs[2] = fcntl(s->theirs[1], F_DUPFD_CLOEXEC, 0);
    return s->theirs[2] < 0 ? -1 : 0;
}

static void free_job(struct job *job) {
    close_fd(&job->report);
    for (int i = 0; i < INPUTS; i++)
        close_input(&job->inputs[i]);
    for (int i = 0; i < OUTPUTS; i++) {
        close_fd(&job->outputs[i].fd);
        free(job->outputs[i].held);
    }
    free(job->cwd);
    free(job);
}

static int launch(struct job *job, struct start *s) {
    int nonblocking[] = {job->report, job->inputs[0].fd, job->inputs[1].fd, job->outputs[0].fd, job->outputs[1].fd,
                         job->outputs[2].fd};
    for (size_t i = 0; i < sizeof nonblocking / sizeof *nonblocking; i++)
        if (nonblocking[i] >= 0)
            fcntl(nonblocking[i], F_SETFL, O_NONBLOCK);
    job->keeper = fork();
    if (job->keeper == 0)
        keep(s);
    return job->keeper < 0 ? -1 : 0;
}

int start_job(struct reader *r, uint32_t fields) {
    struct job *job = allocate(sizeof *job);
    struct start s = {.theirs = {-1, -1, -1, -1, -1}, .report = -1};
    const uint8_t *input = NULL, *cwd = agent.cwd;
    uint32_t input_length = 0, cwd_length = agent.cwd_length, pair;
    int64_t rows = 0, columns = 0, forks = 0;
    bool follows = false, returns = false;
    *job = (struct job){.report = -1, .limits = agent.limits, .began = now()};
    for (int i = 0; i < INPUTS; i++)
        job->inputs[i].fd = job->inputs[i].rest = -1;
    for (int i = 0; i < OUTPUTS; i++)
        job->outputs[i] = (struct output){.fd = -1, .credit = WINDOW};
    read_int(r, &job->id);
    s.argv = *r;
    skip(r);
    s.env = *r;
    skip(r);
    if (!read_nil(r))
        read_bytes(r, &cwd, &cwd_length);
    if (!read_nil(r))
        read_bytes(r, &input, &input_length);
    read_bool(r, &job->merged);
    read_bool(r, &job->live);
    read_limits(r, &job->limits, false);
    if (fields > 9 && !read_nil(r)) {
        job->terminal = job->merged = true;
        read_array(r, &pair);
        read_int(r, &rows);
        read_int(r, &columns);
        r->bad = r->bad || pair != 2;
    }
    if (fields > 10)
        read_bool(r, &job->control);
    if (fields > 11)
        read_int(r, &forks);
    if (fields > 12)
        read_bool(r, &follows);
    if (fields > 13)
        read_bool(r, &returns);
    if (r->bad || find_job(job->id) != NULL) {
        free(job);
        return -1;
    }
    job->deadline = job->began + job->limits.wall_seconds;
    s.cwd = job->cwd = absolute_path(cwd, cwd_length);
    s.open_files = job->limits.open_files;
    s.terminal = job->terminal;
    struct winsize size = {.ws_row = clamp(rows), .ws_col = clamp(columns)};
    errno = ENOSYS; /* a copy of an interpreter */
    if (forks || connect_pipe(&job->report, &s.report) != 0 ||
        (job->terminal ? open_terminal(job, &s, &size) : open_streams(job, &s, input != NULL, follows, returns)) != 0 ||
        (job->control && (connect_pipe(&s.theirs[CONTROL_IN], &job->inputs[1].fd) != 0 ||
                          connect_pipe(&job->outputs[2].fd, &s.theirs[CONTROL_OUT]) != 0)) ||
        launch(job, &s) != 0) {
        int error = errno;
        send_failure(job->id, error, strerror(error), NULL);
        free_job(job);
        job = NULL;
    }
    close_fd(&s.report);
    for (int i = 0; i < STREAMS; i++)
        close_fd(&s.theirs[i]);
    if (job == NULL)
        return 0;
    if (jobs == NULL)
        next_sample = job->began + SAMPLE;
    job->next = jobs;
    jobs = job;
    job->inputs[0].ending = input != NULL && !follows;
    if (input_length)
        queue_input(&job->inputs[0], input, input_length, 0);
    else
        pump_input(&job->inputs[0]);
    return 0;
}

/* Ending. */

static void discard(int *fd) {
    if (*fd >= 0 && discarded_count < DISCARDED_MAX)
        discarded[discarded_count++] = *fd;
    else if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Whether something runs besides the agent, what has ended, and what the owner started and waits for. */
static bool others_run(void) {
    for (struct job *job = jobs; job != NULL; job = job->next)
        if (job->has_ended && job->report >= 0 && job->leaves)
            return true;
    return false;
}

/* What was given to an input and nobody read. */
static uint8_t *take_rest(struct input *input, size_t *length) {
    int piped = 0;
    size_t room = 0;
    *length = 0;
    if (input->rest < 0)
        return NULL;
    ioctl(input->rest, FIONREAD, &piped);
    room = piped > 0 ? (size_t)piped : 0;
    for (struct piece *piece = input->first; piece != NULL; piece = piece->next)
        room += piece->length - piece->done;
    uint8_t *data = allocate(room);
    while (piped > 0) {
        ssize_t count = read(input->rest, data + *length, (size_t)piped);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        *length += (size_t)count;
        piped -= (int)count;
    }
    for (struct piece *piece = input->first; piece != NULL; piece = piece->next) {
        memcpy(data + *length, piece->data + piece->done, piece->length - piece->done);
        *length += piece->length - piece->done;
    }
    return data;
}

static void finish(struct job *job) {
    size_t total = 0, rest_length;
    uint8_t *rest = take_rest(&job->inputs[0], &rest_length);
    for (int i = 0; i < INPUTS; i++)
        close_input(&job->inputs[i]);
    for (int i = 0; i < 2; i++) {
        struct output *o = &job->outputs[i];
        int waiting = 0;
        if (o->fd >= 0)
            ioctl(o->fd, FIONREAD, &waiting);
        if (waiting > 0) {
            uint32_t room = o->size + (uint32_t)(waiting < REST_MAX ? waiting : REST_MAX);
            o->held = realloc(o->held, room);
            if (o->held == NULL)
                _exit(1);
            while (read_output(job, o, room))
                ;
        }
        total += o->size;
    }
    int code = WIFEXITED(job->status) ? WEXITSTATUS(job->status) : 0;
    int signal = WIFSIGNALED(job->status) ? WTERMSIG(job->status) : 0;
    if (job->limit != NULL) {
        code = 0;
        signal = SIGKILL;
    }
    struct writer w = open_frame(total + rest_length + 128);
    put_array(&w, 12);
    put_str(&w, "exited");
    put_int(&w, job->id);
    put_int(&w, code);
    put_int(&w, signal);
    if (job->limit == NULL)
        put_nil(&w);
    else
        put_str(&w, job->limit);
    for (int i = 0; i < 2; i++)
        put_bytes(&w, job->outputs[i].held, job->outputs[i].size);
    put_bool(&w, job->truncated);
    job->told = true;
    put_bool(&w, others_run());
    put_bytes(&w, rest, rest_length);
    put_int(&w, job->used);
    put_double(&w, job->control ? 0 : job->allowed);
    close_frame(&w);
    free(rest);
    for (int i = 0; i < OUTPUTS; i++) {
        if (job->terminal)
            close_fd(&job->outputs[i].fd);
        discard(&job->outputs[i].fd);
        free(job->outputs[i].held);
        job->outputs[i].held = NULL;
        job->outputs[i].size = 0;
    }
}

static bool has_number(struct reader numbers, int64_t wanted) {
    uint32_t count = 0;
    int64_t number;
    read_array(&numbers, &count);
    for (uint32_t i = 0; i < count && read_int(&numbers, &number); i++)
        if (number == wanted)
            return true;
    return false;
}

void forget_jobs(struct reader kept) {
    for (struct job *job = jobs; job != NULL; job = job->next) {
        bool stays = has_number(kept, job->id);
        for (int i = 0; i < INPUTS; i++)
            for (struct piece *piece = job->inputs[i].first; piece != NULL; piece = piece->next)
                piece->call = 0;
        job->told = job->told || !stays;
        for (int i = 0; i < OUTPUTS; i++) {
            struct output *o = &job->outputs[i];
            o->credit = WINDOW;
            if (stays)
                continue;
            discard(&o->fd);
            o->size = 0;
        }
    }
}

static void end_job(struct job *job, int status, bool left) {
    job->has_ended = true;
    job->status = status;
    job->leaves = left;
    job->ended = now();
    job->cpu_ended = -1;
    job->quiet = 0;
}

static void report_ready(void *who, int which, short events) {
    struct job *job = who;
    struct report news;
    (void)which, (void)events;
    for (;;) {
        ssize_t count = read(job->report, &news, sizeof news);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return;
        if (count == 0) {
            close_fd(&job->report);
            if (!job->has_ended)
                end_job(job, SIGKILL, false); /* somebody killed the keeper: its descendants are ours, and end */
            return;
        }
        if (count != sizeof news || job->told)
            continue;
        if (news.kind == FAILED && job->pid == 0) {
            send_failure(job->id, news.value, strerror(news.value), job->cwd);
            job->told = job->has_ended = true;
        } else if (news.kind == BEGUN && job->pid == 0) {
            job->pid = news.value;
            if (job->signal)
                kill(-job->pid, job->signal);
            if (!job->live)
                continue;
            struct writer w = open_frame(64);
            put_array(&w, 3);
            put_str(&w, "started");
            put_int(&w, job->id);
            put_int(&w, job->pid);
            close_frame(&w);
        } else if (news.kind == ENDED) {
            job->used = news.cpu;
            end_job(job, news.value, news.left);
        }
    }
}

/* Look at all processes: whose each is, what a job uses, and end what is to end. */
static void look(void) {
    struct process *found;
    size_t count = scan_processes(&found);
    pid_t self = getpid();
    for (struct job *job = jobs; job != NULL; job = job->next) {
        struct process *keeper = find_process(job->keeper);
        job->processes = job->moving = 0;
        job->busy = false;
        job->cpu = 0;
        if (keeper == NULL || job->report < 0 || keeper->parent != self)
            continue;
        keeper->owner = job;
        job->cpu = (double)keeper->child_ticks;
        if (job->killing)
            kill(job->keeper, SIGCONT);
    }
    for (size_t i = 0; i < count; i++) {
        struct process *each = &found[i], *top = each;
        int depth = 0;
        while (top != NULL && top->owner == NULL && top->parent > 0 && top->parent != self && depth++ < 4096)
            top = find_process(top->parent);
        if (top == NULL)
            continue;
        if (top->owner == NULL && top->parent == self && top->pid != self && !is_helper(top->pid) &&
            !is_relay(top->pid)) {
            kill(each->pid, SIGKILL); /* its keeper was killed */
            continue;
        }
        struct job *job = top->owner;
        if (job == NULL || each->pid == job->keeper)
            continue;
        each->owner = job;
        job->cpu += (double)each->ticks;
        if (each->state == 'Z' || each->state == 'X')
            continue;
        job->processes++;
        job->busy = job->busy || each->state == 'R' || each->state == 'D';
        job->moving += each->state != 'T' && each->state != 't';
        if (job->killing)
            kill(each->pid, SIGSTOP);
    }
    for (struct job *job = jobs; job != NULL; job = job->next)
        job->strikes = job->killing && (job->processes <= MANY || !job->moving || job->stops++ >= STOP_LOOKS);
    for (size_t i = 0; i < count; i++) {
        struct job *job = found[i].owner;
        if (job != NULL && job->strikes && found[i].pid != job->keeper)
            kill(found[i].pid, SIGKILL);
    }
    double tick = (double)sysconf(_SC_CLK_TCK);
    for (struct job *job = jobs; job != NULL; job = job->next) {
        job->cpu /= tick;
        if (job->killing || job->report < 0)
            continue;
        if (job->cpu - job->cpu_before > job->limits.cpu_seconds)
            stop_job(job, "cpu_seconds", job->limits.cpu_seconds);
        else if (job->processes > job->limits.processes)
            stop_job(job, "processes", job->limits.processes);
    }
}

uint32_t count_processes(void) {
    uint32_t count = 0;
    look();
    for (struct job *job = jobs; job != NULL; job = job->next)
        count += job->processes;
    return count;
}

void kill_everything(void) {
    for (struct job *job = jobs; job != NULL; job = job->next)
        job->killing = true;
    for (int round = 0; round < 200 && jobs != NULL; round++) {
        look();
        for (struct job **at = &jobs; *at != NULL;) {
            struct job *job = *at;
            if (job->keeper > 0 && waitpid(job->keeper, NULL, WNOHANG) == 0) {
                at = &job->next;
                continue;
            }
            *at = job->next;
        }
        usleep(5000);
    }
}

static void discard_ready(void *who, int which, short events) {
    static uint8_t nothing[HELD];
    (void)who, (void)events;
    discard_after = now() + DISCARD_PAUSE;
    ssize_t count = read(discarded[which], nothing, sizeof nothing);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) /* a terminal ends with EIO */
        close_fd(&discarded[which]);
}

void jobs_wait(void) {
    double time = now();
    bool runs = false;
    for (struct job *job = jobs; job != NULL; job = job->next) {
        if (job->report >= 0) {
            wait_for(job->report, POLLIN, report_ready, job, 0);
            if (!job->killing)
                wake_at(job->deadline);
            runs = runs || !job->told;
        }
        for (int i = 0; i < INPUTS; i++)
            if (job->inputs[i].fd >= 0 && job->inputs[i].first != NULL)
                wait_for(job->inputs[i].fd, POLLOUT, input_ready, job, i);
        bool behind = job->outputs[0].size || job->outputs[1].size;
        for (int i = 0; i < OUTPUTS && may_send(); i++)
            if (job->outputs[i].fd >= 0 && job->outputs[i].size < HELD && !(i == 2 && behind && job->live))
                wait_for(job->outputs[i].fd, POLLIN, output_ready, job, i);
        if (job->has_ended && !job->told && may_send())
            wake_at(time + LOOK);
        if (job->killing && job->report >= 0)
            wake_at(next_look);
    }
    if (jobs != NULL) {
        if (next_sample > time + SAMPLE && runs)
            next_sample = time + SAMPLE;
        wake_at(next_sample);
    }
    int kept = 0;
    for (int i = 0; i < discarded_count; i++)
        if (discarded[i] >= 0)
            discarded[kept++] = discarded[i];
    discarded_count = kept;
    if (discarded_count && time < discard_after)
        wake_at(discard_after);
    else
        for (int i = 0; i < discarded_count; i++)
            wait_for(discarded[i], POLLIN, discard_ready, NULL, i);
}

/* Whether an ended job has no more to say. */
static bool is_drained(struct job *job, double time) {
    bool open = false;
    for (int i = 0; i < OUTPUTS; i++) {
        struct output *o = &job->outputs[i];
        for (int turn = 0; o->fd >= 0 && turn < 16 && pump_output(job, i); turn++)
            ;
        flush_output(job, i);
        open = open || (o->fd >= 0 && o->credit > 0);
    }
    if (!open || time - job->ended > LINGER_MAX)
        return true;
    if (time < next_look)
        return false;
    look();
    next_look = time + LOOK;
    if (job->cpu_ended < 0)
        job->cpu_ended = job->cpu;
    job->quiet = job->busy ? 0 : job->quiet + 1;
    return job->quiet > 2 || job->cpu - job->cpu_ended > LINGER;
}

void jobs_advance(void) {
    double time = now();
    bool kills = false, runs = false;
    for (struct job **at = &jobs; *at != NULL;) {
        struct job *job = *at;
        if (job->report >= 0 && time > job->deadline && !job->killing)
            stop_job(job, "wall_seconds", job->limits.wall_seconds);
        if (job->has_ended && !job->told && may_send() && is_drained(job, time))
            finish(job);
        if (job->told && job->report < 0) {
            *at = job->next;
            free_job(job);
            continue;
        }
        kills = kills || (job->killing && job->report >= 0);
        runs = runs || !job->told;
        at = &job->next;
    }
    if (kills && time >= next_look) {
        look();
        next_look = time + KILL_PAUSE;
    }
    if (jobs != NULL && time >= next_sample) {
        look();
        next_sample = now() + (runs ? SAMPLE : SAMPLE_LEFT);
    }
}
