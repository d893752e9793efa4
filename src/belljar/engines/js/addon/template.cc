// The addon's door: makes the guest's isolate, then serves forks of this process on its control socket for ever.
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
#include <cstring>

#include "guest.h"
#include "seal.h"
#include "wire.h"

namespace belljar {

using namespace v8;

Wire wire;

namespace {

std::string layers, rules, template_filter, run_filter, session_filter, fork_filter;
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

// A session, asked over its control socket for a copy of itself (belljar/forking/owner/copies_host.py): it takes the sockets
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
  guest.Call("redraw");
  if (send(fds[1], "!", 1, MSG_NOSIGNAL) != 1) _exit(0);
  return fds[1];
}

// A run; with a control socket, a session, which runs one thing after another and is copied between them.
[[noreturn]] void BeRun(int control) {
  bool session = control >= 0;
  std::string held = layers + (session ? Seal({wire.fd(), control}, rules, session_filter, control, fork_filter)
                                       : Seal({wire.fd()}, rules, run_filter));
  Prove();
  if (session) signal(SIGCHLD, SIG_IGN);  // it may not wait for its copies
  guest.Call("reseed");
  if (!wire.Readable(0)) guest.Run("rehearse");
  wire.Send(Kind::kMessage, "{\"op\":\"ready\",\"layers\":\"" + held + "\"}");
  for (;;) {
    while (session && !wire.Wait(control)) control = Copy(control);
    Frame frame = wire.Receive();
    if (frame.kind == Kind::kMessage) guest.Handle(frame.body);
  }
}

// A prefix: evaluates its code, then makes runs of itself whenever it is asked.
[[noreturn]] void BePrefix() {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);  // for copies whose origin has ended
  DataBytes();
  // So many descriptors may be under way from all processes of our user when it sends one.
  Seal({wire.fd(), statm_fd}, rules, template_filter, -1, {}, 1 << 16);
  guest.Call("reseed");
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
      BeRun(child.control);
    }
    Answer(wire.fd(), made, child);
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

// serve(control, {sources, answer, rules, templateFilter, runFilter, sessionFilter, forkFilter}): never returns.
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
  rules = bytes("rules"), template_filter = bytes("templateFilter"), run_filter = bytes("runFilter");
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
