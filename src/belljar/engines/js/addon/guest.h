// The guest's isolate: one realm, its limits, and what our own JavaScript in it may ask of the process.
#pragma once

#include <malloc.h>
#include <node.h>
#include <v8.h>

#include <string>
#include <string_view>
#include <unordered_map>

namespace belljar {

// Why a run was ended; our JavaScript has more reasons of its own.
enum Why : int { kEngine, kCpu, kWall, kMemory, kReasons = 8 };

class Guest {
 public:
  // Makes the isolate on this thread and runs our JavaScript in it.
  void Make(v8::Isolate* node, v8::Local<v8::Object> options);

  // In a new process: nothing random is shared with its siblings.
  void Reseed();
  // The same in a copy of a session, whose clock goes on.
  void Redraw();
  // While nobody waits: the memory that any run writes to is this process's own by then.
  void Rehearse();
  // Hands a message to our JavaScript and runs whatever it starts to its end. False: a limit ended it.
  bool Handle(std::string_view message);
  // Before the process is forked again and again: the less memory it has, the quicker that is.
  void Collect() { isolate_->LowMemoryNotification(), node_->LowMemoryNotification(), malloc_trim(0); }
  // Private memory of the process, which later limits count from.
  void MarkMemory(size_t data_bytes) { data_bytes_ = data_bytes; }
  // Runs a program of the sandbox, which does all its waiting by itself, to its end.
  void RunProgram();

  // For natives.
  v8::Isolate* isolate() { return isolate_; }
  v8::Local<v8::Context> context() { return context_.Get(isolate_); }
  v8::MaybeLocal<v8::String> Source(const std::string& id);
  v8::MaybeLocal<v8::String> Strip(v8::Local<v8::String> code);
  void SetHooks(v8::Local<v8::Object> hooks) { hooks_.Reset(isolate_, hooks); }
  void SetLastWords(int why, std::string_view bytes) { last_[why % kReasons] = bytes; }
  void SetLimits(double cpu_ms, double wall_ms, double memory_mb);
  void AllowWasm() { wasm_ = true; }
  void Stop(int why);
  bool Charge(size_t bytes);
  void Release(size_t bytes) { buffers_ -= bytes; }

 private:
  struct Inside;
  void Loop(bool waits);
  double CallHook(const char* name, v8::Local<v8::Value> argument);
  void LastWords();
  static void OnTimer(int signal);
  static size_t OnNearHeapLimit(void*, size_t now, size_t);
  static void OnOutOfMemory(const char*, const v8::OOMDetails&);
  static void OnFatal(const char*, const char*);
  static void OnRejection(v8::PromiseRejectMessage message);

  v8::Isolate* isolate_ = nullptr;
  v8::Isolate* node_ = nullptr;
  node::MultiIsolatePlatform* platform_ = nullptr;
  v8::Global<v8::Context> context_, node_context_;
  v8::Global<v8::Object> hooks_;
  v8::Global<v8::Function> strip_;
  std::unordered_map<std::string, v8::Global<v8::String>> sources_;  // Node's strings
  std::string last_[kReasons];
  size_t buffers_ = 0, buffers_max_ = SIZE_MAX, data_bytes_ = 0;
  volatile bool stopped_ = false;
  volatile int why_ = kEngine, ticks_ = 0;
  bool wasm_ = false;
};

extern Guest guest;

// Everything our JavaScript may call, as one object (natives.cc).
v8::Local<v8::Object> MakeNatives(v8::Local<v8::Context> context);

std::string Utf8(v8::Isolate* isolate, v8::Local<v8::Value> value);
v8::Local<v8::String> Text(v8::Isolate* isolate, std::string_view text);

}  // namespace belljar
