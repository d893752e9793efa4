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

std::string layers, template_filter, run_filter, session_filter, fork_filter;
int proc = -1;  // the real /proc, which nobody in an empty room could open

std::string Read(const char* path) {
  std::string text;
  char piece[16 << 10];
  int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
  for (ssize_t count; (count = read(fd, piece, sizeof piece)) > 0;) text.append(piece, count);
  close(fd);
  return text;
}

// Where the kernel's own mappings are (vvar, vdso), which take no advice; the same in all our processes.
unsigned long kernels_from = 0, kernels_to = 0;

void FindKernelsMappings() {
  std::istringstream maps(Read("self/maps"));
  unsigned long from, to;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("[v") == std::string::npos || line.find("[vsyscall") != std::string::npos) continue;
    if (sscanf(line.c_str(), "%lx-%lx", &from, &to) != 2) continue;
    if (kernels_from == 0 || from < kernels_from) kernels_from = from;
    kernels_to = std::max(kernels_to, to);
  }
}

// V8 asks that many of its mappings do not survive a fork. Ours must: run it after the last JavaScript before a fork.
// Advice for a range is taken by all the mappings in it; that not all of it is mapped is an error, and none.
void KeepMappings() {
  constexpr unsigned long kEnd = 1ul << 48;
  madvise(nullptr, kernels_from > 0 ? kernels_from : kEnd, MADV_DOFORK);
  if (kernels_to > 0) madvise(reinterpret_cast<void*>(kernels_to), kEnd - kernels_to, MADV_DOFORK);
}

// Private writable memory of a process, in bytes: what RLIMIT_DATA counts. Of a prefix: read after it is sealed.
int statm_fd = -1;

void OpenStatm() { statm_fd = openat(proc, "self/statm", O_RDONLY | O_CLOEXEC); }

size_t DataBytes() {
  char text[256] = {};
  size_t pages = 0;
  lseek(statm_fd, 0, SEEK_SET);
  if (read(statm_fd, text, sizeof text - 1) > 0) sscanf(text, "%*s %*s %*s %*s %*s %zu", &pages);
  return pages * sysconf(_SC_PAGESIZE);
}

struct Child {
  pid_t pid;  // 0 in the child
  int connection, pidfd, control;  // the last only of a session
};

// A child with a connection. False: it could not be made.
bool Fork(Child* made, bool session = false) {
  int ends[2], controls[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  if (session && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, controls) != 0) return false;
  pid_t parent = getpid(), pid = PlainFork();
  if (pid == 0) {
    // As in the parent's namespace: PDEATHSIG is sent to whoever still has this parent.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != parent) _exit(1);
    *made = {0, ends[1], -1, controls[1]};
    return true;
  }
  close(ends[1]);
  if (session) close(controls[1]);
  int pidfd = pid < 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  *made = {pid, ends[0], pidfd, controls[0]};
  return pidfd >= 0;
}

// "+pid" with the child's connection and pidfd (and its control), or "-reason".
void Answer(int control, bool made, const Child& child) {
  std::string text = made ? "+" + std::to_string(child.pid) : std::string("-fork failed: ") + strerror(errno);
  int fds[3] = {child.connection, child.pidfd, child.control};
  if (!SendRights(control, text, fds, !made ? 0 : child.control < 0 ? 2 : 3)) _exit(0);
  if (!made) return;
  close(child.connection), close(child.pidfd);
  if (child.control >= 0) close(child.control);
}

// A session, asked over its control socket for a copy of itself (belljar/engines/copies_host.py): it takes the sockets
// that came along. Gives the control socket to wait on from now on.
int Copy(int control) {
  char text[64];
  alignas(cmsghdr) char rights[CMSG_SPACE(2 * sizeof(int))] = {};
  iovec part{text, sizeof text};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = rights;
  message.msg_controllen = sizeof rights;
  ssize_t count = recvmsg(control, &message, 0);
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (count < 0 && errno == EINTR) return control;
  if (count <= 0 || head == nullptr || head->cmsg_len != CMSG_LEN(2 * sizeof(int))) _exit(0);  // the owner let go
  int fds[2];
  memcpy(fds, CMSG_DATA(head), sizeof fds);
  KeepMappings();
  pid_t pid = JudgedFork();
  if (pid != 0) {
    std::string failed = std::string("-") + strerror(errno);
    if (pid < 0) send(control, failed.data(), failed.size(), MSG_NOSIGNAL);
    close(fds[0]), close(fds[1]);
    return control;
  }
  close(wire.fd()), close(control);
  wire.Open(fds[0]);
  guest.Redraw();
  if (send(fds[1], "!", 1, MSG_NOSIGNAL) != 1) _exit(0);
  return fds[1];
}

// A session runs one thing after another, and is copied between them.
[[noreturn]] void BeSession(int control) {
  std::string held = layers + Seal({wire.fd(), control}, session_filter, control, fork_filter);
  Prove();
  signal(SIGCHLD, SIG_IGN);  // it may not wait for its copies
  guest.Reseed();
  if (!wire.Readable(0)) guest.Rehearse();
  wire.Send(Kind::kMessage, "{\"op\":\"ready\",\"layers\":\"" + held + "\"}");
  for (;;) {
    if (!wire.Wait(control)) {
      control = Copy(control);
      continue;
    }
    Frame frame = wire.Receive();
    if (frame.kind == Kind::kMessage) guest.Handle(frame.body);
  }
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
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);  // for copies whose origin has ended
  OpenStatm();
  Seal({wire.fd(), statm_fd}, template_filter);
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
    bool session = !frame.body.empty(), made = Fork(&child, session);
    if (made && child.pid == 0) {
      wire.Open(child.connection);
      session ? BeSession(child.control) : BeRun();
    }
    Answer(wire.fd(), made, child);
  }
}

// An engine program: its connection is to the sandbox's kernel, and nothing else is.
[[noreturn]] void BeProgram() {
  OpenStatm();
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

// serve(control, {sources, strip, templateFilter, runFilter, sessionFilter, forkFilter}): never returns.
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
  session_filter = bytes("sessionFilter");
  fork_filter = bytes("forkFilter");
  proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  guest.Make(node, options);
  guest.Collect();
  FindKernelsMappings();
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
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  layers = EnterNamespaces();
  ServeForks(control);
}

void Init(Local<Object> exports, Local<Value>, Local<Context> context, void*) {
  exports->Set(context, Text(context->GetIsolate(), "serve"), Function::New(context, Serve).ToLocalChecked()).Check();
}

}  // namespace

}  // namespace belljar

NODE_MODULE_CONTEXT_AWARE(belljar, belljar::Init)
