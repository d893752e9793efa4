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

/* In a machine's first program: the steps and the guest of a plan, then serve. Gives the exit status, or -1. */
int run_machine_plan(struct reader *plan, int connection);
/* There, later: further steps. -1 once the owner was told which failed. */
int run_machine_steps(struct reader *steps);

/* For steps in other files: a string that a system call takes, in one of four places; a number. */
const char *step_text(struct reader *r, int slot);
int64_t step_number(struct reader *r);

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

/* Sends one byte, and descriptors with it, without waiting. -1 with errno. */
int send_descriptors(int socket, const int *fds, uint32_t count);

/* In a forked child: groups, gid and uid of the guest, nothing else. -1 with errno. */
int become_guest(const struct guest *guest);

/* In a forked child, just before exec: become_guest and every wall around a guest process. -1 with errno. */
int enter_guest(const struct guest *guest);

#endif
