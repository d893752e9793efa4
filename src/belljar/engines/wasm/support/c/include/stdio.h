#pragma once
#define tmpfile __wasi_tmpfile
#define tmpnam __wasi_tmpnam
#include_next <stdio.h>
#undef tmpfile
#undef tmpnam
#define L_tmpnam 20
#define TMP_MAX 10000
#define P_tmpdir "/tmp"
#ifdef __cplusplus
extern "C" {
#endif
FILE *popen(const char *, const char *);
int pclose(FILE *);
FILE *tmpfile(void);
char *tmpnam(char *);
#ifdef __cplusplus
}
#endif
