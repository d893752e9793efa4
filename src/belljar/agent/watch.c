/* One watch on files, in a child of its own: changes as in kernel/vfs/watch.py, from inotify.
 *
 * Directories are watched, not files. What appears in a new directory before that is watched is found by reading it, and
 * told as created. A file that is moved to where nobody watches is told as deleted, one that comes from there as created.
 */
#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "agent.h"

#define PENDING_MAX 10000
#define REPLY_BYTES (4u << 20)
#define PAIR_MILLISECONDS 2 /* to wait for the second half of a rename */
#define EVENTS \
    (IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_ONLYDIR)

struct change {
    const char *kind;
    char *path, *to; /* `to`: of a rename, else NULL */
    uint32_t hash;   /* of the path: most differ by it */
};

static struct change pending[PENDING_MAX + 1];
static size_t pending_count;
static int events_fd;
static char **directories; /* by watch descriptor */
static size_t directory_room;
static char *top, *only; /* `only`: the name in it that is watched, else NULL */
static bool deep;
static char *moved; /* the first half of a rename */
static uint32_t moved_cookie;
static bool moved_is_directory;

static char *joined(const char *directory, const char *name) {
    size_t length = strlen(directory);
    char *path = allocate(length + strlen(name) + 2);
    sprintf(path, "%s%s%s", directory, length && directory[length - 1] == '/' ? "" : "/", name);
    return path;
}

static bool same(const char *left, const char *right) {
    return left == right || (left != NULL && right != NULL && strcmp(left, right) == 0);
}

/* Each change is told once while it waits; told again, it moves to the end. Takes over the paths. */
static void add_change(const char *kind, char *path, char *to) {
    if (pending_count >= PENDING_MAX) {
        free(path);
        free(to);
        kind = "overflow";
        path = strdup(top);
        to = NULL;
    }
    uint32_t hash = 2166136261u;
    for (const char *at = path; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 16777619u;
    for (size_t i = pending_count; i-- > 0;)
        if (pending[i].hash == hash && same(pending[i].kind, kind) && same(pending[i].path, path) && same(pending[i].to, to)) {
            free(pending[i].path);
            free(pending[i].to);
            memmove(&pending[i], &pending[i + 1], (--pending_count - i) * sizeof *pending);
            break;
        }
    pending[pending_count++] = (struct change){kind, path, to, hash};
}

/* Whether nobody can change anything in it, or it is the kernel's. */
static bool never_changes(DIR *directory) {
    struct statfs found;
    return fstatfs(dirfd(directory), &found) == 0 &&
           (found.f_flags & ST_RDONLY || found.f_type == PROC_SUPER_MAGIC || found.f_type == SYSFS_MAGIC || found.f_type == CGROUP_SUPER_MAGIC ||
            found.f_type == CGROUP2_SUPER_MAGIC);
}

static int watch_directory(const char *path) {
    int number = inotify_add_watch(events_fd, path, EVENTS | (same(path, top) ? 0 : IN_DONT_FOLLOW));
    if (number < 0)
        return errno;
    if ((size_t)number >= directory_room) {
        size_t room = 2 * (size_t)number + 64;
        directories = realloc(directories, room * sizeof *directories);
        if (directories == NULL)
            _exit(1);
        memset(directories + directory_room, 0, (room - directory_room) * sizeof *directories);
        directory_room = room;
    }
    free(directories[number]);
    directories[number] = strdup(path);
    return 0;
}

/* Watch a directory and, where asked for, those below it. `tells`: what is in them is new. */
static int cover(const char *path, bool tells) {
    size_t count = 1, room = 16;
    char **waiting = allocate(room * sizeof *waiting);
    int result = 0;
    waiting[0] = strdup(path);
    while (count) {
        char *each = waiting[--count];
        int error = watch_directory(each);
        if (error && same(each, path))
            result = error;
        if (error == ENOSPC)
            add_change("overflow", strdup(top), NULL);
        DIR *directory = error || !deep ? NULL : opendir(each);
        if (directory != NULL && never_changes(directory)) {
            closedir(directory);
            directory = NULL;
        }
        struct dirent *entry;
        while (directory != NULL && (entry = readdir(directory)) != NULL) {
            struct stat found;
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            if (!tells && entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
                continue;
            if (fstatat(dirfd(directory), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0)
                continue;
            if (tells)
                add_change("created", joined(each, entry->d_name), NULL);
            if (tells && S_ISREG(found.st_mode) && found.st_size)
                add_change("modified", joined(each, entry->d_name), NULL);
            if (!S_ISDIR(found.st_mode))
                continue;
            if (count == room) {
                room *= 2;
                waiting = realloc(waiting, room * sizeof *waiting);
                if (waiting == NULL)
                    _exit(1);
            }
            waiting[count++] = joined(each, entry->d_name);
        }
        if (directory != NULL)
            closedir(directory);
        free(each);
    }
    free(waiting);
    return result;
}

/* A directory has another path, or (NULL) is where nobody watches. */
static void move_directories(const char *from, const char *to) {
    size_t length = strlen(from);
    for (size_t i = 0; i < directory_room; i++) {
        char *path = directories[i];
        if (path == NULL || strncmp(path, from, length) != 0 || (path[length] != '/' && path[length] != 0))
            continue;
        directories[i] = NULL;
        if (to != NULL) {
            directories[i] = allocate(strlen(to) + strlen(path + length) + 1);
            sprintf(directories[i], "%s%s", to, path + length);
        } else {
            inotify_rm_watch(events_fd, (int)i);
        }
        free(path);
    }
}

static void end_move(void) {
    if (moved == NULL)
        return;
    if (moved_is_directory)
        move_directories(moved, NULL);
    add_change("deleted", moved, NULL);
    moved = NULL;
}

static void take_event(const struct inotify_event *event) {
    if (event->mask & IN_Q_OVERFLOW)
        add_change("overflow", strdup(top), NULL);
    if (event->wd < 0 || (size_t)event->wd >= directory_room || directories[event->wd] == NULL)
        return;
    char *directory = directories[event->wd];
    bool pairs = moved != NULL && event->mask & IN_MOVED_TO && event->cookie == moved_cookie;
    if (!pairs)
        end_move();
    if (event->mask & IN_IGNORED) {
        free(directory);
        directories[event->wd] = NULL;
        return;
    }
    bool is_directory = event->mask & IN_ISDIR;
    if (event->len == 0) { /* of the directory itself: the one above it tells, unless there is none that is watched */
        if (same(directory, top) && only == NULL && event->mask & (IN_ATTRIB | IN_DELETE_SELF))
            add_change(event->mask & IN_ATTRIB ? "attributes" : "deleted", strdup(top), NULL);
        return;
    }
    if (only != NULL && strcmp(event->name, only) != 0 && !pairs)
        return;
    char *path = joined(directory, event->name);
    if (event->mask & IN_MOVED_FROM) {
        moved = path;
        moved_cookie = event->cookie;
        moved_is_directory = is_directory;
        return;
    }
    if (pairs) {
        if (moved_is_directory)
            move_directories(moved, path);
        add_change("renamed", moved, path);
        moved = NULL;
        return;
    }
    bool is_new = event->mask & (IN_CREATE | IN_MOVED_TO);
    add_change(is_new ? "created" : event->mask & IN_DELETE ? "deleted" : event->mask & IN_ATTRIB ? "attributes" : "modified",
               strdup(path), NULL);
    if (is_new && is_directory && deep)
        cover(path, true);
    free(path);
}

static void take_events(void) {
    static _Alignas(struct inotify_event) char data[64 << 10];
    struct pollfd more = {events_fd, POLLIN, 0};
    do {
        ssize_t length = read(events_fd, data, sizeof data);
        for (ssize_t at = 0; at < length;) {
            const struct inotify_event *event = (const void *)(data + at);
            take_event(event);
            at += (ssize_t)(sizeof *event + event->len);
        }
    } while (poll(&more, 1, moved != NULL ? PAIR_MILLISECONDS : 0) > 0);
    end_move();
}

static void send_changes(int64_t id, int channel) {
    size_t count = 0, total = 0;
    while (count < pending_count && total < REPLY_BYTES) {
        total += strlen(pending[count].path) + (pending[count].to == NULL ? 0 : strlen(pending[count].to)) + 40;
        count++;
    }
    struct writer w = open_reply(id, total + 16);
    put_array(&w, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        put_array(&w, 3);
        put_str(&w, pending[i].kind);
        put_bytes(&w, pending[i].path, strlen(pending[i].path));
        if (pending[i].to == NULL)
            put_nil(&w);
        else
            put_bytes(&w, pending[i].to, strlen(pending[i].to));
        free(pending[i].path);
        free(pending[i].to);
    }
    close_frame(&w);
    memmove(pending, pending + count, (pending_count -= count) * sizeof *pending);
    flush_answer(channel);
}

void watch_files(int64_t id, int64_t number, struct reader *arguments, int channel) {
    const uint8_t *data;
    uint32_t length;
    struct stat found;
    read_bytes(arguments, &data, &length);
    read_bool(arguments, &deep);
    char *path = arguments->bad ? NULL : absolute_path(data, length);
    if (path == NULL) {
        send_failure(id, 0, "bad arguments", NULL);
        return;
    }
    int error = stat(path, &found) != 0 ? errno : 0;
    if (!error && !S_ISDIR(found.st_mode)) {
        only = strdup(strrchr(path, '/') + 1);
        *(strrchr(path, '/') + 1) = 0;
        deep = false;
    }
    top = error ? NULL : realpath(path, NULL);
    events_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (!error && (top == NULL || events_fd < 0))
        error = errno;
    if (!error)
        error = cover(top, false);
    if (error) {
        send_failure(id, error, strerror(error), path);
        return;
    }
    struct writer w = open_reply(id, 16);
    put_int(&w, number);
    close_frame(&w);
    flush_answer(channel);
    for (int64_t asked = 0;;) {
        if (asked && pending_count) {
            send_changes(asked, channel);
            asked = 0;
        }
        struct pollfd news[2] = {{events_fd, POLLIN, 0}, {channel, asked ? 0 : POLLIN, 0}}; /* its end in any case */
        if (poll(news, 2, -1) < 0)
            continue;
        if (news[0].revents)
            take_events();
        if (news[1].revents && (asked || read_exactly(channel, &asked, sizeof asked) != 0))
            _exit(0); /* nobody wants to know any more */
    }
}
