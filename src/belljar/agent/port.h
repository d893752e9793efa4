/* The owner's connections to programs that listen inside. */
#ifndef BELLJAR_PORT_H
#define BELLJAR_PORT_H

#include <stdint.h>

struct guest;

/* A connection to a port of loopback: IPv4 first, as clients of `localhost` mostly do. -1 with errno. */
int connect_loopback(uint16_t port);

/* Connects the owner's socket to the program that listens on a port of loopback, by a process that copies between the
 * two until both have ended. 0, or an errno: ECONNREFUSED if nothing listens or nobody accepts, EINVAL for no port.
 * Takes `owner` and closes it either way. The process is a child like any other: whoever reaps it may ignore it. */
int open_port(int64_t port, int owner, const struct guest *guest);

#endif
