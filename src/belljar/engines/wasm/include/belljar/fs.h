/* Serve a tree of files to the sandbox, by 9P2000.L: bj_serve("name", &tree, context), then `mount /mnt/srv/name DIR`.
 *
 * Functions get a path such as "" (the top), "a" or "dir/b", and give 0 or more, or minus an errno of Linux
 * (-BJ_ENOENT). `write` may be NULL: then nothing can be written. It is called with no data at 0 for a file that is
 * emptied. */
#ifndef BELLJAR_FS_H
#define BELLJAR_FS_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BJ_ENOENT = 2, BJ_EIO = 5, BJ_EBADF = 9, BJ_EACCES = 13, BJ_ENOTDIR = 20, BJ_EINVAL = 22, BJ_ENOTSUP = 95 };

struct bj_stat {
    int directory;
    uint64_t size;
    uint32_t mode; /* permissions; 0: 0555 for directories, 0444 (0666 with `write`) for files */
};

typedef void bj_add(void *list, const char *name, int directory);

struct bj_tree {
    int (*stat)(void *context, const char *path, struct bj_stat *found);
    int (*list)(void *context, const char *path, bj_add *add, void *list);
    long (*read)(void *context, const char *path, uint64_t offset, char *buffer, uint32_t size);
    long (*write)(void *context, const char *path, uint64_t offset, const char *data, uint32_t size);
};

enum { BJ_MESSAGE = 65536, BJ_FIDS = 4096, BJ_PATH = 4096 };

struct bj_session {
    const struct bj_tree *tree;
    void *context;
    struct { uint32_t number; char *path; } fids[BJ_FIDS];
    uint8_t in[BJ_MESSAGE], out[BJ_MESSAGE];
    uint32_t at, end; /* of the request that is read, and the answer that is written */
    uint64_t skip, index; /* of a listing: entries before the first, and of the one that comes */
    uint32_t room;
    const char *listed;
};

static uint64_t bj_get(struct bj_session *s, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint64_t)s->in[s->at + i] << (8 * i);
    s->at += bytes;
    return value;
}

static void bj_put(struct bj_session *s, int bytes, uint64_t value) {
    for (int i = 0; i < bytes; i++) s->out[s->end++] = (uint8_t)(value >> (8 * i));
}

static uint64_t bj_hash(uint64_t hash, const char *text) { /* FNV-1a */
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 1099511628211u;
    return hash;
}

/* The identity of a file is its path, or that of its directory and its name. */
static void bj_put_qid(struct bj_session *s, const char *path, const char *name, int directory) {
    uint64_t hash = bj_hash(14695981039346656037u, path);
    if (name) hash = bj_hash(*path ? bj_hash(hash, "/") : hash, name);
    bj_put(s, 1, directory ? 0x80 : 0), bj_put(s, 4, 0), bj_put(s, 8, hash);
}

static char **bj_fid(struct bj_session *s, uint32_t number, int make) {
    int unused = -1;
    for (int i = 0; i < BJ_FIDS; i++) {
        if (s->fids[i].path && s->fids[i].number == number) return &s->fids[i].path;
        if (!s->fids[i].path) unused = i;
    }
    if (!make || unused < 0) return NULL;
    s->fids[unused].number = number;
    return &s->fids[unused].path;
}

static int bj_set(struct bj_session *s, uint32_t number, const char *path) {
    char **place = bj_fid(s, number, 1), *copy = strdup(path);
    if (!place || !copy) return -BJ_EIO;
    free(*place);
    *place = copy;
    return 0;
}

static void bj_add_entry(void *list, const char *name, int directory) {
    struct bj_session *s = list;
    uint32_t length = strlen(name), size = 24 + length;
    if (s->index++ < s->skip || s->room < size) { if (s->index > s->skip) s->room = 0; return; }
    s->room -= size;
    bj_put_qid(s, s->listed, name, directory), bj_put(s, 8, s->index), bj_put(s, 1, directory ? 4 : 8), bj_put(s, 2, length);
    memcpy(s->out + s->end, name, length), s->end += length;
}

static int bj_walk(struct bj_session *s, const char *from) {
    char path[BJ_PATH];
    struct bj_stat found;
    uint32_t target = bj_get(s, 4), count = bj_get(s, 2), start = s->end;
    if (count > 16 || strlen(from) >= BJ_PATH) return -BJ_EINVAL;
    strcpy(path, from), bj_put(s, 2, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t length = bj_get(s, 2), used = strlen(path);
        if (s->at + length > BJ_MESSAGE || used + length + 2 > BJ_PATH) return -BJ_EINVAL;
        if (length == 2 && !memcmp(s->in + s->at, "..", 2)) {
            char *slash = strrchr(path, '/');
            *(slash ? slash : path) = 0;
        } else {
            if (used) path[used++] = '/';
            memcpy(path + used, s->in + s->at, length), path[used + length] = 0;
        }
        s->at += length;
        int failed = s->tree->stat(s->context, path, (memset(&found, 0, sizeof found), &found));
        if (failed < 0) return s->end = start, failed;
        bj_put_qid(s, path, NULL, found.directory);
    }
    return bj_set(s, target, path);
}

static int bj_operate(struct bj_session *s, int kind) {
    struct bj_stat found = {0};
    uint32_t number = kind == 108 ? 0 : (uint32_t)bj_get(s, 4);
    if (kind == 100) {
        bj_put(s, 4, number < BJ_MESSAGE ? number : BJ_MESSAGE), bj_put(s, 2, 8);
        memcpy(s->out + s->end, "9P2000.L", 8), s->end += 8;
        return 0;
    }
    if (kind == 104) return bj_put_qid(s, "", NULL, 1), bj_set(s, number, "");
    if (kind == 108 || kind == 50) return 0;
    char **place = bj_fid(s, number, 0);
    if (!place) return -BJ_EBADF;
    if (kind == 110) return bj_walk(s, *place);
    if (kind == 120) return free(*place), *place = NULL, 0;
    int failed = s->tree->stat(s->context, *place, &found);
    if (failed < 0) return failed;
    if (kind == 24) {
        uint32_t mode = found.mode ? found.mode : found.directory ? 0555 : s->tree->write ? 0666 : 0444;
        bj_put(s, 8, 0x7ff), bj_put_qid(s, *place, NULL, found.directory);
        bj_put(s, 4, mode | (found.directory ? 0040000 : 0100000)), bj_put(s, 4, 0), bj_put(s, 4, 0);
        bj_put(s, 8, found.directory ? 2 : 1), bj_put(s, 8, 0), bj_put(s, 8, found.size), bj_put(s, 8, 4096);
        bj_put(s, 8, (found.size + 511) / 512);
        for (int i = 0; i < 10; i++) bj_put(s, 8, 0);
        return 0;
    }
    if (kind == 12) {
        uint32_t flags = bj_get(s, 4);
        if ((flags & 3) && (found.directory || !s->tree->write)) return -BJ_EACCES;
        if ((flags & 3) && (flags & 01000)) s->tree->write(s->context, *place, 0, "", 0);
        return bj_put_qid(s, *place, NULL, found.directory), bj_put(s, 4, 0), 0;
    }
    uint64_t offset = kind == 26 ? 0 : bj_get(s, 8);
    uint32_t size = kind == 26 ? 0 : (uint32_t)bj_get(s, 4), length_at = s->end;
    if (size > BJ_MESSAGE - 24) size = BJ_MESSAGE - 24;
    if (kind == 40 || kind == 116) {
        long count;
        s->end += 4;
        if (kind == 40) {
            if (!found.directory) return -BJ_ENOTDIR;
            s->skip = offset, s->index = 0, s->room = size, s->listed = *place;
            count = s->tree->list(s->context, *place, bj_add_entry, s);
            count = count < 0 ? count : (long)(s->end - length_at - 4);
        } else {
            count = s->tree->read(s->context, *place, offset, (char *)s->out + s->end, size);
            if (count > (long)size) return -BJ_EIO;
            s->end += count > 0 ? count : 0;
        }
        uint32_t end = s->end;
        if (count < 0) return s->end = length_at, (int)count;
        s->end = length_at, bj_put(s, 4, count), s->end = end;
        return 0;
    }
    if (kind == 118 && s->tree->write) {
        long count = s->tree->write(s->context, *place, offset, (char *)s->in + s->at, size);
        return count < 0 ? (int)count : (bj_put(s, 4, count), 0);
    }
    return kind == 26 && s->tree->write ? 0 : -BJ_ENOTSUP;
}

static int bj_read_all(int fd, uint8_t *data, uint32_t size) {
    while (size) {
        long count = read(fd, data, size);
        if (count <= 0) return -1;
        data += count, size -= count;
    }
    return 0;
}

/* Serve until the program ends, or the kernel hangs up; -1 if that can't be begun. */
static int bj_serve(const char *name, const struct bj_tree *tree, void *context) {
    char path[512] = "/mnt/srv/";
    struct bj_session *s = calloc(1, sizeof *s);
    strncat(path, name, sizeof path - 10);
    unlink(path);
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    if (!s || fd < 0 || write(fd, "9p", 2) != 2) return -1;
    s->tree = tree, s->context = context;
    while (!bj_read_all(fd, s->in, 4)) {
        s->at = 0;
        uint32_t size = bj_get(s, 4);
        if (size < 7 || size > BJ_MESSAGE || bj_read_all(fd, s->in + 4, size - 4)) return -1;
        int kind = bj_get(s, 1);
        uint32_t tag = bj_get(s, 2);
        s->end = 7;
        int failed = bj_operate(s, kind);
        if (failed < 0) s->end = 7, bj_put(s, 4, -failed), kind = 6;
        uint32_t end = s->end;
        s->end = 0, bj_put(s, 4, end), bj_put(s, 1, kind + 1), bj_put(s, 2, tag);
        for (uint32_t sent = 0; sent < end;) {
            long count = write(fd, s->out + sent, end - sent);
            if (count <= 0) return -1;
            sent += count;
        }
    }
    return 0;
}

#endif
