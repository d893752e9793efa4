/* belljar-agent: pid 1 of a sandbox of real programs, its launcher, and the owner's commands inside.
 *
 * belljar-agent         the launcher: takes a plan from descriptor 3 and executes it; 4 is where descriptors go out
 * belljar-agent serve DIRECTORY   answers on descriptor 3 as the user that runs it, without walls: for tests
 * belljar-agent tsc     prints the rate of the processor's time-stamp counter in kHz
 * /init, as pid 1       the first program of a virtual machine (vm.c)
 * NAME                  a link to it: the owner's command of that name (tools.c)
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "jail.h"
#include "serve.h"
#include "vm.h"
#include "wire.h"

#define CONNECTION 3
#define DESCRIPTORS 4
#define PLAN_MAX (4u << 20)

static int launch(void) {
    uint8_t *plan = malloc(PLAN_MAX);
    if (plan == NULL)
        return 1;
    ssize_t length = receive_frame(CONNECTION, plan, PLAN_MAX);
    if (length <= 0)
        return 1;
    fcntl(CONNECTION, F_SETFD, FD_CLOEXEC);
    fcntl(DESCRIPTORS, F_SETFD, FD_CLOEXEC);
    struct reader reader = reader_of(plan, (size_t)length);
    return run_plan(&reader, CONNECTION, DESCRIPTORS);
}

int main(int argc, char **argv) {
    if (getpid() == 1 && strcmp(argv[0], "/init") == 0)
        return vm_main();
    const char *name = strrchr(argv[0], '/') == NULL ? argv[0] : strrchr(argv[0], '/') + 1;
    if (strncmp(name, "belljar-agent", 13) != 0)
        return tool_main(argc, argv);
    if (argc == 1)
        strncpy(argv[0], "belljar-agent", strlen(argv[0])); /* guests see it: not the path on the host */
    signal(SIGPIPE, SIG_IGN);
    agent.program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (argc == 3 && strcmp(argv[1], "serve") == 0) {
        struct guest guest = {.uid = getuid(), .gid = getgid()};
        fcntl(CONNECTION, F_SETFD, FD_CLOEXEC);
        snprintf(agent.directory, sizeof agent.directory, "%s", argv[2]);
        if (send_ready(CONNECTION, NULL, 0) != 0)
            return 1;
        return serve(CONNECTION, -1, &guest);
    }
    if (argc == 2 && strcmp(argv[1], "tsc") == 0)
        return print_tsc_rate();
    return argc == 1 ? launch() : 2;
}
