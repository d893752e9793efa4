/* One look at /proc: every process, its parent, state and processor time. */

#include "agent.h"

#define PROCESSES_MAX (1 << 16)

static struct process *table;
static size_t count;

static bool read_stat(int proc, const char *name, struct process *process) {
    char path[32], text[1024];
    if ((size_t)snprintf(path, sizeof path, "%s/stat", name) >= sizeof path)
        return false;
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = 0;
    char *rest = strrchr(text, ')'); /* the name before it may hold anything */
    int parent;
    unsigned long user, system;
    long child_user, child_system;
    if (rest == NULL || sscanf(rest + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &process->state,
                               &parent, &user, &system, &child_user, &child_system) != 6)
        return false;
    process->pid = atoi(name);
    process->parent = parent;
    process->child_ticks = (uint64_t)child_user + (uint64_t)child_system;
    process->ticks = user + system + process->child_ticks;
    process->owner = NULL;
    return true;
}

size_t scan_processes(struct process **found) {
    if (table == NULL)
        table = allocate(PROCESSES_MAX * sizeof *table);
    count = 0;
    *found = table;
    DIR *proc = opendir("/proc");
    if (proc == NULL)
        return 0;
    for (struct dirent *entry; count < PROCESSES_MAX && (entry = readdir(proc)) != NULL;)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && read_stat(dirfd(proc), entry->d_name, &table[count]))
            count++; /* in the order of their numbers, by which find_process searches */
    closedir(proc);
    return count;
}

struct process *find_process(pid_t pid) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].pid == pid)
            return &table[middle];
        if (table[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
