/* The files of a machine as a stream by one of its ports: out, for a snapshot; in, for a machine that goes on from one.
 *
 * The stream has messages as any port's (vm.c). In it is a frame for each file, [kind, path, mode, uid, gid, mtime,
 * link, target] (vm/files_host.py), and behind that of a regular file its contents: pieces that begin with their
 * length, 0 at the end, HOLE and eight bytes for so many zeros. The last frame is [END].
 *
 * Of directories that are a system's own only what the layer over the disk has goes out; of all others everything.
 */
#include <sys/xattr.h>

#include "agent.h"
#include "vm.h"

#define PIECE (64 << 10)
#define HOLE 0xffffffffu
#define FRAME_ROOM (3 * PATH_MAX)
#define DEPTH_MAX 1000
#define STOPPED_MAX (1 << 16)
#define STOP_SECONDS 5.0 /* for all; a machine may lose seconds to its host */
#define DEAF_SECONDS 0.5 /* for who hears no signal */
#define STOP_PAUSE 1000 /* microseconds */
#define OPAQUE "trusted.overlay.opaque"

enum { END, FILE_ = 1, DIRECTORY, SYMLINK, FIFO, WHITEOUT, MERGED, LOST, LINK, TIMES };

int layer = -1;
static int port;


/* The port: bytes in messages. */

static uint8_t out[PIECE + 4], in[PIECE + 4];
static size_t out_size = 4, in_at, in_size;
static bool in_ended;

static void flush_out(void) {
    if (out_size == 4)
        return;
    set_frame_length(out, out_size);
    if (write_all(port, out, out_size) != 0)
        _exit(1);
    out_size = 4;
}

static void put(const void *data, size_t length) {
    for (const uint8_t *at = data; length > 0;) {
        size_t room = sizeof out - out_size, count = length < room ? length : room;
        memcpy(out + out_size, at, count);
        out_size += count;
        at += count;
        length -= count;
        if (out_size == sizeof out)
            flush_out();
    }
}

/* False once the owner has ended, or broke the rules. */
static bool get(void *data, size_t length) {
    for (uint8_t *at = data; length > 0;) {
        if (in_at == in_size) {
            if (in_ended || read_exactly(port, in, 4) != 0 || (in_size = frame_length(in)) <= 4 ||
                in_size > sizeof in || read_exactly(port, in + 4, in_size - 4) != 0) {
                in_ended = true;
                in_at = in_size = 0;
                return false;
            }
            in_at = 4;
        }
        size_t count = in_size - in_at < length ? in_size - in_at : length;
        memcpy(at, in + in_at, count);
        in_at += count;
        at += count;
        length -= count;
    }
    return true;
}

/* Says the end, and waits until the owner has said it, too. */
static void end_stream(void) {
    uint8_t rest[4] = {0};
    flush_out();
    write_all(port, rest, sizeof rest);
    while (get(rest, 1))
        ;
}

static void put_frame(int kind, const char *path, const struct stat *found, const char *target) {
    static uint8_t frame[FRAME_ROOM];
    struct writer w = writer_of(frame + HEADER, sizeof frame - HEADER);
    put_array(&w, 8);
    put_int(&w, kind);
    put_bytes(&w, path, strlen(path));
    put_int(&w, found == NULL ? 0 : found->st_mode & 07777);
    put_int(&w, found == NULL ? 0 : found->st_uid);
    put_int(&w, found == NULL ? 0 : found->st_gid);
    put_int(&w, found == NULL ? 0 : (int64_t)found->st_mtim.tv_sec * 1000000000 + found->st_mtim.tv_nsec);
    put_int(&w, found == NULL || found->st_nlink < 2 ? 0 : (int64_t)((found->st_dev << 40 ^ found->st_ino) & INT64_MAX));
    put_bytes(&w, target, strlen(target));
    if (w.full)
        return; /* no path is that long */
    set_frame_length(frame, written(&w));
    put(frame, written(&w) + HEADER);
}

/* Out. */

struct walk {
    char path[PATH_MAX];
    bool changes; /* of a layer: what is not in it is the disk's */
    dev_t device; /* other file systems are not looked into */
    int depth;
};

static void put_contents(int fd) {
    static uint8_t data[PIECE];
    uint8_t head[12];
    off_t at = 0, size = lseek(fd, 0, SEEK_END);
    while (at < size) {
        off_t from = lseek(fd, at, SEEK_DATA);
        if (from < 0 || from > size)
            from = errno == ENXIO || from > size ? size : at;
        if (from > at) {
            uint64_t zeros = (uint64_t)(from - at);
            set_frame_length(head, HOLE);
            memcpy(head + 4, &zeros, sizeof zeros);
            put(head, sizeof head);
        }
        at = from;
        off_t until = at < size ? lseek(fd, at, SEEK_HOLE) : size;
        if (until <= at)
            until = size;
        while (at < until) {
            ssize_t count = pread(fd, data, until - at < PIECE ? (size_t)(until - at) : PIECE, at);
            if (count <= 0) {
                at = size; /* it is shorter now */
                break;
            }
            set_frame_length(head, (size_t)count);
            put(head, 4);
            put(data, (size_t)count);
            at += count;
        }
    }
    set_frame_length(head, 0);
    put(head, 4);
}

static void put_directory(struct walk *walk, int fd);

static void put_entry(struct walk *walk, int above, const char *name) {
    struct stat found;
    char target[PATH_MAX] = "";
    size_t before = strlen(walk->path), length = strlen(name);
    if (fstatat(above, name, &found, AT_SYMLINK_NOFOLLOW) != 0 || before + length + 2 > sizeof walk->path)
        return;
    snprintf(walk->path + before, sizeof walk->path - before, "%s%s", before ? "/" : "", name);
    if (S_ISDIR(found.st_mode)) {
        int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        char opaque = 0;
        bool merged = walk->changes && fd >= 0 && (fgetxattr(fd, OPAQUE, &opaque, 1) != 1 || opaque != 'y');
        put_frame(merged ? MERGED : DIRECTORY, walk->path, &found, "");
        if (fd >= 0 && found.st_dev == walk->device && walk->depth < DEPTH_MAX)
            put_directory(walk, fd);
        if (fd >= 0)
            close(fd);
    } else if (S_ISREG(found.st_mode)) {
        int fd = openat(above, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        put_frame(fd < 0 ? LOST : FILE_, walk->path, &found, "");
        if (fd >= 0) {
            put_contents(fd);
            close(fd);
        }
    } else if (S_ISLNK(found.st_mode)) {
        ssize_t count = readlinkat(above, name, target, sizeof target - 1);
        put_frame(count > 0 ? SYMLINK : LOST, walk->path, &found, target);
    } else if (S_ISCHR(found.st_mode) && found.st_rdev == 0 && walk->changes) {
        put_frame(WHITEOUT, walk->path, NULL, "");
    } else {
        put_frame(S_ISFIFO(found.st_mode) ? FIFO : LOST, walk->path, &found, "");
    }
    walk->path[before] = 0;
}

static void put_directory(struct walk *walk, int fd) {
    DIR *directory = fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    walk->depth++;
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            put_entry(walk, fd, entry->d_name);
    walk->depth--;
    if (directory != NULL)
        closedir(directory);
}

static bool has_name(struct reader names, const char *name) {
    uint32_t count, length;
    const uint8_t *data;
    read_array(&names, &count);
    for (uint32_t i = 0; i < count && read_bytes(&names, &data, &length); i++)
        if (is_text(data, length, name))
            return true;
    return false;
}

static void put_root(struct reader system) {
    static struct walk walk;
    struct stat found;
    int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Opened anew: a position in `layer` would be that of all who have it. */
    DIR *lists[] = {fdopendir(dup(root)), fdopendir(openat(layer, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC))};
    for (int i = 0; i < 2; i++) {
        walk.changes = i == 1;
        if (lists[i] == NULL || fstat(walk.changes ? layer : root, &found) != 0)
            _exit(1);
        walk.device = found.st_dev;
        for (struct dirent *entry; (entry = readdir(lists[i])) != NULL;) {
            const char *name = entry->d_name;
            if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                continue;
            bool gone = walk.changes && fstatat(layer, name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(found.st_mode);
            if (gone || has_name(system, name) == walk.changes)
                put_entry(&walk, walk.changes ? layer : root, name);
        }
    }
}

/* Programs wait meanwhile. */
static pid_t *stopped;
static size_t stopped_count;

static bool is_to_stop(const struct process *process) {
    pid_t pid = process->pid;
    return pid != 1 && pid != 2 && pid != getpid() && process->parent != 2 && !is_relay(pid) &&
           strchr("TtZX", process->state) == NULL;
}

static bool is_awaited(const struct process *process, double taken) {
    return is_to_stop(process) && (process->state != 'D' || taken < DEAF_SECONDS);
}

/* A process is stopped when its parent stands still and continued before it, so that no shell that waits for its
 * programs sees one stopped, as if by ^Z. Who waits in the kernel without hearing signals (D) may do so for long: it
 * holds up nobody then, and stops when it comes back. Every other process stops as soon as it runs. */
void stop_others(void) {
    if (stopped == NULL)
        stopped = allocate(STOPPED_MAX * sizeof *stopped);
    stopped_count = 0;
    double began = now(), taken;
    while ((taken = now() - began) < STOP_SECONDS) {
        struct process *found;
        size_t count = scan_processes(&found);
        bool running = false;
        for (size_t i = 0; i < count && stopped_count < STOPPED_MAX; i++) {
            pid_t pid = found[i].pid;
            if (!is_to_stop(&found[i]))
                continue;
            running |= is_awaited(&found[i], taken);
            struct process *parent = find_process(found[i].parent);
            if ((parent != NULL && is_awaited(parent, taken)) || kill(pid, SIGSTOP) != 0)
                continue;
            bool known = false;
            for (size_t each = 0; each < stopped_count && !known; each++)
                known = stopped[each] == pid;
            if (!known)
                stopped[stopped_count++] = pid;
        }
        if (!running)
            return;
        usleep(STOP_PAUSE);
    }
}

void continue_others(void) {
    while (stopped_count > 0)
        kill(stopped[--stopped_count], SIGCONT);
}

void send_tree(struct reader *arguments, int to) {
    static const uint8_t end[] = {3, 0, 0, 0, 0x92, END, 0};
    port = to;
    struct reader system = *arguments;
    stop_others();
    put_root(system);
    continue_others(); /* before the end is told: what the owner asks next may stop them again */
    put(end, sizeof end);
    flush_out();
    end_stream();
}

/* In. */

static int first_error;
static char first_path[PATH_MAX];

static void check(bool done, const char *path) {
    if (done || first_error)
        return;
    first_error = errno ? errno : EPROTO;
    snprintf(first_path, sizeof first_path, "%s", path);
}

/* Removes whatever is there; of a directory only its contents, if it is to stay. */
static bool clear(int above, const char *name, bool stays, int depth) {
    if (!stays && (unlinkat(above, name, 0) == 0 || errno == ENOENT))
        return true;
    int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *directory = fd < 0 || depth > DEPTH_MAX ? NULL : fdopendir(fd);
    bool done = directory != NULL;
    for (struct dirent *entry; done && (entry = readdir(directory)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            done = clear(fd, entry->d_name, false, depth + 1);
    if (directory != NULL)
        closedir(directory);
    else if (fd >= 0)
        close(fd);
    return done && (stays || unlinkat(above, name, AT_REMOVEDIR) == 0);
}

static bool make_directory(const char *path, bool merged) {
    struct stat found;
    if (lstat(path, &found) == 0 && S_ISDIR(found.st_mode))
        return merged || clear(AT_FDCWD, path, true, 0);
    return clear(AT_FDCWD, path, false, 0) && mkdir(path, 0700) == 0;
}

/* The contents of a file, which may be none of ours if it could not be made. */
static bool take_contents(int fd) {
    static uint8_t data[PIECE];
    uint8_t head[8];
    off_t at = 0;
    bool done = true;
    for (;;) {
        if (!get(head, 4))
            return errno = EPROTO, false;
        size_t length = frame_length(head);
        if (length == 0)
            break;
        if (length == HOLE) {
            uint64_t zeros;
            if (!get(&zeros, sizeof zeros) || zeros > INT64_MAX - (uint64_t)at)
                return errno = EPROTO, false;
            at += (off_t)zeros;
            continue;
        }
        if (length > PIECE || !get(data, length))
            return errno = EPROTO, false;
        for (size_t written = 0; done && fd >= 0 && written < length;) {
            ssize_t count = pwrite(fd, data + written, length - written, at + (off_t)written);
            done = count > 0;
            written += count > 0 ? (size_t)count : 0;
        }
        at += (off_t)length;
    }
    return done && (fd < 0 || ftruncate(fd, at) == 0);
}

/* One file; false at the end, and for what makes no sense. */
static bool take_entry(void) {
    static uint8_t frame[FRAME_ROOM];
    const uint8_t *data, *other;
    uint32_t count, length, other_length;
    int64_t kind, mode, uid, gid, time, link_;
    if (!get(frame, HEADER) || (length = (uint32_t)frame_length(frame)) > sizeof frame || !get(frame, length))
        return check((errno = EPROTO, false), ""), false;
    struct reader r = reader_of(frame, length);
    read_array(&r, &count);
    read_int(&r, &kind);
    if (!r.bad && kind == END)
        return false;
    read_bytes(&r, &data, &length);
    read_int(&r, &mode);
    read_int(&r, &uid);
    read_int(&r, &gid);
    read_int(&r, &time);
    read_int(&r, &link_);
    read_bytes(&r, &other, &other_length);
    if (r.bad || length >= PATH_MAX || other_length >= PATH_MAX)
        return check((errno = EPROTO, false), ""), false;
    char path[PATH_MAX], target[PATH_MAX];
    snprintf(path, sizeof path, "%.*s", (int)length, (const char *)data);
    snprintf(target, sizeof target, "%.*s", (int)other_length, (const char *)other);
    errno = 0;
    if (kind == DIRECTORY || kind == MERGED) {
        check(make_directory(path, kind == MERGED), path);
    } else if (kind == FILE_) {
        int fd = clear(AT_FDCWD, path, false, 0) ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
        check(fd >= 0, path);
        check(take_contents(fd), path);
        if (fd >= 0)
            close(fd);
    } else if (kind != TIMES) {
        check(clear(AT_FDCWD, path, false, 0), path);
        if (kind == SYMLINK)
            check(symlink(target, path) == 0, path);
        else if (kind == FIFO)
            check(mkfifo(path, 0600) == 0, path);
        else if (kind == LINK)
            check(link(target, path) == 0, path);
    }
    if (kind == WHITEOUT || kind == LINK)
        return true;
    struct timespec modified = {time / 1000000000, time % 1000000000};
    if (modified.tv_nsec < 0) {
        modified.tv_sec--;
        modified.tv_nsec += 1000000000;
    }
    struct timespec times[] = {modified, modified};
    check(lchown(path, (uid_t)uid, (gid_t)gid) == 0, path);
    check(kind == SYMLINK || chmod(path, (mode_t)mode & 07777) == 0, path);
    check(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) == 0, path);
    return true;
}

void take_tree(struct reader *arguments, int to) {
    (void)arguments;
    static uint8_t frame[FRAME_ROOM];
    port = to;
    umask(0);
    check(chdir("/") == 0, "/");
    while (take_entry())
        ;
    struct writer w = writer_of(frame, sizeof frame);
    put_array(&w, 2);
    put_int(&w, first_error);
    put_bytes(&w, first_path, strlen(first_path));
    put(frame, written(&w));
    end_stream();
}
