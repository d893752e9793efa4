/* Pid 1 of a virtual machine: what is done before, and beside, what it does as pid 1 of namespaces. */
#ifndef BELLJAR_VM_H
#define BELLJAR_VM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire.h"

struct jail;

/* The machine's first program: sets the devices up, takes a plan from the port "control" and serves there. */
int vm_main(void);

/* Has a mounted FUSE device served over a port of the machine's. The port's number, or -1 with errno. Takes `device`
 * and closes it either way. */
int relay_device(int device);
/* [port]: connects the owner to a program that listens on loopback; the answer is the number of a port of the machine's. */
void connect_port(int64_t id, struct reader *arguments);
/* The same for the machine's files: [names of the system's own directories] for the former (tree.c). */
void open_tree_port(int64_t id, struct reader *arguments, void (*serve)(struct reader *arguments, int port));
void send_tree(struct reader *arguments, int port);
void take_tree(struct reader *arguments, int port);
/* All programs wait, but for relays, until they are continued. */
void stop_others(void);
void continue_others(void);
extern int layer; /* the directory of changes that lies over the disk; -1: there is none */
bool reaped_relay(pid_t pid);
bool is_relay(pid_t pid);
/* In a branch: ends all relays and drops what is under way, so that every port is free. */
void reset_ports(void);
extern bool in_machine;

/* Prints the rate of the processor's time-stamp counter in kHz, in steps of 10 (tsc.c). */
int print_tsc_rate(void);

/* Steps of plans (native/plan.py has the others). */
int seed_random(struct reader *r, struct jail *jail);    /* bytes */
int set_clock(struct reader *r, struct jail *jail);      /* nanoseconds since 1970 */
int switch_root(struct reader *r, struct jail *jail);    /* path: the new root, in place of the first one */
int open_tap(struct reader *r, struct jail *jail);       /* path of the device, name, descriptor that it gets */

#endif
