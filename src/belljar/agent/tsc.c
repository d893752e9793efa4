/* The rate of this processor's time-stamp counter. Processors that QEMU emulates read the same counter. */
#include "agent.h"
#include "vm.h"

#define TRIES 32
#define PAUSE 100000 /* microseconds: a reading is off by less than one of them, so the rate by less than 0.001 % */

#ifdef __x86_64__
struct reading {
    double seconds;
    uint64_t ticks;
};

/* Both clocks at the same moment: of several tries the one that was interrupted least. */
static struct reading read_clocks(void) {
    struct reading best = {0};
    double least = 1e9;
    for (int i = 0; i < TRIES; i++) {
        double before = now();
        uint64_t ticks = __builtin_ia32_rdtsc();
        double after = now();
        if (after - before < least) {
            least = after - before;
            best = (struct reading){(before + after) / 2, ticks};
        }
    }
    return best;
}

int print_tsc_rate(void) {
    struct reading first = read_clocks();
    usleep(PAUSE);
    struct reading last = read_clocks();
    double rate = (double)(last.ticks - first.ticks) / (last.seconds - first.seconds);
    return printf("%.0f0\n", rate / 10000) < 0;
}
#else
int print_tsc_rate(void) {
    return 2;
}
#endif
