/* The walls: from a plan to a process that serves as pid 1 of its namespaces, and what a guest process puts on. */
#ifndef BELLJAR_JAIL_H
#define BELLJAR_JAIL_H

#include <sys/types.h>

#include "wire.h"

#define GROUPS_MAX 32
#define RLIMITS_MAX 16

/* Guest processes: the plan's `guest`. Without `walled` only the ids count. */
struct guest {
    uid_t uid;
    gid_t gid;
    bool walled, sets_groups;
    gid_t groups[GROUPS_MAX];
    uint32_t group_count;
    struct {
        int resource;
        uint64_t limit;
    } rlimits[RLIMITS_MAX];
    uint32_t rlimit_count;
    uint64_t capabilities;
    const uint8_t *filter;
    uint32_t filter_length;
};

/* The launcher: execute a plan and, in the process that becomes pid 1, serve. Gives the exit status. */
int run_plan(struct reader *plan, int connection, int descriptors);

/* A FUSE file system to mount: `mode` is that of its root. */
struct fuse_mount {
    const char *target;
    mode_t mode;
    bool read_only;
};

/* In pid 1: mount it; gives the device on which it is served, or -1 with errno. */
int mount_fuse(const struct fuse_mount *wanted);
/* In pid 1: take away what is mounted on a path. -1 with errno. */
int unmount_tree(const char *target);

/* In a forked child: groups, gid and uid of the guest, nothing else. -1 with errno. */
int become_guest(const struct guest *guest);

/* In a forked child, just before exec: become_guest and every wall around a guest process. -1 with errno. */
int enter_guest(const struct guest *guest);

#endif
