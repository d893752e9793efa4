#pragma once
#include_next <sys/stat.h>
#ifdef __cplusplus
extern "C" {
#endif
int chmod(const char *, mode_t) __asm__("belljar_chmod"); /* wasi-libc has one that does nothing */
int fchmod(int, mode_t) __asm__("belljar_fchmod");
mode_t umask(mode_t);
int mkfifo(const char *, mode_t);
#ifdef __cplusplus
}
#endif
