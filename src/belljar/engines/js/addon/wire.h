// The one socket of a process: frames in and out, and what a guest printed until it is sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace belljar {

// A frame is: u32 length of the body, u8 kind, body. Little-endian, as all machines we run on.
enum class Kind : uint8_t {
  kMessage = 'M',  // JSON, both ways
  kOutput = 'O',   // u8 stream, bytes
  kFork = 'F',     // to a prefix: make a run; it answers as a template does
};

constexpr size_t kFrameMax = 64u << 20;

struct Frame {
  Kind kind;
  std::string body;
};

class Wire {
 public:
  void Open(int fd) { fd_ = fd; }
  int fd() const { return fd_; }

  // These end the process when the other side is gone: nobody is left to tell.
  Frame Receive();
  void Send(Kind kind, std::string_view body);

  bool Readable(int timeout_ms);

  // As an engine program (belljar/engines/calls/protocol.py): bytes as they are, and frames of u32 length and body.
  void SendBytes(std::string_view bytes) { SendAll(bytes.data(), bytes.size()); }
  std::string ReceiveBody();

  // Kept here until there is much of it, something else is sent, or the process waits.
  void Print(uint8_t stream, std::string_view text);
  void Flush();

  // One last message, from a signal handler or when memory is gone: no allocation. Returns only if a frame is half
  // sent, which no other may follow.
  void LastWords(std::string_view message);

 private:
  void SendAll(const void* data, size_t size);
  int fd_ = -1;
  volatile bool sending_ = false;
  volatile size_t printed_ = 0;
  uint8_t stream_ = 1;
  char text_[32 << 10];
};

extern Wire wire;

// Raw bytes with two descriptors.
bool SendDescriptors(int fd, std::string_view data, int first, int second);

}  // namespace belljar
