#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace belljar {

Wire wire;

namespace {

bool ReadAll(int fd, void* data, size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    ssize_t count = read(fd, at, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    size -= count;
  }
  return true;
}

void Head(char* head, Kind kind, size_t size) {
  uint32_t length = static_cast<uint32_t>(size);
  memcpy(head, &length, 4);
  head[4] = static_cast<char>(kind);
}

}  // namespace

void Wire::SendAll(const void* data, size_t size) {
  auto* at = static_cast<const char*>(data);
  while (size > 0) {
    ssize_t count = send(fd_, at, size, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) _exit(0);
    at += count;
    size -= count;
  }
}

Frame Wire::Receive() {
  Flush();
  char head[5];
  uint32_t length;
  Frame frame;
  if (!ReadAll(fd_, head, 5)) _exit(0);
  memcpy(&length, head, 4);
  if (length > kFrameMax) _exit(0);
  frame.kind = static_cast<Kind>(head[4]);
  frame.body.resize(length);
  if (!ReadAll(fd_, frame.body.data(), length)) _exit(0);
  return frame;
}

std::string Wire::ReceiveBody() {
  uint32_t length;
  std::string body;
  if (!ReadAll(fd_, &length, 4) || length > kFrameMax) _exit(0);
  body.resize(length);
  if (!ReadAll(fd_, body.data(), length)) _exit(0);
  return body;
}

void Wire::Send(Kind kind, std::string_view body) {
  Flush();
  std::string frame(5, '\0');
  Head(frame.data(), kind, body.size());
  frame += body;
  sending_ = true;
  SendAll(frame.data(), frame.size());
  sending_ = false;
}

bool SendDescriptors(int fd, std::string_view data, int first, int second) {
  iovec part{const_cast<char*>(data.data()), data.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(2 * sizeof(int));
  int fds[2] = {first, second};
  memcpy(CMSG_DATA(rights), fds, sizeof fds);
  ssize_t count;
  do {
    count = sendmsg(fd, &message, MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  return count == static_cast<ssize_t>(part.iov_len);
}

bool Wire::Readable(int timeout_ms) {
  Flush();
  pollfd wanted{fd_, POLLIN, 0};
  return poll(&wanted, 1, timeout_ms) > 0;
}

void Wire::Print(uint8_t stream, std::string_view text) {
  if (stream != stream_) Flush();
  stream_ = stream;
  while (!text.empty()) {
    size_t room = sizeof text_ - printed_;
    if (room == 0) {
      Flush();
      continue;
    }
    size_t count = text.size() < room ? text.size() : room;
    memcpy(text_ + printed_, text.data(), count);
    printed_ = printed_ + count;
    text.remove_prefix(count);
  }
}

void Wire::Flush() {
  if (printed_ == 0) return;
  size_t count = printed_;
  char head[6];
  Head(head, Kind::kOutput, count + 1);
  head[5] = static_cast<char>(stream_);
  sending_ = true;
  SendAll(head, 6);
  SendAll(text_, count);
  printed_ = 0;
  sending_ = false;
}

void Wire::LastWords(std::string_view message) {
  if (sending_) return;
  Flush();
  char head[5];
  Head(head, Kind::kMessage, message.size());
  SendAll(head, 5);
  SendAll(message.data(), message.size());
  _exit(0);
}

}  // namespace belljar
