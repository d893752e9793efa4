/* census: what is under the directories that standard input names, one a line, by file name extension. */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "table.h"

enum { LONGEST = 4096, DEEPEST = 64 };

static int walk(const char *path, int depth) {
    struct stat found;
    if (lstat(path, &found)) {
        fprintf(stderr, "census: %s: %s\n", path, strerror(errno));
        return 1;
    }
    if (S_ISREG(found.st_mode)) count(path, (long long)found.st_size);
    if (!S_ISDIR(found.st_mode) || depth == DEEPEST) return 0;
    DIR *directory = opendir(path);
    if (directory == NULL) {
        fprintf(stderr, "census: %s: %s\n", path, strerror(errno));
        return 1;
    }
    int failures = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char below[LONGEST];
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (snprintf(below, sizeof below, "%s/%s", path, entry->d_name) >= LONGEST) continue;
        failures |= walk(below, depth + 1);
    }
    closedir(directory);
    return failures;
}

int main(void) {
    char line[LONGEST];
    int failures = 0;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (*line) failures |= walk(line, 0);
    }
    report();
    return failures;
}
