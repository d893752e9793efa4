/* The conversation: answers the owner's frames until the connection ends. */
#ifndef BELLJAR_SERVE_H
#define BELLJAR_SERVE_H

struct guest;

/* Answers what comes on `connection` until its end; gives the exit status. `descriptors` is a socket by which open
 * files go out, or -1. The Ready was sent before. */
int serve(int connection, int descriptors, struct guest *guest);

#endif
