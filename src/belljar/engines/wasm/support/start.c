/* Linked into every C and C++ command that belljar builds. WASI has no working directory: a program begins in /. The
   process that runs it says in PWD where it was called. */

#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void enter_working_directory(void) {
    const char *directory = getenv("PWD");
    if (directory != NULL && chdir(directory) != 0) unsetenv("PWD");
}
