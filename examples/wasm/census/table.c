#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024 };

static struct kind kinds[MOST];
static size_t known;

void count(const char *path, long long bytes) {
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    const char *name = dot && dot != base ? dot : "(none)";
    size_t at = 0;
    while (at < known && strncmp(kinds[at].name, name, sizeof kinds[at].name - 1)) at++;
    if (at == MOST) return;
    if (at == known) {
        strncpy(kinds[at].name, name, sizeof kinds[at].name - 1);
        known++;
    }
    kinds[at].files++;
    kinds[at].bytes += bytes;
}

static int by_size(const void *left, const void *right) {
    const struct kind *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return strcmp(a->name, b->name);
}

void report(void) {
    qsort(kinds, known, sizeof kinds[0], by_size);
    for (size_t at = 0; at < known; at++) {
        printf("%8lld %6ld %s\n", kinds[at].bytes, kinds[at].files, kinds[at].name);
    }
}
