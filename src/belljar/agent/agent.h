/* Shared by the files that serve: the queue of frames to the owner, what Boot said, and the parts of the loop. */
#ifndef BELLJAR_AGENT_H
#define BELLJAR_AGENT_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jail.h"
#include "wire.h"

#define WINDOW (4 << 20) /* flow-control window of one stream, as in abi/wire.py */
#define BACKLOG (1 << 20) /* unsent bytes at which nothing more is read for the owner */

/* Bytes from `start` to `end` of an allocation of `room`. */
struct buffer {
    uint8_t *data;
    size_t start, end, room;
};

struct limits {
    double wall_seconds, cpu_seconds, output_bytes, processes, open_files;
};

extern struct agent {
    struct guest *guest;
    int descriptors;     /* a socket by which open files go out, or -1 */
    int program;         /* this program's file, which can't be opened once the root is another */
    char directory[256]; /* of the owner's commands and their socket */
    struct buffer out;   /* to the owner */
    size_t held;         /* bytes of the owner's that wait for a program or a call */
    uint8_t *boot;       /* the Boot message; the next point into it */
    struct reader env;
    const uint8_t *cwd;
    uint32_t cwd_length;
    struct limits limits;
    bool has_tools;
    double began;
} agent;

double now(void);
void *allocate(size_t size); /* ends the agent if there is no memory */
/* Room for so many more bytes behind `end`. */
void reserve(struct buffer *buffer, size_t more);
void release(struct buffer *buffer);

/* A frame at the end of the queue to the owner, of at most so many bytes. */
struct writer open_frame(size_t most);
void close_frame(struct writer *w);
bool may_send(void); /* whether less than BACKLOG is unsent */
void send_failure(int64_t id, int error, const char *message, const char *path);
void send_nil(int64_t id);
void send_bool(int64_t id, bool value);
/* The start of a Reply, whose value follows. */
struct writer open_reply(int64_t id, size_t most);

/* The descriptors that the loop waits for, and who is told. */
typedef void on_ready(void *who, int which, short events);
void wait_for(int fd, short events, on_ready *tell, void *who, int which);
void wake_at(double time);

/* In a forked child: default signals, and no descriptors from 3 on but these. */
void leave_parent(const int *kept, int count);

/* exec.c: started programs. */
int start_job(struct reader *r, uint32_t fields); /* -1: a message that makes no sense */
void job_input(int64_t id, int64_t stream, const uint8_t *data, uint32_t length, int64_t call);
void job_credit(int64_t id, int64_t stream, int64_t count);
void job_signal(int64_t id, int64_t number, bool all);
void job_resize(int64_t id, int64_t rows, int64_t columns);
void job_renew(int64_t id, struct reader *limits);
bool read_limits(struct reader *r, struct limits *limits, bool raise); /* else only what is less counts */
void jobs_wait(void);    /* wait_for what they need */
void jobs_advance(void); /* do what is due */
/* In a branch: nobody waits for any job but those of these numbers. They go on, and what they say is dropped. */
void forget_jobs(struct reader kept);
uint32_t count_processes(void);
void kill_everything(void); /* at the end, where the kernel does not do it */

/* helpers.c: calls that may block, each in a child of its own. */
void run_helper(int64_t id, const uint8_t *name, uint32_t length, struct reader arguments, int descriptor);
void helpers_wait(void);
bool reaped_helper(pid_t pid);
bool is_helper(pid_t pid);
bool watch_is_opened(void); /* what follows waits for it, so that it misses nothing */
void next_changes(int64_t id, int64_t watch);
void end_watch(int64_t id, int64_t watch);
void forget_calls(void); /* in a branch: nobody waits for them */

/* In such a child: each sends the answer. */
bool call_files(int64_t id, const uint8_t *name, uint32_t length, struct reader *arguments); /* false: no such call */
void watch_files(int64_t id, int64_t number, struct reader *arguments, int channel);
void flush_answer(int channel);
char *absolute_path(const uint8_t *data, uint32_t length); /* NULL: none that a system call could take */

/* mounts.c: the owner's trees. */
void mount_tree(int64_t id, struct reader *arguments);
void remove_tree(int64_t id, struct reader *arguments);

/* tools.c: the owner's commands. */
void add_tool(int64_t id, struct reader *arguments);
void take_answer(struct reader *r, uint32_t fields);
void tools_wait(void);
void forget_callers(void); /* in a branch: whoever waits for the owner's answer is hung up on */
int tool_main(int argc, char **argv);

/* procs.c: one look at /proc. */
struct process {
    pid_t pid, parent;
    char state;
    uint64_t ticks; /* processor time, with that of children that were waited for */
    uint64_t child_ticks;
    void *owner; /* for its users */
};
size_t scan_processes(struct process **found);
struct process *find_process(pid_t pid);

#endif
