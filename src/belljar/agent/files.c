/* The calls about files of worker/files.py, in a child of their own: they may block, and need not give anything back. */

#include "agent.h"

#define LIST_PAGE 10000
#define READ_MAX (15 << 20)
#define STAT_BYTES 80

static char *failed; /* the path that a call could not deal with, if it is not the one it was given */
static int no_path;  /* why no system call could take a path */

char *absolute_path(const uint8_t *data, uint32_t length) {
    bool relative = length == 0 || data[0] != '/';
    if (memchr(data, 0, length) != NULL || length > 2 * PATH_MAX)
        return NULL;
    size_t before = relative ? agent.cwd_length : 0;
    char *path = allocate(before + length + 2);
    memcpy(path, agent.cwd, before);
    if (relative)
        path[before++] = '/';
    memcpy(path + before, data, length);
    path[before + length] = 0;
    return path;
}

static char *read_path(struct reader *r) {
    const uint8_t *data;
    uint32_t length;
    if (!read_bytes(r, &data, &length))
        return NULL;
    char *path = absolute_path(data, length);
    if (path == NULL) {
        no_path = memchr(data, 0, length) != NULL ? EINVAL : ENAMETOOLONG;
        failed = strndup((const char *)data, length < PATH_MAX ? length : PATH_MAX);
        r->bad = true;
    }
    return path;
}

static void put_stat(struct writer *w, const struct stat *found) {
    put_int(w, found->st_mode);
    put_int(w, found->st_size);
    put_int(w, (int64_t)found->st_mtim.tv_sec * 1000000000 + found->st_mtim.tv_nsec);
    put_int(w, found->st_uid);
    put_int(w, found->st_gid);
    put_int(w, (int64_t)found->st_nlink);
    put_int(w, (int64_t)found->st_ino);
}

/* mkdir -p of the directory that a path is in. */
static int make_parents(const char *path) {
    char *above = strdup(path);
    size_t length = strlen(above);
    while (length > 1 && above[length - 1] == '/')
        length--;
    while (length > 1 && above[length - 1] != '/')
        length--;
    while (length > 1 && above[length - 1] == '/')
        length--;
    above[length] = 0;
    struct stat found;
    failed = above;
    if (stat(above, &found) == 0)
        return S_ISDIR(found.st_mode) ? 0 : ENOTDIR;
    if (errno != ENOENT || length <= 1)
        return errno;
    int error = make_parents(above);
    if (error)
        return error;
    failed = above;
    return mkdir(above, 0777) == 0 || errno == EEXIST ? 0 : errno;
}

/* Each gives an errno, or 0 once it has answered. */

static int call_read(int64_t id, struct reader *r) {
    int64_t offset, size;
    char *path = read_path(r);
    read_int(r, &offset);
    read_int(r, &size);
    if (r->bad || offset < 0 || size < 0)
        return EINVAL;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); /* nobody waits for the writer of a FIFO */
    struct stat found;
    if (fd < 0 || fstat(fd, &found) != 0)
        return errno;
    if (S_ISDIR(found.st_mode))
        return EISDIR;
    bool seekable = lseek(fd, 0, SEEK_CUR) >= 0;
    size_t most = (size_t)(size < READ_MAX ? size : READ_MAX), length = 0;
    if (S_ISREG(found.st_mode) && found.st_size > 0 && (uint64_t)(found.st_size) < most)
        most = (size_t)found.st_size + 1;
    uint8_t *data = allocate(most);
    while (length < most) {
        ssize_t count = seekable ? pread(fd, data + length, most - length, offset + (int64_t)length)
                                 : read(fd, data + length, most - length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && length == 0)
            return errno;
        if (count <= 0)
            break;
        length += (size_t)count;
        if (!seekable)
            break;
    }
    struct writer w = open_reply(id, length + 16);
    put_array(&w, 2);
    put_bytes(&w, data, length);
    put_bool(&w, (int64_t)length < size && (length < most || !seekable));
    close_frame(&w);
    return 0;
}

static int call_write(int64_t id, struct reader *r) {
    const uint8_t *data;
    uint32_t length;
    int64_t mode = -1;
    bool append, parents;
    char *path = read_path(r);
    read_bytes(r, &data, &length);
    if (!read_nil(r))
        read_int(r, &mode);
    read_bool(r, &append);
    read_bool(r, &parents);
    if (r->bad)
        return EINVAL;
    int error = parents ? make_parents(path) : 0;
    if (error)
        return error;
    failed = NULL;
    int flags = O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int fd = open(path, flags, mode < 0 ? 0666 : (mode_t)mode & 07777);
    if (fd < 0 || write_all(fd, data, length) != 0 || (mode >= 0 && fchmod(fd, (mode_t)mode & 07777) != 0))
        return errno;
    if (close(fd) != 0)
        return errno;
    send_nil(id);
    return 0;
}

static int by_name(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static int call_list(int64_t id, struct reader *r) {
    const uint8_t *last = NULL;
    uint32_t last_length = 0;
    char *path = read_path(r);
    if (r->at < r->end && !r->bad)
        read_bytes(r, &last, &last_length);
    if (r->bad)
        return EINVAL;
    char *after = strndup((const char *)last, last_length);
    DIR *directory = opendir(path);
    if (directory == NULL || after == NULL)
        return errno;
    /* The first of those that follow, whatever the number of others: no more than two pages are held. */
    static char *names[2 * LIST_PAGE];
    size_t count = 0, total = 0;
    struct dirent *entry;
    while ((errno = 0, entry = readdir(directory)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, after) <= 0)
            continue;
        names[count++] = strdup(name);
        if (names[count - 1] == NULL)
            return ENOMEM;
        if (count == 2 * LIST_PAGE) {
            qsort(names, count, sizeof *names, by_name);
            while (count > LIST_PAGE)
                free(names[--count]);
        }
    }
    if (errno)
        return errno;
    qsort(names, count, sizeof *names, by_name);
    static struct stat found[LIST_PAGE];
    size_t kept = 0;
    for (size_t i = 0; i < count && i < LIST_PAGE; i++) {
        if (fstatat(dirfd(directory), names[i], &found[kept], AT_SYMLINK_NOFOLLOW) != 0)
            continue; /* gone since it was listed */
        names[kept++] = names[i];
        total += strlen(names[i]) + STAT_BYTES;
    }
    struct writer w = open_reply(id, total + 16);
    put_array(&w, (uint32_t)kept);
    for (size_t i = 0; i < kept; i++) {
        put_array(&w, 8);
        put_bytes(&w, names[i], strlen(names[i]));
        put_stat(&w, &found[i]);
    }
    close_frame(&w);
    return 0;
}

static int call_stat(int64_t id, struct reader *r) {
    bool follow;
    struct stat found;
    char *path = read_path(r);
    if (!read_bool(r, &follow) || r->bad)
        return EINVAL;
    if ((follow ? stat(path, &found) : lstat(path, &found)) != 0)
        return errno;
    struct writer w = open_reply(id, STAT_BYTES);
    put_array(&w, 7);
    put_stat(&w, &found);
    close_frame(&w);
    return 0;
}

static int call_mkdir(int64_t id, struct reader *r) {
    bool parents;
    struct stat found;
    char *path = read_path(r);
    if (!read_bool(r, &parents) || r->bad)
        return EINVAL;
    int error = parents ? make_parents(path) : 0;
    if (error)
        return error;
    failed = NULL;
    if (mkdir(path, 0777) != 0) {
        error = errno;
        if (!parents || error != EEXIST || stat(path, &found) != 0 || !S_ISDIR(found.st_mode))
            return error;
    }
    send_nil(id);
    return 0;
}

static int call_symlink(int64_t id, struct reader *r) {
    const uint8_t *data;
    uint32_t length;
    read_bytes(r, &data, &length);
    char *path = read_path(r);
    if (r->bad)
        return EINVAL;
    char *target = strndup((const char *)data, length);
    int error = make_parents(path);
    if (error)
        return error;
    failed = NULL;
    if (symlink(target, path) != 0)
        return errno;
    send_nil(id);
    return 0;
}

static int call_readlink(int64_t id, struct reader *r) {
    char target[PATH_MAX];
    char *path = read_path(r);
    if (r->bad)
        return EINVAL;
    ssize_t length = readlink(path, target, sizeof target);
    if (length < 0)
        return errno;
    struct writer w = open_reply(id, sizeof target + 16);
    put_bytes(&w, target, (size_t)length);
    close_frame(&w);
    return 0;
}

/* A directory that is being emptied: the one above it, and its name there. */
struct level {
    dev_t device;
    ino_t inode;
    char *name;
};

/* Remove all that is in a directory. One descriptor and a list, not recursion: a guest may have made ten thousand levels.
 * The way back is by "..", checked: a guest may move directories meanwhile. */
static int empty_directory(int fd) {
    struct level *levels = NULL;
    size_t depth = 0, room = 0;
    for (;;) {
        DIR *directory = fdopendir(dup(fd));
        if (directory == NULL)
            return errno;
        rewinddir(directory);
        char *below = NULL;
        int error = 0;
        struct dirent *entry;
        while (below == NULL && !error && (errno = 0, entry = readdir(directory)) != NULL) {
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            if (unlinkat(fd, entry->d_name, entry->d_type == DT_DIR ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT)
                continue;
            if (errno == EISDIR && unlinkat(fd, entry->d_name, AT_REMOVEDIR) == 0)
                continue;
            if (errno == ENOTEMPTY || errno == EEXIST)
                below = strdup(entry->d_name);
            else
                error = errno;
        }
        closedir(directory);
        if (error)
            return error;
        struct stat found;
        if (below != NULL) {
            if (depth == room) {
                room = room ? 2 * room : 64;
                levels = realloc(levels, room * sizeof *levels);
                if (levels == NULL)
                    return ENOMEM;
            }
            int next = openat(fd, below, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (next < 0 || fstat(fd, &found) != 0)
                return errno;
            levels[depth++] = (struct level){found.st_dev, found.st_ino, below};
            close(fd);
            fd = next;
            continue;
        }
        if (depth == 0)
            return 0;
        struct level *above = &levels[--depth];
        int next = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (next < 0 || fstat(next, &found) != 0)
            return errno;
        if (found.st_dev != above->device || found.st_ino != above->inode)
            return EBUSY;
        close(fd);
        fd = next;
        if (unlinkat(fd, above->name, AT_REMOVEDIR) != 0 && errno != ENOTEMPTY && errno != ENOENT)
            return errno;
        free(above->name);
    }
}

static int call_remove(int64_t id, struct reader *r) {
    bool recursive;
    struct stat found;
    char *path = read_path(r);
    if (!read_bool(r, &recursive) || r->bad)
        return EINVAL;
    if (lstat(path, &found) != 0)
        return errno;
    if (S_ISDIR(found.st_mode) && recursive) {
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return errno;
        int error = empty_directory(fd);
        if (error)
            return error;
    }
    if ((S_ISDIR(found.st_mode) ? rmdir(path) : unlink(path)) != 0)
        return errno;
    send_nil(id);
    return 0;
}

static int call_rename(int64_t id, struct reader *r) {
    char *from = read_path(r), *to = read_path(r);
    if (r->bad)
        return EINVAL;
    if (rename(from, to) != 0)
        return errno;
    send_nil(id);
    return 0;
}

static int call_chmod(int64_t id, struct reader *r) {
    int64_t mode;
    char *path = read_path(r);
    if (!read_int(r, &mode) || r->bad)
        return EINVAL;
    if (chmod(path, (mode_t)mode & 07777) != 0)
        return errno;
    send_nil(id);
    return 0;
}

static const struct {
    const char *name;
    int (*call)(int64_t, struct reader *);
    bool path_second;
} calls[] = {
    {"read", call_read, false},         {"write", call_write, false},   {"list", call_list, false},
    {"stat", call_stat, false},         {"mkdir", call_mkdir, false},   {"symlink", call_symlink, true},
    {"readlink", call_readlink, false}, {"remove", call_remove, false}, {"rename", call_rename, false},
    {"chmod", call_chmod, false},
};

bool call_files(int64_t id, const uint8_t *name, uint32_t length, struct reader *arguments) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (!is_text(name, length, calls[i].name))
            continue;
        struct reader again = *arguments;
        if (calls[i].path_second)
            skip(&again);
        int error = calls[i].call(id, arguments);
        error = no_path ? no_path : error;
        if (arguments->bad && !no_path)
            send_failure(id, 0, "bad arguments", NULL);
        else if (error)
            send_failure(id, error, strerror(error), failed == NULL ? read_path(&again) : failed);
        return true;
    }
    return false;
}
