/* The owner's trees: FUSE mounts whose devices go out to the owner, who serves them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent.h"

static int send_device(int device) {
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec byte = {.iov_base = "!", .iov_len = 1};
    struct msghdr message = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &device, sizeof device);
    return sendmsg(agent.descriptors, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -1;
}

/* [path, mode of the root, read-only]: the answer says how many devices were sent before this one. */
void mount_tree(int64_t id, struct reader *arguments) {
    static int64_t sent;
    const uint8_t *data;
    uint32_t length;
    int64_t mode;
    struct fuse_mount wanted = {0};
    read_bytes(arguments, &data, &length);
    read_int(arguments, &mode);
    if (!read_bool(arguments, &wanted.read_only))
        return;
    char *path = absolute_path(data, length);
    wanted.target = path;
    wanted.mode = (mode_t)mode;
    errno = EINVAL;
    int device = path == NULL ? -1 : mount_fuse(&wanted);
    if (device < 0 || send_device(device) != 0) {
        int error = errno;
        if (device >= 0)
            unmount_tree(path);
        send_failure(id, error, strerror(error), path);
    } else {
        struct writer w = open_reply(id, 16);
        put_int(&w, sent++);
        close_frame(&w);
    }
    if (device >= 0)
        close(device);
    free(path);
}

/* [path] */
void remove_tree(int64_t id, struct reader *arguments) {
    const uint8_t *data;
    uint32_t length;
    if (!read_bytes(arguments, &data, &length))
        return;
    char *path = absolute_path(data, length);
    if (path == NULL || unmount_tree(path) != 0)
        send_failure(id, path == NULL ? EINVAL : errno, strerror(path == NULL ? EINVAL : errno), path);
    else
        send_nil(id);
    free(path);
}
