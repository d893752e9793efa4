/* The owner's commands: links to this program which, run by such a name, asks the agent over a socket; it asks the owner.
 *
 * A caller sends one frame, [name, [argument...]], and gets one, [stdout, stderr, exit code, errno]. */
#include <sys/un.h>

#include "agent.h"

#define TOOLS_MAX 1024
#define CALLERS_MAX 1024
#define CALL_MAX (16u << 20)
#define INPUT_MAX (CALL_MAX - 4096)
#define WORDS_MAX 100000
#define HELD_MAX (64u << 20) /* of all calls that are being made */
#define READ_SIZE (64 << 10)

struct caller {
    struct caller *next;
    int fd;
    int64_t ask; /* its number at the owner; 0: it has not asked yet */
    struct buffer in, out;
    bool done;
};

static char *tools[TOOLS_MAX];
static int tool_count, listener = -1, caller_count;
static struct caller *callers;
static int64_t last_ask;
static size_t held;

static int copy_program(const char *to) {
    uint8_t data[READ_SIZE];
    unlink(to);
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    if (fd < 0 || lseek(agent.program, 0, SEEK_SET) != 0)
        return -1;
    ssize_t count;
    while ((count = read(agent.program, data, sizeof data)) > 0)
        if (write_all(fd, data, (size_t)count) != 0)
            count = -1;
    close(fd);
    return count < 0 ? -1 : 0;
}

/* The directory, the program in it, and the socket: made for the first command. */
static int open_directory(void) {
    char path[sizeof agent.directory + 16];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(path, sizeof path, "%s/bin", agent.directory);
    if ((mkdir(agent.directory, 0755) != 0 && errno != EEXIST) || (mkdir(path, 0755) != 0 && errno != EEXIST))
        return -1;
    snprintf(path, sizeof path, "%s/agent", agent.directory);
    if (copy_program(path) != 0)
        return -1;
    if ((size_t)snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", agent.directory) >=
        sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    unlink(address.sun_path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        chmod(address.sun_path, 0666) != 0 || listen(listener, 128) != 0)
        return -1;
    return 0;
}

void add_tool(int64_t id, struct reader *arguments) {
    const uint8_t *name;
    uint32_t length;
    char path[sizeof agent.directory + 300];
    if (!read_bytes(arguments, &name, &length))
        return;
    if (length == 0 || length > 255 || memchr(name, '/', length) || memchr(name, 0, length) || name[0] == '.' ||
        tool_count == TOOLS_MAX) {
        send_failure(id, EINVAL, strerror(EINVAL), NULL);
        return;
    }
    snprintf(path, sizeof path, "%s/bin/%.*s", agent.directory, (int)length, (const char *)name);
    if ((listener < 0 && open_directory() != 0) || (symlink("../agent", path) != 0 && errno != EEXIST)) {
        send_failure(id, errno, strerror(errno), path);
        return;
    }
    tools[tool_count++] = strndup((const char *)name, length);
    agent.has_tools = true;
    send_nil(id);
}

static bool is_tool(const uint8_t *name, uint32_t length) {
    for (int i = 0; i < tool_count; i++)
        if (is_text(name, length, tools[i]))
            return true;
    return false;
}

static void answer_caller(struct caller *caller, const void *out, size_t out_length, const void *error_text,
                          size_t error_length, int64_t code, int error) {
    size_t most = out_length + error_length + 64;
    reserve(&caller->out, HEADER + most);
    struct writer w = writer_of(caller->out.data + HEADER, most);
    put_array(&w, 4);
    put_bytes(&w, out, out_length);
    put_bytes(&w, error_text, error_length);
    put_int(&w, code);
    put_int(&w, error);
    set_frame_length(caller->out.data, written(&w));
    caller->out.end = HEADER + written(&w);
    caller->ask = 0;
    held += caller->out.end;
}

static void ask_owner(struct caller *caller, const uint8_t *body, size_t length) {
    struct reader r = reader_of(body, length);
    const uint8_t *name, *word;
    uint32_t name_length, count, fields, size;
    read_array(&r, &fields);
    read_bytes(&r, &name, &name_length);
    read_array(&r, &count);
    struct reader words = r;
    for (uint32_t i = 0; i < count && !r.bad; i++)
        read_bytes(&r, &word, &size);
    if (r.bad || fields != 2 || !is_tool(name, name_length)) {
        answer_caller(caller, "", 0, "", 0, 1, ENOENT);
        return;
    }
    if (count > WORDS_MAX) {
        answer_caller(caller, "", 0, "", 0, 1, E2BIG);
        return;
    }
    caller->ask = ++last_ask;
    struct writer w = open_frame(length + 5 * (size_t)count + 64);
    put_array(&w, 5);
    put_str(&w, "ask");
    put_int(&w, caller->ask);
    put_bytes(&w, name, name_length);
    put_str(&w, "tool");
    put_array(&w, 1);
    put_array(&w, count);
    for (uint32_t i = 0; i < count; i++) {
        read_bytes(&words, &word, &size);
        put_bytes(&w, word, size);
    }
    close_frame(&w);
}

void take_answer(struct reader *r, uint32_t fields) {
    int64_t id, error = 0, code = 0;
    const uint8_t *out, *said;
    uint32_t out_length = 0, said_length = 0, count = 0;
    read_int(r, &id);
    struct reader value = *r;
    skip(r);
    if (fields > 3)
        read_int(r, &error);
    struct caller *caller = callers;
    while (caller != NULL && (caller->ask != id || caller->done))
        caller = caller->next;
    if (r->bad || caller == NULL || id == 0)
        return; /* its caller is gone */
    if (!error) {
        read_array(&value, &count);
        read_bytes(&value, &out, &out_length);
        read_bytes(&value, &said, &said_length);
        read_int(&value, &code);
    }
    if (error || value.bad || count != 3)
        answer_caller(caller, "", 0, "", 0, 1, error ? (int)error : EIO);
    else
        answer_caller(caller, out, out_length, said, said_length, code, 0);
}

static void hang_up(struct caller *caller) {
    close(caller->fd);
    held -= caller->in.end - caller->in.start + caller->out.end;
    release(&caller->in);
    release(&caller->out);
    caller->done = true;
    caller_count--;
}

void forget_callers(void) {
    for (struct caller *caller = callers; caller != NULL; caller = caller->next)
        if (caller->ask && !caller->done)
            hang_up(caller);
}

static void caller_ready(void *who, int which, short events) {
    struct caller *caller = who;
    (void)which;
    if (caller->out.end) {
        ssize_t count = send(caller->fd, caller->out.data + caller->out.start, caller->out.end - caller->out.start,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count > 0)
            caller->out.start += (size_t)count;
        if (caller->out.start == caller->out.end || (count < 0 && errno != EAGAIN && errno != EINTR))
            hang_up(caller);
        return;
    }
    if (caller->ask) {
        if (events & (POLLHUP | POLLERR))
            hang_up(caller); /* its answer will come to nobody */
        return;
    }
    reserve(&caller->in, READ_SIZE);
    ssize_t count = recv(caller->fd, caller->in.data + caller->in.end, READ_SIZE, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0) {
        hang_up(caller);
        return;
    }
    caller->in.end += (size_t)count;
    held += (size_t)count;
    const uint8_t *at = caller->in.data + caller->in.start;
    size_t have = caller->in.end - caller->in.start, length = 0;
    if (have >= HEADER)
        length = frame_length(at);
    if (length > CALL_MAX || held > HELD_MAX) {
        hang_up(caller);
        return;
    }
    if (have < HEADER || have < HEADER + length)
        return;
    ask_owner(caller, at + HEADER, length);
    held -= have;
    release(&caller->in);
}

static void listener_ready(void *who, int which, short events) {
    (void)who, (void)which, (void)events;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct caller *caller = allocate(sizeof *caller);
    *caller = (struct caller){.next = callers, .fd = fd};
    callers = caller;
    caller_count++;
}

void tools_wait(void) {
    if (listener >= 0 && caller_count < CALLERS_MAX)
        wait_for(listener, POLLIN, listener_ready, NULL, 0);
    for (struct caller **at = &callers; *at != NULL;) {
        struct caller *caller = *at;
        if (caller->done) {
            *at = caller->next;
            free(caller);
            continue;
        }
        short events = caller->out.end ? POLLOUT : caller->ask || !may_send() ? 0 : POLLIN;
        wait_for(caller->fd, events, caller_ready, caller, 0);
        at = &caller->next;
    }
}

/* The other side: this program under a command's name. */

/* NULL if there is more than a call may hold. */
static uint8_t *read_input(size_t *length) {
    uint8_t *data = allocate(CALL_MAX);
    for (*length = 0; *length < INPUT_MAX + 1;) {
        ssize_t count = read(0, data + *length, INPUT_MAX + 1 - *length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return data;
        *length += (size_t)count;
    }
    return NULL;
}

static int give_up(const char *name, int error) {
    fprintf(stderr, "%s: %s\n", name, strerror(error));
    return 1;
}

int tool_main(int argc, char **argv) {
    const char *name = strrchr(argv[0], '/') == NULL ? argv[0] : strrchr(argv[0], '/') + 1;
    char place[sizeof agent.directory];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    ssize_t length = readlink("/proc/self/exe", place, sizeof place - 1);
    if (length <= 0)
        return give_up(name, errno);
    place[length] = 0;
    *strrchr(place, '/') = 0;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", place);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return give_up(name, errno);
    size_t total = strlen(name) + 64, input_length = 0;
    bool piped = argc == 2 && strcmp(argv[1], "-") == 0;
    uint8_t *input = piped ? read_input(&input_length) : NULL;
    if (piped && input == NULL)
        return give_up(name, EFBIG);
    for (int i = 1; i < argc; i++)
        total += strlen(argv[i]) + 5;
    uint8_t *buffer = allocate(total + input_length);
    struct writer w = writer_of(buffer, total + input_length);
    put_array(&w, 2);
    put_bytes(&w, name, strlen(name));
    put_array(&w, (uint32_t)(argc - 1));
    for (int i = 1; i < argc; i++)
        if (input != NULL)
            put_bytes(&w, input, input_length);
        else
            put_bytes(&w, argv[i], strlen(argv[i]));
    if (send_frame(fd, buffer, written(&w)) != 0)
        return give_up(name, errno);
    uint8_t *answer = allocate(FRAME_MAX);
    ssize_t size = receive_frame(fd, answer, FRAME_MAX);
    if (size <= 0)
        return give_up(name, EIO);
    struct reader r = reader_of(answer, (size_t)size);
    const uint8_t *out, *said;
    uint32_t count, out_length, said_length;
    int64_t code, error;
    read_array(&r, &count);
    read_bytes(&r, &out, &out_length);
    read_bytes(&r, &said, &said_length);
    read_int(&r, &code);
    read_int(&r, &error);
    if (r.bad || error)
        return give_up(name, r.bad ? EIO : (int)error);
    if (write_all(1, out, out_length) != 0)
        return give_up(name, errno);
    write_all(2, said, said_length);
    return (int)code;
}
