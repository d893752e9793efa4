#pragma once
#include <sys/types.h>
struct group {
    char *gr_name, *gr_passwd;
    gid_t gr_gid;
    char **gr_mem;
};
#ifdef __cplusplus
extern "C" {
#endif
struct group *getgrnam(const char *);
struct group *getgrgid(gid_t);
#ifdef __cplusplus
}
#endif
