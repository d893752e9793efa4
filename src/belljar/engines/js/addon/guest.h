// The guest's isolate: one realm, its limits, and what our own JavaScript in it may ask of the process.
#pragma once

#include <malloc.h>
#include <node.h>
#include <v8.h>

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace belljar {

// Why a run was ended; our JavaScript has more reasons of its own.
enum Why : int { kEngine, kCpu, kWall, kMemory, kReasons = 8 };

class Guest {
 public:
  // Makes the isolate on this thread and runs our JavaScript in it.
  void Make(v8::Isolate* node, v8::Local<v8::Object> options);

  // Calls a hook.
  void Call(const char* hook);
  // Hands a message to our JavaScript and runs whatever it starts to its end. False: a limit ended it.
  bool Handle(std::string_view message);
  // Before the process is forked again and again: the less memory it has, the quicker that is.
  void Collect() { isolate_->LowMemoryNotification(), node_->LowMemoryNotification(), malloc_trim(0); }
  // Private memory of the process, which later limits count from.
  void MarkMemory(size_t data_bytes) { data_bytes_ = data_bytes; }
  // Calls a hook, and runs whatever it starts, which does all its waiting by itself, to its end.
  void Run(const char* hook);

  // For natives.
  v8::Isolate* isolate() { return isolate_; }
  v8::Local<v8::Context> context() { return context_.Get(isolate_); }
  v8::MaybeLocal<v8::String> Source(const std::string& id);
  // A question to the JavaScript in Node's own realm, whose state every fork inherits, and its answer: packed values.
  bool AskNode(std::string* bytes);
  void SetHooks(v8::Local<v8::Object> hooks) { hooks_.Reset(isolate_, hooks); }
  // Calls one of the functions that our JavaScript gave.
  v8::MaybeLocal<v8::Value> Hook(const char* name, std::initializer_list<v8::Local<v8::Value>> arguments);
  void SetFinalMessage(int why, std::string_view bytes) { last_[why % kReasons] = bytes; }
  void SetLimits(double cpu_ms, double wall_ms, double memory_mb);
  void AllowWasm() { wasm_ = true; }
  void Stop(int why);
  bool Charge(size_t bytes);
  void Release(size_t bytes) { buffers_ -= bytes; }
  size_t buffers() const { return buffers_; }

 private:
  struct Inside;
  void Loop(bool waits);
  void SendFinalMessage();
  static void OnTimer(int signal);
  static size_t OnNearHeapLimit(void*, size_t now, size_t);
  [[noreturn]] static void End(Why why);
  static void OnRejection(v8::PromiseRejectMessage message);

  v8::Isolate* isolate_ = nullptr;
  v8::Isolate* node_ = nullptr;
  node::MultiIsolatePlatform* platform_ = nullptr;
  v8::Global<v8::Context> context_, node_context_;
  v8::Global<v8::Object> hooks_, sources_;
  v8::Global<v8::Function> answer_;
  std::string last_[kReasons];
  size_t buffers_ = 0, buffers_max_ = SIZE_MAX, data_bytes_ = 0;
  volatile bool stopped_ = false;
  volatile int why_ = kEngine, ticks_ = 0;
  bool wasm_ = false;
};

extern Guest guest;

using Info = const v8::FunctionCallbackInfo<v8::Value>&;

inline v8::Isolate* I() { return guest.isolate(); }
inline void Give(Info info, v8::MaybeLocal<v8::Value> made) {
  v8::Local<v8::Value> value;
  if (made.ToLocal(&value)) info.GetReturnValue().Set(value);
}
inline v8::Local<v8::Array> List(std::initializer_list<v8::Local<v8::Value>> values) {
  return v8::Array::New(I(), const_cast<v8::Local<v8::Value>*>(values.begin()), values.size());
}

struct Native {
  const char* name;
  v8::FunctionCallback function;
};

// Everything our JavaScript may call, as one object (natives.cc); the part of it that is about code (code.cc).
v8::Local<v8::Object> MakeNatives(v8::Local<v8::Context> context);
std::span<const Native> CodeNatives();

// A structured clone, as bytes. False: an exception is thrown.
bool Pack(v8::Isolate* isolate, v8::Local<v8::Value> value, std::string* bytes);
v8::MaybeLocal<v8::Value> Unpack(v8::Isolate* isolate, const std::string& bytes);

std::string Utf8(v8::Isolate* isolate, v8::Local<v8::Value> value);
v8::Local<v8::String> Text(v8::Isolate* isolate, std::string_view text);

}  // namespace belljar
