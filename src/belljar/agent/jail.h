/* The walls: from a plan to a process that serves as pid 1 of its namespaces, and what a guest process puts on. */
#ifndef BELLJAR_JAIL_H
#define BELLJAR_JAIL_H

#include <sys/types.h>

#include "wire.h"

/* What guest processes are made of: the plan's `guest`. jail.c fills in and reads the rest of it. */
struct guest {
    uid_t uid;
    gid_t gid;
};

/* The launcher: execute a plan and, in the process that becomes pid 1, serve. Gives the exit status. */
int run_plan(struct reader *plan, int connection, int descriptors);

/* In a forked child: groups, gid and uid of the guest, nothing else. -1 with errno. */
int become_guest(const struct guest *guest);

/* In a forked child, just before exec: become_guest and every wall around a guest process. -1 with errno. */
int enter_guest(const struct guest *guest);

#endif
