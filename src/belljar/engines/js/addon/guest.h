// The guest's isolate: one realm, its limits, and what our own JavaScript in it may ask of the process.
#pragma once

#include <node.h>
#include <v8.h>

#include <string>
#include <string_view>
#include <unordered_map>

namespace belljar {

// Why a run was ended.
enum Why : int { kNone, kCpu, kWall, kMemory, kBridge, kOutput, kUnsettled };

class Guest {
 public:
  // Makes the isolate on this thread and runs our JavaScript in it.
  void Make(v8::Isolate* node, v8::Local<v8::Object> options);

  // Hands a message to our JavaScript and runs whatever it starts to its end. False: a limit ended it.
  bool Handle(std::string_view message);

  // Runs an engine program, which does all its waiting by itself, to its end.
  void RunProgram();

  // In a new process: nothing random is shared with its siblings.
  void Reseed();
  // What later limits count from.
  void MarkMemory(size_t data_bytes);
  // After the last of a prefix: what is left of it is in order, and forks share it.
  void Collect();
  // While nobody waits: the memory that any run writes to is this process's own by then.
  void Rehearse();

  // What natives need.
  v8::Isolate* isolate() { return isolate_; }
  v8::Local<v8::Context> context() { return context_.Get(isolate_); }
  v8::MaybeLocal<v8::String> Source(const std::string& id);
  v8::MaybeLocal<v8::String> Strip(v8::Local<v8::String> code);
  void SetLimits(double cpu_ms, double wall_ms, double memory_mb);
  void AllowWasm() { wasm_ = true; }
  void Stop(Why why);
  bool Charge(size_t bytes);
  void Release(size_t bytes) { buffers_ -= bytes; }
  void SetHooks(v8::Local<v8::Object> hooks) { hooks_.Reset(isolate_, hooks); }

 private:
  void Loop(bool waits);
  std::string_view LastMessage();
  void LastWords();
  double CallHook(const char* name, v8::Local<v8::Value> argument);
  void Disarm();
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
  size_t buffers_ = 0, buffers_max_ = SIZE_MAX, data_bytes_ = 0;
  volatile int why_ = kNone;
  volatile int ticks_ = 0;
  bool program_ = false, wasm_ = false;
};

extern Guest guest;

// Everything our JavaScript may call, as one object (natives.cc).
v8::Local<v8::Object> MakeNatives(v8::Local<v8::Context> context);

std::string Utf8(v8::Isolate* isolate, v8::Local<v8::Value> value);
v8::Local<v8::String> Text(v8::Isolate* isolate, std::string_view text);

}  // namespace belljar
