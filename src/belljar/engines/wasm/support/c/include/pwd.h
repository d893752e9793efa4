#pragma once
#include <sys/types.h>
struct passwd {
    char *pw_name, *pw_passwd;
    uid_t pw_uid;
    gid_t pw_gid;
    char *pw_gecos, *pw_dir, *pw_shell;
};
#ifdef __cplusplus
extern "C" {
#endif
struct passwd *getpwnam(const char *);
struct passwd *getpwuid(uid_t);
#ifdef __cplusplus
}
#endif
