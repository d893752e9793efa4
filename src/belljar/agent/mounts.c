/* The owner's trees: FUSE mounts whose devices go out to the owner, who serves them. */
#include "agent.h"
#include "vm.h"

#define READ_AHEAD "512" /* KiB */

/* Has the kernel read further ahead: by a port of a machine's a request costs as much as 100 KiB. Asks the owner for
 * nothing, who does not serve it yet. */
static void read_ahead(const char *path) {
    struct statx found;
    char name[64];
    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, 0, &found) != 0)
        return;
    snprintf(name, sizeof name, "/sys/class/bdi/%u:%u/read_ahead_kb", found.stx_dev_major, found.stx_dev_minor);
    int fd = open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && write(fd, READ_AHEAD, strlen(READ_AHEAD)) < 0)
        fprintf(stderr, "belljar: %s: %s\n", name, strerror(errno));
    if (fd >= 0)
        close(fd);
}

/* [path, mode of the root, read-only]: the answer says how many devices were sent before this one; in a machine, by
 * which port it is served. */
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
    if (device >= 0 && in_machine)
        read_ahead(path);
    int64_t number = device < 0 ? -1 : in_machine ? relay_device(device) : send_descriptors(agent.descriptors, &device, 1) == 0 ? sent++ : -1;
    if (number < 0) {
        int error = errno;
        if (device >= 0)
            unmount_tree(path);
        send_failure(id, error, strerror(error), path);
    } else {
        struct writer w = open_reply(id, 16);
        put_int(&w, number);
        close_frame(&w);
    }
    if (device >= 0 && !in_machine)
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
