/* POSIX functions that wasi-libc has not, for programs that are compiled in a sandbox: calls of the sandbox's kernel.
   A request is a call's number and arguments in the encoding of engines/wire/calls.py; the answer is its results. */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DUP = 14, DUP2 = 15, PIPE = 16, CHMOD = 31, CHOWN = 32, MKFIFO = 35, FCHMOD = 10, FCHOWN = 11, UMASK = 42,
       SPAWN = 45, WAIT = 46, KILL = 47, IDS = 49, HOSTNAME = 50 };
enum { AT_CWD = -100, NAME_TRIES = 1000, CANNOT_EXECUTE = 127 };

extern char **environ;

__attribute__((import_module("belljar"), import_name("call")))
int32_t belljar_call(const void *request, uint32_t length, void *answer, uint32_t room);

struct request {
    char *data;
    size_t size, room;
};

static void put(struct request *request, const void *data, size_t size) {
    if (request->size + size > request->room) {
        request->room = 2 * (request->size + size) + 64;
        char *grown = realloc(request->data, request->room);
        if (grown == NULL) abort();
        request->data = grown;
    }
    memcpy(request->data + request->size, data, size);
    request->size += size;
}

static struct request begin(uint16_t number) {
    struct request request = {0};
    put(&request, &number, sizeof number);
    return request;
}

static void put_number(struct request *request, int64_t value) { put(request, &value, sizeof value); }

static void put_count(struct request *request, uint32_t count) { put(request, &count, sizeof count); }

static void put_text(struct request *request, const char *text) {
    put_count(request, strlen(text));
    put(request, text, strlen(text));
}

static void put_list(struct request *request, char *const *words) {
    uint32_t count = 0;
    while (words != NULL && words[count] != NULL) count++;
    put_count(request, count);
    for (uint32_t i = 0; i < count; i++) put_text(request, words[i]);
}

/* The kernel knows no working directory of a WASI program: paths are given whole. */
static void put_path(struct request *request, const char *path) {
    char directory[4096];
    put_number(request, AT_CWD);
    if (path[0] == '/' || getcwd(directory, sizeof directory) == NULL) {
        put_text(request, path);
        return;
    }
    put_count(request, strlen(directory) + 1 + strlen(path));
    put(request, directory, strlen(directory));
    put(request, "/", 1);
    put(request, path, strlen(path));
}

static int finish(struct request *request, void *answer, size_t room) {
    int32_t result = belljar_call(request->data, request->size, answer, room);
    free(request->data);
    if (result >= 0) return result;
    errno = -result;
    return -1;
}

static int finish_plain(struct request *request) { return finish(request, NULL, 0) < 0 ? -1 : 0; }

/* Processes. */

static pid_t start(const char *path, char *const *argv, char *const *env, int target, int source) {
    char directory[4096];
    int64_t pid;
    struct request request = begin(SPAWN);
    put_text(&request, path);
    put_list(&request, argv);
    put_list(&request, env);
    put_text(&request, getcwd(directory, sizeof directory) != NULL ? directory : "");
    put_count(&request, target >= 0);
    if (target >= 0) put_number(&request, target);
    put_count(&request, target >= 0);
    if (target >= 0) put_number(&request, source);
    put_number(&request, 0);
    return finish(&request, &pid, sizeof pid) < 0 ? -1 : (pid_t)pid;
}

pid_t waitpid(pid_t pid, int *status, int options) {
    int64_t found[3];
    struct request request = begin(WAIT);
    put_number(&request, pid);
    put_number(&request, options);
    if (finish(&request, found, sizeof found) < 0) return -1;
    if (status != NULL) *status = (int)(found[1] << 8 | found[2]);
    return (pid_t)found[0];
}

pid_t wait(int *status) { return waitpid(-1, status, 0); }

static pid_t start_shell(const char *command, int target, int source) {
    char *const argv[] = {"sh", "-c", (char *)command, NULL};
    return start("/bin/sh", argv, environ, target, source);
}

int system(const char *command) {
    int status;
    if (command == NULL) return 1;
    pid_t pid = start_shell(command, -1, 0);
    return pid < 0 || waitpid(pid, &status, 0) < 0 ? -1 : status;
}

struct opened {
    FILE *file;
    pid_t pid;
    struct opened *next;
};
static struct opened *pipes;

FILE *popen(const char *command, const char *mode) {
    int ends[2];
    int reads = mode[0] == 'r';
    struct opened *opened = malloc(sizeof *opened);
    if (opened == NULL || pipe(ends) != 0) return NULL;
    opened->pid = start_shell(command, reads ? 1 : 0, ends[reads ? 1 : 0]);
    close(ends[reads ? 1 : 0]);
    opened->file = opened->pid < 0 ? NULL : fdopen(ends[reads ? 0 : 1], reads ? "r" : "w");
    if (opened->file == NULL) {
        close(ends[reads ? 0 : 1]);
        free(opened);
        return NULL;
    }
    opened->next = pipes;
    pipes = opened;
    return opened->file;
}

int pclose(FILE *file) {
    for (struct opened **at = &pipes; *at != NULL; at = &(*at)->next) {
        struct opened *found = *at;
        if (found->file != file) continue;
        int status;
        pid_t pid = found->pid;
        *at = found->next;
        free(found);
        fclose(file);
        return waitpid(pid, &status, 0) < 0 ? -1 : status;
    }
    errno = ECHILD;
    return -1;
}

/* A program can't be replaced: it waits for the other one, and ends as that did. */
int execve(const char *path, char *const argv[], char *const env[]) {
    int status;
    fflush(NULL);
    pid_t pid = start(path, argv, env, -1, 0);
    if (pid < 0) return -1;
    if (waitpid(pid, &status, 0) < 0) _Exit(CANNOT_EXECUTE);
    _Exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }
int execvp(const char *file, char *const argv[]) { return execve(file, argv, environ); }

static int execute_list(const char *path, const char *first, va_list words) {
    char *argv[256] = {(char *)first};
    for (int i = 1; i < 255 && argv[i - 1] != NULL; i++) argv[i] = va_arg(words, char *);
    return execve(path, argv, environ);
}

int execl(const char *path, const char *first, ...) {
    va_list words;
    va_start(words, first);
    int result = execute_list(path, first, words);
    va_end(words);
    return result;
}

int execlp(const char *file, const char *first, ...) {
    va_list words;
    va_start(words, first);
    int result = execute_list(file, first, words);
    va_end(words);
    return result;
}

int kill(pid_t pid, int number) {
    struct request request = begin(KILL);
    put_number(&request, pid);
    put_number(&request, number);
    return finish_plain(&request);
}

enum { PID, PPID, PGID, SESSION, UID, GID, IDENTITIES };

static int identity(int which) {
    struct {
        uint32_t count;
        int64_t numbers[IDENTITIES];
    } __attribute__((packed)) found;
    struct request request = begin(IDS);
    return finish(&request, &found, sizeof found) < 0 ? -1 : (int)found.numbers[which];
}

pid_t getppid(void) { return identity(PPID); }
pid_t getpgrp(void) { return identity(PGID); }
uid_t getuid(void) { return identity(UID); }
uid_t geteuid(void) { return identity(UID); }
gid_t getgid(void) { return identity(GID); }
gid_t getegid(void) { return identity(GID); }

int gethostname(char *name, size_t size) {
    char answer[512];
    uint32_t length;
    struct request request = begin(HOSTNAME);
    if (finish(&request, answer, sizeof answer) < 0) return -1;
    memcpy(&length, answer, sizeof length);
    if (length >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name, answer + sizeof length, length);
    name[length] = 0;
    return 0;
}

/* Descriptors. */

int dup(int fd) {
    int64_t copy;
    struct request request = begin(DUP);
    put_number(&request, fd);
    put_number(&request, 0);
    put_number(&request, 0);
    return finish(&request, &copy, sizeof copy) < 0 ? -1 : (int)copy;
}

int dup2(int fd, int target) {
    struct request request = begin(DUP2);
    put_number(&request, fd);
    put_number(&request, target);
    put_number(&request, 0);
    return finish_plain(&request) < 0 ? -1 : target;
}

int pipe(int ends[2]) {
    int64_t found[2];
    struct request request = begin(PIPE);
    put_number(&request, 1);
    if (finish(&request, found, sizeof found) < 0) return -1;
    ends[0] = (int)found[0];
    ends[1] = (int)found[1];
    return 0;
}

/* Modes and owners. */

mode_t umask(mode_t mask) {
    int64_t old;
    struct request request = begin(UMASK);
    put_number(&request, mask);
    return finish(&request, &old, sizeof old) < 0 ? 022 : (mode_t)old;
}

int chmod(const char *path, mode_t mode) {
    struct request request = begin(CHMOD);
    put_path(&request, path);
    put_number(&request, mode);
    put_number(&request, 0);
    return finish_plain(&request);
}

int fchmod(int fd, mode_t mode) {
    struct request request = begin(FCHMOD);
    put_number(&request, fd);
    put_number(&request, mode);
    return finish_plain(&request);
}

static int change_owner(const char *path, uid_t uid, gid_t gid, int nofollow) {
    struct request request = begin(CHOWN);
    put_path(&request, path);
    put_number(&request, (int32_t)uid);
    put_number(&request, (int32_t)gid);
    put_number(&request, nofollow);
    return finish_plain(&request);
}

int chown(const char *path, uid_t uid, gid_t gid) { return change_owner(path, uid, gid, 0); }
int lchown(const char *path, uid_t uid, gid_t gid) { return change_owner(path, uid, gid, 1); }

int fchown(int fd, uid_t uid, gid_t gid) {
    struct request request = begin(FCHOWN);
    put_number(&request, fd);
    put_number(&request, (int32_t)uid);
    put_number(&request, (int32_t)gid);
    return finish_plain(&request);
}

int mkfifo(const char *path, mode_t mode) {
    struct request request = begin(MKFIFO);
    put_path(&request, path);
    put_number(&request, mode);
    return finish_plain(&request);
}

/* Temporary files. */

static int fill_name(char *template) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t length = strlen(template);
    unsigned char random[6];
    if (length < 6 || strcmp(template + length - 6, "XXXXXX") != 0 || getentropy(random, sizeof random) != 0) {
        errno = EINVAL;
        return -1;
    }
    for (int i = 0; i < 6; i++) template[length - 6 + i] = letters[random[i] % (sizeof letters - 1)];
    return 0;
}

static void restore_name(char *template) { memcpy(template + strlen(template) - 6, "XXXXXX", 6); }

int mkstemp(char *template) {
    for (int i = 0; i < NAME_TRIES; i++) {
        if (fill_name(template) != 0) return -1;
        int fd = open(template, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd >= 0) {
            chmod(template, 0600);
            return fd;
        }
        restore_name(template);
        if (errno != EEXIST) return -1;
    }
    return -1;
}

char *mkdtemp(char *template) {
    for (int i = 0; i < NAME_TRIES; i++) {
        if (fill_name(template) != 0) return NULL;
        if (mkdir(template, 0700) == 0) {
            chmod(template, 0700);
            return template;
        }
        restore_name(template);
        if (errno != EEXIST) return NULL;
    }
    return NULL;
}

char *mktemp(char *template) { return fill_name(template) == 0 ? template : strcpy(template, ""); }

char *tmpnam(char *name) {
    static char own[L_tmpnam];
    strcpy(name != NULL ? name : own, "/tmp/fXXXXXX");
    return mktemp(name != NULL ? name : own);
}

FILE *tmpfile(void) {
    char name[] = "/tmp/fXXXXXX";
    int fd = mkstemp(name);
    if (fd < 0) return NULL;
    unlink(name);
    return fdopen(fd, "w+");
}

/* Accounts: /etc/passwd and /etc/group. */

static int find_line(const char *path, const char *name, int column, long number, char *line, int room, char **fields, int count) {
    FILE *file = fopen(path, "r");
    int found = 0;
    while (file != NULL && !found && fgets(line, room, file) != NULL) {
        line[strcspn(line, "\n")] = 0;
        char *rest = line;
        int i = 0;
        for (; i < count && rest != NULL; i++) fields[i] = strsep(&rest, ":");
        found = i == count && (name != NULL ? strcmp(fields[0], name) == 0 : atol(fields[column]) == number);
    }
    if (file != NULL) fclose(file);
    return found;
}

static struct passwd *find_account(const char *name, uid_t uid) {
    static struct passwd account;
    static char line[1024];
    char *f[7];
    if (!find_line("/etc/passwd", name, 2, uid, line, sizeof line, f, 7)) return NULL;
    account = (struct passwd){f[0], f[1], atoi(f[2]), atoi(f[3]), f[4], f[5], f[6]};
    return &account;
}

struct passwd *getpwnam(const char *name) { return find_account(name, 0); }
struct passwd *getpwuid(uid_t uid) { return find_account(NULL, uid); }

static struct group *find_group(const char *name, gid_t gid) {
    static struct group group;
    static char line[1024];
    static char *members[1];
    char *f[4];
    if (!find_line("/etc/group", name, 2, gid, line, sizeof line, f, 4)) return NULL;
    group = (struct group){f[0], f[1], atoi(f[2]), members};
    return &group;
}

struct group *getgrnam(const char *name) { return find_group(name, 0); }
struct group *getgrgid(gid_t gid) { return find_group(NULL, gid); }

char *getlogin(void) {
    struct passwd *account = getpwuid(getuid());
    return account != NULL ? account->pw_name : NULL;
}
