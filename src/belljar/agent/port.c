/* Connections into the sandbox. See port.h. */
#include "port.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail.h"

#define PIECE (64 * 1024)
#define PATIENCE_MS 100 /* a connection on loopback is there at once, unless its server does not accept */

static int connect_to(const struct sockaddr *address, socklen_t length) {
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int error = connect(fd, address, length) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        socklen_t size = sizeof error;
        if (poll(&wait, 1, PATIENCE_MS) != 1)
            error = ECONNREFUSED;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
            error = errno;
    }
    if (error == 0)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

int connect_loopback(uint16_t port) {
    struct sockaddr_in four = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = connect_to((struct sockaddr *)&four, sizeof four);
    if (fd < 0 && errno == ECONNREFUSED)
        fd = connect_to((struct sockaddr *)&six, sizeof six);
    if (fd < 0 && errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
        errno = ECONNREFUSED;
    return fd;
}

/* One direction: `length` bytes from `at` are on their way. */
struct stream {
    int from, to;
    size_t at, length;
    bool ended; /* nothing more will come, and the other side was told */
    uint8_t piece[PIECE];
};

/* Reads or writes without waiting. False if the connection is broken. */
static bool move(struct stream *s) {
    if (s->length == 0) {
        ssize_t got = read(s->from, s->piece, PIECE);
        if (got < 0)
            return errno == EAGAIN || errno == EINTR;
        s->ended = got == 0;
        s->at = 0;
        s->length = (size_t)got;
        if (s->ended)
            shutdown(s->to, SHUT_WR);
    }
    while (s->length > 0) {
        ssize_t sent = send(s->to, s->piece + s->at, s->length, MSG_NOSIGNAL);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        s->at += (size_t)sent;
        s->length -= (size_t)sent;
    }
    return true;
}

static void copy_both_ways(int a, int b) {
    static struct stream streams[2];
    streams[0] = (struct stream){.from = a, .to = b};
    streams[1] = (struct stream){.from = b, .to = a};
    while (!streams[0].ended || !streams[1].ended) {
        struct pollfd ends[2] = {{.fd = a}, {.fd = b}};
        for (int i = 0; i < 2; i++)
            if (streams[i].length > 0)
                ends[!i].events |= POLLOUT;
            else if (!streams[i].ended)
                ends[i].events |= POLLIN;
        for (int i = 0; i < 2; i++)
            if (ends[i].events == 0 && !streams[i].ended)
                ends[i].fd = -1; /* it has to wait for the other, and its hang-up, too */
        if (poll(ends, 2, -1) < 0 && errno != EINTR)
            return;
        for (int i = 0; i < 2; i++)
            if (streams[i].ended ? (ends[i].revents & (POLLHUP | POLLERR)) != 0 : !move(&streams[i]))
                return; /* nobody is left to send to, or it broke */
    }
}

int open_port(int64_t port, int owner, const struct guest *guest) {
    int inside = port > 0 && port < 65536 ? connect_loopback((uint16_t)port) : (errno = EINVAL, -1);
    int error = inside < 0 ? errno : 0;
    pid_t child = error ? -1 : fork();
    if (!error && child < 0)
        error = errno;
    if (child == 0) {
        if (fcntl(owner, F_SETFL, O_NONBLOCK) != 0 || dup2(owner, 0) != 0 || dup2(inside, 1) != 1 ||
            syscall(SYS_close_range, 2, ~0u, 0) != 0 || enter_guest(guest) != 0)
            _exit(1);
        copy_both_ways(0, 1);
        _exit(0);
    }
    close(owner);
    if (inside >= 0)
        close(inside);
    return error;
}
