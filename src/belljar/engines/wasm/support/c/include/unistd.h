#pragma once
#include_next <unistd.h>
#ifdef __cplusplus
extern "C" {
#endif
pid_t fork(void);
pid_t vfork(void);
int execve(const char *, char *const[], char *const[]);
int execv(const char *, char *const[]);
int execvp(const char *, char *const[]);
int execl(const char *, const char *, ...);
int execlp(const char *, const char *, ...);
int dup(int);
int dup2(int, int);
int pipe(int[2]);
int chown(const char *, uid_t, gid_t);
int lchown(const char *, uid_t, gid_t);
int fchown(int, uid_t, gid_t);
pid_t getppid(void);
pid_t getpgrp(void);
uid_t getuid(void);
uid_t geteuid(void);
gid_t getgid(void);
gid_t getegid(void);
int gethostname(char *, size_t);
char *getlogin(void);
#ifdef __cplusplus
}
#endif
