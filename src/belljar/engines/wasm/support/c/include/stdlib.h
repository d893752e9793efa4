#pragma once
#include_next <stdlib.h>
#ifdef __cplusplus
extern "C" {
#endif
int system(const char *);
int mkstemp(char *);
char *mkdtemp(char *);
char *mktemp(char *);
#ifdef __cplusplus
}
#endif
