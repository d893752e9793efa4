// Uses a file system in every way that WASI knows, and says what came of it.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

int main(int argc, char **argv) {
  printf("%s %s %s\n", argv[1], argv[2], getenv("X"));
  FILE *file = fopen("a", "w+");
  printf("wrote %d\n", (int)fwrite("hello world", 1, 11, file));
  char buffer[64] = {0};
  long end = ftell(file);
  fseek(file, 6, SEEK_SET);
  fread(buffer, 1, 5, file);
  printf("tell %ld at 6: %s\n", end, buffer);
  struct stat about;
  fflush(file);
  fstat(fileno(file), &about);
  printf("size %d file %d\n", (int)about.st_size, S_ISREG(about.st_mode));
  fclose(file);
  int fd = open("a", O_WRONLY | O_APPEND);
  write(fd, "!", 1);
  close(fd);
  fd = open("a", O_RDWR);
  memset(buffer, 0, sizeof buffer);
  pread(fd, buffer, sizeof buffer - 1, 0);
  printf("append %s\n", buffer);
  ftruncate(fd, 5);
  fstat(fd, &about);
  printf("truncated to %d\n", (int)about.st_size);
  close(fd);
  rename("a", "c");
  rename("c", "a");
  printf("renamed %d\n", access("a", R_OK) == 0);
  printf("ENOENT %d\n", open("none", O_RDONLY) < 0 && errno == ENOENT);
  printf("EEXIST %d\n", open("a", O_WRONLY | O_CREAT | O_EXCL, 0644) < 0 && errno == EEXIST);
  printf("dir %d\n", mkdir("sub", 0755));
  symlink("a", "b");
  DIR *directory = opendir(".");
  char *names[8];
  int count = 0;
  for (struct dirent *entry; (entry = readdir(directory)) && count < 8;)
    if (entry->d_name[0] != '.') names[count++] = strdup(entry->d_name);
  closedir(directory);
  qsort(names, count, sizeof *names, compare);
  printf("entries");
  for (int i = 0; i < count; i++) printf(" %s", names[i]);
  memset(buffer, 0, sizeof buffer);
  readlink("b", buffer, sizeof buffer - 1);
  printf("\nlink b -> %s\n", buffer);
  close(open("sub/x", O_WRONLY | O_CREAT, 0644));
  printf("rmdir ENOTEMPTY %d\n", rmdir("sub") < 0 && errno == ENOTEMPTY);
  unlink("sub/x");
  rmdir("sub");
  struct timespec times[2] = {{1000000000, 0}, {1000000000, 0}};
  utimensat(AT_FDCWD, "a", times, 0);
  stat("a", &about);
  printf("times %ld\n", (long)about.st_mtim.tv_sec);
  struct timespec before, after, span = {0, 20000000};
  clock_gettime(CLOCK_MONOTONIC, &before);
  nanosleep(&span, NULL);
  clock_gettime(CLOCK_MONOTONIC, &after);
  printf("slept %d\n", (after.tv_sec - before.tv_sec) * 1e9 + (after.tv_nsec - before.tv_nsec) >= 15e6);
  unsigned char random[16] = {0};
  getentropy(random, sizeof random);
  int bits = 0;
  for (int i = 0; i < 16; i++) bits |= random[i];
  printf("random %d\n", bits != 0);
  struct pollfd ready = {.fd = 1, .events = POLLOUT};
  printf("pipe %d\n", poll(&ready, 1, 1000));
  return 5;
}
