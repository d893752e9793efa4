// The one socket of a process: frames in and out, and what a guest printed until it is sent.
#pragma once

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace belljar {

// A frame is: u32 length of the body, u8 kind, body. Little-endian, as all machines we run on.
enum class Kind : uint8_t {
  kMessage = 'M',  // JSON, both ways
  kOutput = 'O',   // u8 stream, bytes
};

constexpr size_t kFrameMax = 64u << 20;

struct Frame {
  Kind kind;
  std::string body;
};

// Whatever fails here ends the process: the other side is gone, and nobody is left to tell.
class Wire {
 public:
  void Open(int fd) { fd_ = fd; }
  int fd() const { return fd_; }

  bool Readable(int timeout_ms) {
    Flush();
    pollfd wanted{fd_, POLLIN, 0};
    return poll(&wanted, 1, timeout_ms) > 0;
  }

  // Until there is something to receive (true), or on another descriptor.
  bool Wait(int other) {
    Flush();
    pollfd wanted[2] = {{fd_, POLLIN, 0}, {other, POLLIN, 0}};
    while (poll(wanted, 2, -1) < 0 && errno == EINTR) continue;
    return wanted[0].revents != 0;
  }

  Frame Receive() {
    Flush();
    char head[5];
    Take(head, 5);
    return {static_cast<Kind>(head[4]), Body(head)};
  }

  void Send(Kind kind, std::string_view body) {
    Flush();
    std::string frame(5, '\0');
    Head(frame.data(), kind, body.size());
    SendBytes(frame += body);
  }

  // As a program of the sandbox (belljar/engines/wire/calls.py): frames of a u32 length and a body.
  std::string ReceiveBody() {
    char head[4];
    Take(head, 4);
    return Body(head);
  }

  void SendBytes(std::string_view bytes) {
    sending_ = true;
    while (!bytes.empty()) {
      ssize_t count = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) _exit(0);
      bytes.remove_prefix(count);
    }
    sending_ = false;
  }

  // Kept here until there is much of it, something else is sent, or the process waits.
  void Print(uint8_t stream, std::string_view text) {
    if (stream != text_[5]) Flush();
    text_[5] = static_cast<char>(stream);
    while (!text.empty()) {
      size_t count = std::min(text.size(), sizeof text_ - 6 - printed_);
      memcpy(text_ + 6 + printed_, text.data(), count);
      printed_ = printed_ + count;
      text.remove_prefix(count);
      if (printed_ == sizeof text_ - 6) Flush();
    }
  }

  void Flush() {
    if (printed_ == 0) return;
    Head(text_, Kind::kOutput, printed_ + 1);
    SendBytes({text_, 6 + printed_});
    printed_ = 0;
  }

  // Frames ready to send, from a signal handler or when memory is gone: no allocation. Returns only if another frame is
  // half sent, which nothing may follow.
  void SendFinalMessage(std::string_view bytes) {
    if (sending_) return;
    Flush();
    SendBytes(bytes);
    _exit(0);
  }

 private:
  static void Head(char* head, Kind kind, size_t size) {
    uint32_t length = static_cast<uint32_t>(size);
    memcpy(head, &length, 4);
    head[4] = static_cast<char>(kind);
  }

  void Take(char* to, size_t size) {
    while (size > 0) {
      ssize_t count = read(fd_, to, size);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;  // a copy's connection gives up now and then
      if (count <= 0) _exit(0);
      to += count;
      size -= count;
    }
  }

  std::string Body(const char* head) {
    uint32_t length;
    memcpy(&length, head, 4);
    if (length > kFrameMax) _exit(0);
    std::string body(length, '\0');
    Take(body.data(), length);
    return body;
  }

  int fd_ = -1;
  volatile bool sending_ = false;
  volatile size_t printed_ = 0;
  char text_[32 << 10] = {};  // a frame: its head, the stream, the text
};

extern Wire wire;

}  // namespace belljar
