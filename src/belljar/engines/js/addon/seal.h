// Shuts a process in, as `belljar.lockdown` does for workers; rules and filters are made there and passed in.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

namespace belljar {

constexpr int kNobody = 65534;
constexpr rlim_t kTasksMax = 8192;  // as TASKS_MAX of lockdown/seal_host.py
// V8 reserves some ten gigabytes, and as much again for each WebAssembly memory; without a limit the kernel's page tables
// would have none.
constexpr rlim_t kAddressSpace = rlim_t{128} << 30;
constexpr int kLandlockCreate = 444, kLandlockRestrict = 446;

[[noreturn]] inline void Fail(const char* what) {
  fprintf(stderr, "the process could not be sealed: %s: %s\n", what, strerror(errno));
  _exit(9);
}

inline bool WriteFile(const char* path, const std::string& text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool done = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return done;
}

inline bool EmptyRoot() {
  constexpr unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  return unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", "/proc", "tmpfs", flags, "size=4k,mode=0555") == 0 && chdir("/proc") == 0 &&
         syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0 && chdir("/") == 0 &&
         mount(nullptr, "/", nullptr, flags | MS_RDONLY | MS_REMOUNT, nullptr) == 0;
}

// No right that the rules name is left: all of them.
inline bool Landlock(std::string_view rules) {
  long fd = rules.empty() ? -1 : syscall(kLandlockCreate, rules.data(), rules.size(), 0);
  if (fd < 0) return false;
  bool held = syscall(kLandlockRestrict, fd, 0) == 0;
  close(static_cast<int>(fd));
  return held;
}

inline void Limit(__rlimit_resource what, rlim_t amount) {
  rlimit now;
  getrlimit(what, &now);
  rlim_t limit = std::min(amount, now.rlim_max);
  rlimit wanted{limit, limit};
  if (setrlimit(what, &wanted) != 0) Fail("setrlimit");
}

// Becomes nobody if this process is root, as far as that is permitted (lockdown/privileges_host.py). False: it is root.
inline bool DropRoot() {
  if (geteuid() != 0) return true;
  setgroups(0, nullptr);
  if (setresgid(kNobody, kNobody, kNobody) != 0 || setresuid(kNobody, kNobody, kNobody) != 0) return geteuid() != 0;
  return true;
}

// Whether uid 0 here is uid 0 outside this user namespace too; true if it can't be told.
inline bool RootIsMapped() {
  FILE* file = fopen("/proc/self/uid_map", "re");
  if (file == nullptr) return true;
  long long inside, outside, count;
  bool mapped = false, read = false;
  while (fscanf(file, "%lld %lld %lld", &inside, &outside, &count) == 3) {
    read = true;
    mapped = mapped || (inside == 0 && outside == 0);
  }
  fclose(file);
  return mapped || !read;
}

// Clears every capability set, for good. Ends the process if that fails: it must never serve with one.
inline void DropCapabilities() {
  for (int number = 0; number < 64 && prctl(PR_CAPBSET_DROP, number, 0, 0, 0) == 0; number++) {
  }
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {}, left[2] = {};
  if (syscall(SYS_capset, &header, none) != 0 || syscall(SYS_capget, &header, left) != 0) Fail("capabilities");
  if (memcmp(none, left, sizeof none) != 0) Fail("capabilities are left");
}

// Enters as many empty namespaces as this machine permits. Gives the layers that hold.
inline std::string EnterNamespaces() {
  bool is_nobody = DropRoot() || !RootIsMapped();
  std::string uid = std::to_string(geteuid()), gid = std::to_string(getegid()), nobody = std::to_string(kNobody);
  // A process that changed its ids is not dumpable, and then may not write its own uid_map.
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  if (unshare(CLONE_NEWUSER) != 0) return "";
  std::string held;
  bool mapped = WriteFile("/proc/self/setgroups", "deny") &&
                WriteFile("/proc/self/uid_map", nobody + " " + uid + " 1") &&
                WriteFile("/proc/self/gid_map", nobody + " " + gid + " 1");
  if (mapped && is_nobody) held += "user ";
  if (unshare(CLONE_NEWNET) == 0) held += "network ";
  if (unshare(CLONE_NEWIPC) == 0) held += "ipc ";
  unshare(CLONE_NEWUTS);
  if (EmptyRoot()) held += "mount ";
  return held;
}

// For the template, once, when all files are read: empty namespaces for all its children, and no privileges.
inline std::string GiveUpPrivileges() {
  std::string held = EnterNamespaces();
  DropCapabilities();
  return held;
}

inline int Filter(unsigned flags, std::string_view filter) {
  sock_fprog program{static_cast<unsigned short>(filter.size() / sizeof(sock_filter)),
                     reinterpret_cast<sock_filter*>(const_cast<char*>(filter.data()))};
  return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

// Sends some text with descriptors. False: the other side is gone.
inline bool SendRights(int socket, std::string_view text, const int* fds, size_t count) {
  alignas(cmsghdr) char rights[CMSG_SPACE(3 * sizeof(int))] = {};
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (count > 0) {
    *reinterpret_cast<cmsghdr*>(rights) = {CMSG_LEN(count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(reinterpret_cast<cmsghdr*>(rights)), fds, count * sizeof(int));
    message.msg_control = rights;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) >= 0;
}

// Has the kernel ask about each fork, on a descriptor that goes to the owner over `control`.
inline void AskAboutForks(int control, std::string_view filter) {
  constexpr unsigned kNewListener = 8, kWaitKillable = 32;
  int listener = Filter(kNewListener | kWaitKillable, filter);
  if (listener < 0) listener = Filter(kNewListener, filter);
  if (listener < 0) return;  // then it can't fork, and is not copied
  SendRights(control, std::to_string(getpid()), &listener, 1);
  close(listener);
}

// For a forked process, before anything of a guest: no descriptors but `keep`, limits, Landlock, the filter. Ends the
// process if a layer that must hold does not. Gives the layers that hold. If the owner is to answer for its forks,
// `control` leads there, and `fork_filter` asks.
inline std::string Seal(std::set<int> keep, std::string_view rules, std::string_view filter, int control = -1,
                        std::string_view fork_filter = {}) {
  setsid();
  signal(SIGPIPE, SIG_IGN);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
  signal(SIGCHLD, SIG_IGN);  // it may not wait for its copies
  unsigned low = 0;
  for (int fd : keep) {
    if (static_cast<unsigned>(fd) > low) syscall(SYS_close_range, low, fd - 1, 0);
    low = fd + 1;
  }
  syscall(SYS_close_range, low, ~0u, 0);
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_FSIZE, 0);
  Limit(RLIMIT_MEMLOCK, 0);
  Limit(RLIMIT_NPROC, kTasksMax);
  Limit(RLIMIT_AS, kAddressSpace);
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) Fail("prctl");
  std::string held = "rlimits no_new_privs ";
  if (Landlock(rules)) held += "landlock ";
  if (control >= 0) AskAboutForks(control, fork_filter);
  // Only now: who sends a descriptor must be allowed more than all processes of this user have on their way.
  Limit(RLIMIT_NOFILE, 32);
  if (Filter(SECCOMP_FILTER_FLAG_TSYNC, filter) != 0) Fail("seccomp");
  return held + "seccomp";
}

// fork(2) without the C library's handlers: libuv's would close descriptors that by now may be ours.
inline int PlainFork() { return static_cast<int>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }

// The same as the C library would ask for it, which is what the owner answers for (`FORK_FLAGS` of lockdown/bpf.py).
inline int JudgedFork() {
  static int thread;
  constexpr long kFlags = 0x00200000 | 0x01000000 | SIGCHLD;
  return static_cast<int>(syscall(SYS_clone, kFlags, 0, 0, &thread, &thread));
}

// Tries what must not work, and ends the process if it does.
inline void Prove() {
  bool holds = open("/", O_RDONLY) < 0 && socket(AF_INET, SOCK_STREAM, 0) < 0 && kill(1, 0) < 0 && PlainFork() < 0;
  if (!holds) _exit(9);
}

}  // namespace belljar
