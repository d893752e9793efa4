#include "guest.h"

#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "seal.h"
#include "wire.h"

namespace belljar {

using namespace v8;

Guest guest;

namespace {

constexpr size_t kMiB = 1u << 20;
constexpr size_t kHeapMax = 4096 * kMiB;
// What the engine itself may need on top of a run's memory: young generation, compilers, buffers of ours.
constexpr size_t kOverhead = 96 * kMiB;
constexpr int kTickMs = 100;
// How many ticks after a limit a run that does not come back to the engine is ended from the signal handler.
constexpr int kPatience = 3;

constexpr std::string_view kLimits[] = {"engine", "cpu_ms", "wall_ms", "memory_mb", "max_bridge_bytes", "output_bytes", "unsettled"};

template <typename Resource, typename Unit>
class Borrowed : public Resource {
 public:
  explicit Borrowed(const Resource& from) : data_(from.data()), length_(from.length()) {}
  const Unit* data() const override { return data_; }
  size_t length() const override { return length_; }

 private:
  const Unit* data_;
  size_t length_;
};

class Allocator : public ArrayBuffer::Allocator {
 public:
  void* Allocate(size_t size) override { return Take(size); }
  void* AllocateUninitialized(size_t size) override { return Take(size); }
  void Free(void* data, size_t size) override {
    guest.Release(size);
    free(data);
  }

 private:
  void* Take(size_t size) { return guest.Charge(size) ? calloc(1, size > 0 ? size : 1) : nullptr; }
};

void SetTimer(__itimer_which which, double ms, int again_ms) {
  // A timer of zero would be none at all.
  long micros = ms > 0 ? std::max(1L, std::lround(std::min(ms, 1e9) * 1000)) : 0;
  itimerval timer{{0, again_ms * 1000}, {micros / 1000000, micros % 1000000}};
  setitimer(which, &timer, nullptr);
}

}  // namespace

void Guest::Make(Isolate* node, Local<Object> options) {
  Local<Context> from = node->GetCurrentContext();
  auto get = [&](Local<Object> object, const char* name) { return object->Get(from, Text(node, name)).ToLocalChecked(); };
  node_ = node;
  node_context_.Reset(node, from);
  strip_.Reset(node, get(options, "strip").As<Function>());
  Local<Object> natives = get(options, "sources").As<Object>();
  Local<Array> names = natives->GetOwnPropertyNames(from).ToLocalChecked();
  for (uint32_t i = 0; i < names->Length(); i++) {
    Local<Value> name = names->Get(from, i).ToLocalChecked();
    Local<Value> source = natives->Get(from, name).ToLocalChecked();
    if (source->IsString()) sources_[Utf8(node, name)].Reset(node, source.As<String>());
  }

  platform_ = node::GetMultiIsolatePlatform(node::GetCurrentEnvironment(from));
  isolate_ = Isolate::Allocate();
  platform_->RegisterIsolate(isolate_, node::GetCurrentEventLoop(node));
  Isolate::CreateParams params;
  params.array_buffer_allocator = new Allocator();
  params.constraints.ConfigureDefaultsFromHeapSize(0, kHeapMax);
  params.constraints.set_max_young_generation_size_in_bytes(48 * kMiB);
  Isolate::Initialize(isolate_, params);
  Isolate::Scope isolate_scope(isolate_);
  HandleScope scope(isolate_);
  isolate_->SetMicrotasksPolicy(MicrotasksPolicy::kExplicit);
  isolate_->SetAllowAtomicsWait(false);
  isolate_->SetAllowWasmCodeGenerationCallback([](Local<Context>, Local<String>) { return guest.wasm_; });
  isolate_->SetPromiseRejectCallback(OnRejection);
  isolate_->SetOOMErrorHandler(OnOutOfMemory);
  isolate_->SetFatalErrorHandler(OnFatal);
  isolate_->AddNearHeapLimitCallback(OnNearHeapLimit, nullptr);
  isolate_->SetCaptureStackTraceForUncaughtExceptions(true, 10);
  std::set_new_handler([] { OnOutOfMemory("", OOMDetails{}); });
  Local<Context> realm = Context::New(isolate_);
  context_.Reset(isolate_, realm);
  Context::Scope context_scope(realm);
  TryCatch failed(isolate_);
  Local<Value> done;
  Local<Script> script;
  ScriptOrigin origin(Text(isolate_, "belljar:boot"));
  Local<Value> arguments[] = {MakeNatives(realm)};
  if (!Script::Compile(realm, Source("belljar/boot").ToLocalChecked(), &origin).ToLocal(&script) ||
      !script->Run(realm).ToLocal(&done) || !done->IsFunction() ||
      !done.As<Function>()->Call(realm, Undefined(isolate_), 1, arguments).ToLocal(&done)) {
    Local<Value> stack;
    bool known = failed.StackTrace(realm).ToLocal(&stack);
    fprintf(stderr, "the JavaScript engine did not start: %s\n",
            Utf8(isolate_, known ? stack : failed.Exception()).c_str());
    _exit(5);
  }
  isolate_->PerformMicrotaskCheckpoint();
}

// What the other side is told of a limit. From signal handlers too: no allocation.
std::string_view Guest::LastMessage() {
  static char text[128];
  if (!program_) {
    return {text, static_cast<size_t>(snprintf(text, sizeof text, R"({"op":"limit","limit":"%s"})", kLimits[why_].data()))};
  }
  // The call `exceeded`: u32 length, u32 id, u16 number, u16 flags; the limit's name, and the processor time.
  std::string_view name = why_ == kCpu ? "cpu_seconds" : "memory_bytes";
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  uint32_t head[] = {static_cast<uint32_t>(8 + 4 + name.size() + 8), 1, 52, static_cast<uint32_t>(name.size())};
  int64_t nanoseconds = used.tv_sec * 1000000000ll + used.tv_nsec;
  memcpy(text, head, 16);
  memcpy(text + 16, name.data(), name.size());
  memcpy(text + 16 + name.size(), &nanoseconds, 8);
  return {text, 24 + name.size()};
}

// Never returns unless a frame is half sent, which nothing may follow.
void Guest::LastWords() {
  if (program_) wire.SendBytes(LastMessage()), _exit(0);
  wire.LastWords(LastMessage());
}

// Node's library is part of its binary: both isolates' strings point into it, and forks copy none of it.
MaybeLocal<String> Guest::Source(const std::string& id) {
  auto found = sources_.find(id);
  if (found == sources_.end()) return {};
  HandleScope scope(node_);
  Local<String> text = found->second.Get(node_);
  if (text->IsExternalOneByte()) {
    auto* from = text->GetExternalOneByteStringResource();
    return String::NewExternalOneByte(isolate_, new Borrowed<String::ExternalOneByteStringResource, char>(*from));
  }
  if (text->IsExternalTwoByte()) {
    auto* from = text->GetExternalStringResource();
    return String::NewExternalTwoByte(isolate_, new Borrowed<String::ExternalStringResource, uint16_t>(*from));
  }
  return Text(isolate_, Utf8(node_, text));
}

// TypeScript is stripped by Node's own isolate, whose compiled stripper every fork inherits.
MaybeLocal<String> Guest::Strip(Local<String> code) {
  std::string text = Utf8(isolate_, code), result;
  {
    Isolate::Scope isolate_scope(node_);
    HandleScope scope(node_);
    Local<Context> from = node_context_.Get(node_);
    Context::Scope context_scope(from);
    TryCatch failed(node_);
    Local<Value> arguments[] = {Text(node_, text)}, value;
    if (!strip_.Get(node_)->Call(from, Undefined(node_), 1, arguments).ToLocal(&value) || !value->IsString()) return {};
    result = Utf8(node_, value);
  }
  return String::NewFromUtf8(isolate_, result.data(), NewStringType::kNormal, static_cast<int>(result.size()));
}

double Guest::CallHook(const char* name, Local<Value> argument) {
  Local<Context> realm = context();
  Local<Value> hook, result;
  if (!hooks_.Get(isolate_)->Get(realm, Text(isolate_, name)).ToLocal(&hook)) return -1;
  if (!hook.As<Function>()->Call(realm, Undefined(isolate_), 1, &argument).ToLocal(&result)) return -1;
  return result->IsNumber() ? result.As<Number>()->Value() : -1;
}

bool Guest::Handle(std::string_view message) {
  Isolate::Scope isolate_scope(isolate_);
  HandleScope scope(isolate_);
  Context::Scope context_scope(context());
  TryCatch failed(isolate_);
  why_ = kNone;
  CallHook("message", Text(isolate_, message));
  Loop(true);
  Disarm();
  if (why_ == kNone) return true;
  isolate_->CancelTerminateExecution();
  wire.Send(Kind::kMessage, LastMessage());
  return false;
}

// Until our JavaScript says that nothing is left to do. `turn` runs what is due and gives the milliseconds until
// something else is: none at all (negative) when the run is over, infinity when only the host can go on.
void Guest::Loop(bool waits) {
  while (why_ == kNone) {
    HandleScope scope(isolate_);
    TryCatch failed(isolate_);
    isolate_->PerformMicrotaskCheckpoint();
    while (platform_->FlushForegroundTasks(isolate_)) isolate_->PerformMicrotaskCheckpoint();
    if (why_ != kNone) return;
    double wait = CallHook("turn", Undefined(isolate_));
    if (why_ != kNone || wait < 0) return;
    if (wait == 0 || !waits) continue;
    if (!wire.Readable(std::isinf(wait) ? -1 : static_cast<int>(std::ceil(std::min(wait, 1e9))))) continue;
    Frame frame = wire.Receive();
    if (frame.kind == Kind::kMessage) CallHook("message", Text(isolate_, frame.body));
  }
}

void Guest::RunProgram() {
  program_ = true;
  Isolate::Scope isolate_scope(isolate_);
  HandleScope scope(isolate_);
  Context::Scope context_scope(context());
  TryCatch failed(isolate_);
  CallHook("program", Undefined(isolate_));
  Loop(false);
  if (why_ != kNone) LastWords();
}

void Guest::Rehearse() {
  Isolate::Scope isolate_scope(isolate_);
  HandleScope scope(isolate_);
  Context::Scope context_scope(context());
  TryCatch failed(isolate_);
  CallHook("rehearse", True(isolate_));
  Loop(false);
}

void Guest::Reseed() {
  Isolate::Scope isolate_scope(isolate_);
  HandleScope scope(isolate_);
  Context::Scope context_scope(context());
  CallHook("reseed", Undefined(isolate_));
}

void Guest::MarkMemory(size_t data_bytes) { data_bytes_ = data_bytes; }
void Guest::Collect() { isolate_->LowMemoryNotification(); }

void Guest::SetLimits(double cpu_ms, double wall_ms, double memory_mb) {
  size_t room = static_cast<size_t>(memory_mb * kMiB);
  HeapStatistics heap;
  isolate_->GetHeapStatistics(&heap);
  // The only way to change a heap's limit is to take a callback away.
  isolate_->RemoveNearHeapLimitCallback(OnNearHeapLimit, heap.used_heap_size() + room);
  isolate_->AddNearHeapLimitCallback(OnNearHeapLimit, nullptr);
  buffers_max_ = buffers_ + room;
  if (data_bytes_ > 0) LimitMemory(data_bytes_ + room + kOverhead);
  struct sigaction action {};
  action.sa_handler = OnTimer;  // no SA_RESTART: a process that waits has to notice
  sigaction(SIGPROF, &action, nullptr);
  sigaction(SIGALRM, &action, nullptr);
  ticks_ = 0;
  SetTimer(ITIMER_PROF, cpu_ms, kTickMs);
  SetTimer(ITIMER_REAL, wall_ms, kTickMs);
}

void Guest::Disarm() {
  SetTimer(ITIMER_PROF, 0, 0);
  SetTimer(ITIMER_REAL, 0, 0);
}

void Guest::Stop(Why why) {
  if (why_ == kNone) why_ = why;
  isolate_->TerminateExecution();
}

bool Guest::Charge(size_t bytes) {
  if (bytes > buffers_max_ || buffers_ > buffers_max_ - bytes) return Stop(kMemory), false;
  buffers_ += bytes;
  return true;
}

void Guest::OnTimer(int signal) {
  if (guest.why_ == kNone) return guest.Stop(signal == SIGPROF ? kCpu : kWall);
  guest.ticks_ = guest.ticks_ + 1;
  if (guest.ticks_ >= kPatience) guest.LastWords();
}

size_t Guest::OnNearHeapLimit(void*, size_t now, size_t) {
  if (guest.why_ == kMemory) guest.LastWords();
  guest.Stop(kMemory);
  return now + 32 * kMiB;  // room to unwind in
}

void Guest::OnOutOfMemory(const char*, const OOMDetails&) {
  guest.why_ = kMemory;
  guest.LastWords();
  _exit(4);
}

void Guest::OnFatal(const char*, const char*) {
  guest.why_ = kNone;
  guest.LastWords();
  _exit(4);
}

void Guest::OnRejection(PromiseRejectMessage message) {
  Isolate* isolate = guest.isolate_;
  if (guest.hooks_.IsEmpty()) return;
  PromiseRejectEvent event = message.GetEvent();
  if (event != kPromiseRejectWithNoHandler && event != kPromiseHandlerAddedAfterReject) return;
  HandleScope scope(isolate);
  Local<Context> realm = guest.context();
  Local<Value> hook, value = message.GetValue();
  Local<Value> arguments[] = {message.GetPromise(), value.IsEmpty() ? Undefined(isolate).As<Value>() : value,
                              Boolean::New(isolate, event == kPromiseRejectWithNoHandler)};
  if (!guest.hooks_.Get(isolate)->Get(realm, Text(isolate, "rejection")).ToLocal(&hook)) return;
  Local<Value> ignored;
  if (!hook.As<Function>()->Call(realm, Undefined(isolate), 3, arguments).ToLocal(&ignored)) return;
}

std::string Utf8(Isolate* isolate, Local<Value> value) {
  String::Utf8Value text(isolate, value);
  return *text == nullptr ? "" : std::string(*text, text.length());
}

Local<String> Text(Isolate* isolate, std::string_view text) {
  return String::NewFromUtf8(isolate, text.data(), NewStringType::kNormal, static_cast<int>(text.size()))
      .FromMaybe(String::Empty(isolate));
}

}  // namespace belljar
