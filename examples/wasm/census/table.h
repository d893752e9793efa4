/* Counts and sizes by file name extension. */

struct kind {
    char name[32];
    long files;
    long long bytes;
};

void count(const char *path, long long bytes);
void report(void);
