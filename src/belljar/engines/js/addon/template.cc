// The addon's entry point: makes the guest's isolate, then serves forks of this process on its control socket for ever.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "guest.h"
#include "seal.h"
#include "wire.h"

namespace belljar {

using namespace v8;

Wire wire;

namespace {

std::string layers, rules, run_filter, session_filter, fork_filter;
int proc = -1;  // the real /proc, which nobody in an empty room could open

// V8 asks that many of its mappings do not survive a fork. Ours must: run it after the last JavaScript before a fork.
// Advice for a range is taken by all the mappings in it; that not all of it is mapped is an error, and none.
void KeepMappings() {
  // The walk ends at the kernel's own pages, which take no advice and lie below the vDSO.
  constexpr uintptr_t kLowest = 1 << 16, kHighest = uintptr_t{1} << 48;
  uintptr_t vdso = std::max(getauxval(AT_SYSINFO_EHDR), kLowest);
  madvise(reinterpret_cast<void*>(kLowest), vdso - kLowest, MADV_DOFORK);
  madvise(reinterpret_cast<void*>(vdso), kHighest - vdso, MADV_DOFORK);
}

// Private writable memory of a process, in bytes: what RLIMIT_DATA counts. Of a prefix: read after it is sealed.
int statm_fd = -1;

size_t DataBytes() {
  if (statm_fd < 0) statm_fd = openat(proc, "self/statm", O_RDONLY | O_CLOEXEC);
  char text[256] = {};
  size_t pages = 0;
  lseek(statm_fd, 0, SEEK_SET);
  if (read(statm_fd, text, sizeof text - 1) > 0) sscanf(text, "%*s %*s %*s %*s %*s %zu", &pages);
  return pages * sysconf(_SC_PAGESIZE);
}

// Ends the template, and before it whoever descends from it: all of them were its owner's, who is gone. An orphan becomes
// its child when its parent has ended, so until there are no more.
[[noreturn]] void EndAll() {
  signal(SIGCHLD, SIG_DFL);  // from now on a pid in the list is a child's until it is waited for
  std::string name = "self/task/" + std::to_string(getpid()) + "/children";
  for (int round = 0; round < 1000; round++) {
    char text[4096] = {};
    int fd = openat(proc, name.c_str(), O_RDONLY | O_CLOEXEC);
    ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    close(fd);
    if (count <= 0) break;
    text[sizeof text - 1] = 0;
    if (count == sizeof text - 1) *strrchr(text, ' ') = 0;  // the last number may be cut
    char* rest = text;
    while (pid_t pid = static_cast<pid_t>(strtol(rest, &rest, 10))) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  _exit(0);
}

struct Child {
  pid_t pid;  // 0 in the child
  int connection, pidfd, control;  // the last only of a prefix
};

// A child of the template with a connection. False: it could not be made.
bool Fork(Child* made, bool prefix) {
  int ends[2], controls[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  if (prefix && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, controls) != 0) return false;
  pid_t parent = getpid(), pid = PlainFork();
  if (pid == 0) {
    // As in the parent's namespace: PDEATHSIG is sent to whoever still has this parent.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != parent) _exit(1);
    close(ends[0]);
    if (prefix) close(controls[0]);
    *made = {0, ends[1], -1, controls[1]};
    return true;
  }
  close(ends[1]);
  if (prefix) close(controls[1]);
  int pidfd = pid < 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  *made = {pid, ends[0], pidfd, controls[0]};
  return pidfd >= 0;
}

// "+pid" with the child's connection and pidfd (and its control), or "-reason".
void Answer(int control, bool made, const Child& child) {
  std::string text = made ? "+" + std::to_string(child.pid) : std::string("-fork failed: ") + strerror(errno);
  int fds[3] = {child.connection, child.pidfd, child.control};
  if (!SendRights(control, text, fds, !made ? 0 : child.control < 0 ? 2 : 3)) EndAll();
  if (!made) return;
  close(child.connection), close(child.pidfd);
  if (child.control >= 0) close(child.control);
}

// A copy that was asked for: its connection and control socket, and what it is to be.
struct Request {
  int connection, control;
  std::string text;
};

// Takes the owner's request for a copy (belljar/forking/owner/copies_host.py), with the sockets that come along. Ends the
// process when the owner lets go of it.
bool TakeRequest(int control, Request* request) {
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
  if (count < 0 && errno == EINTR) return false;
  if (count <= 0 || head == nullptr || head->cmsg_len != CMSG_LEN(2 * sizeof(int))) _exit(0);
  int fds[2];
  memcpy(fds, CMSG_DATA(head), sizeof fds);
  *request = {fds[0], fds[1], std::string(text, count)};
  return true;
}

// Forks, which the owner answers for. True in the copy, which then has the connection and says hello to the owner.
bool ForkCopy(int control, const Request& request) {
  pid_t pid = JudgedFork();
  if (pid != 0) {
    std::string failed = std::string("-") + strerror(errno);
    if (pid < 0) send(control, failed.data(), failed.size(), MSG_NOSIGNAL);
    close(request.connection), close(request.control);
    return false;
  }
  close(wire.fd()), close(control);
  wire.Open(request.connection);
  if (send(request.control, "!", 1, MSG_NOSIGNAL) != 1) _exit(0);
  return true;
}

// A session that is asked for a copy of itself. Gives the control socket to wait on from now on.
int CopySession(int control) {
  Request request;
  if (!TakeRequest(control, &request)) return control;
  KeepMappings();
  if (!ForkCopy(control, request)) return control;
  guest.Call("redraw");
  return request.control;
}

// A run; with a control socket, a session, which runs one thing after another and is copied between them.
[[noreturn]] void BeRun(const std::string& held, int control) {
  bool session = control >= 0;
  guest.Call("reseed");
  if (!wire.Readable(0)) guest.Run("warmUp");
  wire.Send(Kind::kMessage, "{\"op\":\"ready\",\"layers\":\"" + held + "\"}");
  for (;;) {
    while (session && !wire.Wait(control)) control = CopySession(control);
    Frame frame = wire.Receive();
    if (frame.kind == Kind::kMessage) guest.Handle(frame.body);
  }
}

// A prefix: evaluates its code, then is copied for each run. A run has the prefix's seal, and nothing of its own to add.
[[noreturn]] void BePrefix(int control) {
  DataBytes();
  std::string held = layers + Seal({wire.fd(), control, statm_fd}, rules, session_filter, control, fork_filter);
  Prove();
  guest.Call("reseed");
  Frame start = wire.Receive();
  if (!guest.Handle(start.body)) _exit(0);
  guest.Collect();
  guest.MarkMemory(DataBytes());
  close(statm_fd);
  KeepMappings();
  for (;;) {
    Request request;
    if (!TakeRequest(control, &request) || !ForkCopy(control, request)) continue;
    if (request.text == "copy session") BeRun(held, request.control);
    close(request.control);
    BeRun(held, -1);
  }
}

// An engine program: its connection is to the sandbox's kernel, and nothing else is.
[[noreturn]] void BeProgram() {
  guest.MarkMemory(DataBytes());
  Seal({wire.fd()}, rules, run_filter);
  Prove();
  guest.Call("reseed");
  guest.Run("program");
  _exit(0);
}

// The template itself: a request (which only its child reads) in; "+pid" and its descriptors out.
[[noreturn]] void ServeForks(int control) {
  signal(SIGCHLD, SIG_IGN);
  std::string request(64 << 10, '\0');
  for (;;) {
    ssize_t count = recv(control, request.data(), request.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) EndAll();
    Child child;
    // [memory, ...] as MessagePack, of which the first says it all: a program has some, a prefix asks for none.
    bool prefix = request[1] == 0, made = Fork(&child, prefix);
    if (made && child.pid == 0) {
      close(control);
      wire.Open(child.connection);
      prefix ? BePrefix(child.control) : BeProgram();
    }
    Answer(control, made, child);
  }
}

// serve(control, {sources, answer, rules, runFilter, sessionFilter, forkFilter}): never returns.
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
  rules = bytes("rules"), run_filter = bytes("runFilter");
  session_filter = bytes("sessionFilter"), fork_filter = bytes("forkFilter");
  proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
  guest.Make(node, options);
  guest.Collect();
  KeepMappings();
  // Node has threads, and a process with threads can't enter a user namespace: its fork has one. This one only waits.
  pid_t node_process = getpid(), pid = PlainFork();
  if (pid != 0) {
    close(control);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  layers = GiveUpPrivileges();
  // Only now: changing its ids would clear it.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != node_process) _exit(1);
  ServeForks(control);
}

void Init(Local<Object> exports, Local<Value>, Local<Context> context, void*) {
  exports->Set(context, Text(context->GetIsolate(), "serve"), Function::New(context, Serve).ToLocalChecked()).Check();
}

}  // namespace

}  // namespace belljar

NODE_MODULE_CONTEXT_AWARE(belljar, belljar::Init)
