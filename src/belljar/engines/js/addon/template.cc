// The addon's door: makes the guest's isolate, then serves forks of this process on its control socket for ever.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <sstream>

#include "guest.h"
#include "seal.h"
#include "wire.h"

namespace belljar {

using namespace v8;

Wire wire;

namespace {

std::string layers, template_filter, run_filter;
int proc = -1;  // the real /proc, which nobody in an empty room could open

// A prefix's own /proc files: read again and again after it is sealed.
int maps_fd = -1, statm_fd = -1;

void OpenProc() {
  maps_fd = openat(proc, "self/maps", O_RDONLY | O_CLOEXEC);
  statm_fd = openat(proc, "self/statm", O_RDONLY | O_CLOEXEC);
}

std::string ReadAgain(int fd) {
  std::string text;
  char piece[16 << 10];
  lseek(fd, 0, SEEK_SET);
  for (ssize_t count; (count = read(fd, piece, sizeof piece)) > 0;) text.append(piece, count);
  return text;
}

// V8 asks that many of its mappings do not survive a fork. Ours must: run it after the last JavaScript before a fork.
void KeepMappings() {
  std::istringstream maps(ReadAgain(maps_fd));
  unsigned long from, to;
  for (std::string line; std::getline(maps, line);) {
    if (sscanf(line.c_str(), "%lx-%lx", &from, &to) == 2 && line.find("[v") == std::string::npos) {
      madvise(reinterpret_cast<void*>(from), to - from, MADV_DOFORK);
    }
  }
}

// Private writable memory of this process, in bytes: what RLIMIT_DATA counts.
size_t DataBytes() {
  size_t pages = 0;
  sscanf(ReadAgain(statm_fd).c_str(), "%*s %*s %*s %*s %*s %zu", &pages);
  return pages * sysconf(_SC_PAGESIZE);
}

struct Child {
  pid_t pid;  // 0 in the child
  int connection, pidfd;
};

// A child with a connection. False: it could not be made.
bool Fork(Child* made) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  pid_t parent = getpid(), pid = PlainFork();
  if (pid == 0) {
    // As in the parent's namespace: PDEATHSIG is sent to whoever still has this parent.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != parent) _exit(1);
    *made = {0, ends[1], -1};
    return true;
  }
  close(ends[1]);
  int pidfd = pid < 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  *made = {pid, ends[0], pidfd};
  return pidfd >= 0;
}

// "+pid" with the child's connection and pidfd, or "-reason".
void Answer(int control, bool made, const Child& child) {
  std::string text = made ? "+" + std::to_string(child.pid) : std::string("-fork failed: ") + strerror(errno);
  alignas(cmsghdr) char rights[CMSG_SPACE(2 * sizeof(int))] = {};
  iovec part{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (made) {
    int fds[2] = {child.connection, child.pidfd};
    *reinterpret_cast<cmsghdr*>(rights) = {CMSG_LEN(sizeof fds), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(reinterpret_cast<cmsghdr*>(rights)), fds, sizeof fds);
    message.msg_control = rights;
    message.msg_controllen = sizeof rights;
  }
  if (sendmsg(control, &message, MSG_NOSIGNAL) < 0) _exit(0);
  if (made) close(child.connection), close(child.pidfd);
}

[[noreturn]] void BeRun() {
  std::string held = layers + Seal({wire.fd()}, run_filter);
  Prove();
  guest.Reseed();
  if (!wire.Readable(0)) guest.Rehearse();
  wire.Send(Kind::kMessage, "{\"op\":\"ready\",\"layers\":\"" + held + "\"}");
  for (;;) {
    Frame frame = wire.Receive();
    if (frame.kind == Kind::kMessage) guest.Handle(frame.body);
  }
}

// A prefix: evaluates its code, then makes runs of itself whenever it is asked.
[[noreturn]] void BePrefix() {
  OpenProc();
  Seal({wire.fd(), maps_fd, statm_fd}, template_filter);
  guest.Reseed();
  Frame start = wire.Receive();
  if (!guest.Handle(start.body)) _exit(0);
  guest.Collect();
  guest.MarkMemory(DataBytes());
  KeepMappings();
  signal(SIGCHLD, SIG_IGN);
  for (;;) {
    Frame frame = wire.Receive();
    if (frame.kind != Kind::kFork) continue;
    Child child;
    bool made = Fork(&child);
    if (made && child.pid == 0) {
      wire.Open(child.connection);
      BeRun();
    }
    Answer(wire.fd(), made, child);
  }
}

// An engine program: its connection is to the sandbox's kernel, and nothing else is.
[[noreturn]] void BeProgram() {
  OpenProc();
  guest.MarkMemory(DataBytes());
  Seal({wire.fd()}, run_filter);
  Prove();
  guest.Reseed();
  guest.RunProgram();
  _exit(0);
}

// The template itself: a request (which only its child reads) in; "+pid" and two descriptors out.
[[noreturn]] void ServeForks(int control) {
  signal(SIGCHLD, SIG_IGN);
  std::string request(64 << 10, '\0');
  for (;;) {
    ssize_t count = recv(control, request.data(), request.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) _exit(0);
    Child child;
    bool made = Fork(&child);
    if (made && child.pid == 0) {
      close(control);
      wire.Open(child.connection);
      // [memory, ...] as MessagePack, of which the first says it all: a program has some, a prefix asks for none.
      request[1] == 0 ? BePrefix() : BeProgram();
    }
    Answer(control, made, child);
  }
}

// serve(control, {sources, strip, templateFilter, runFilter}): never returns.
void Serve(const FunctionCallbackInfo<Value>& info) {
  Isolate* node = info.GetIsolate();
  Local<Context> context = node->GetCurrentContext();
  int control = info[0].As<Int32>()->Value();
  Local<Object> options = info[1].As<Object>();
  auto bytes = [&](const char* name) {
    Local<ArrayBufferView> view = options->Get(context, Text(node, name)).ToLocalChecked().As<ArrayBufferView>();
    std::string copy(view->ByteLength(), '\0');
    view->CopyContents(copy.data(), copy.size());
    return copy;
  };
  template_filter = bytes("templateFilter");
  run_filter = bytes("runFilter");
  proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  guest.Make(node, options);
  guest.Collect();
  OpenProc();
  KeepMappings();
  // Node has threads, and a process with threads can't enter a user namespace: its fork has one. This one only waits.
  pid_t pid = PlainFork();
  if (pid != 0) {
    close(control);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  close(maps_fd), close(statm_fd);
  layers = EnterNamespaces();
  ServeForks(control);
}

void Init(Local<Object> exports, Local<Value>, Local<Context> context, void*) {
  exports->Set(context, Text(context->GetIsolate(), "serve"), Function::New(context, Serve).ToLocalChecked()).Check();
}

}  // namespace

}  // namespace belljar

NODE_MODULE_CONTEXT_AWARE(belljar, belljar::Init)
