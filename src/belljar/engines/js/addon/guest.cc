#include "guest.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "wire.h"

namespace belljar {

using namespace v8;

Guest guest;

namespace {

constexpr size_t kMiB = 1u << 20;
constexpr size_t kHeapMax = 4096 * kMiB;
constexpr size_t kYoungMax = 48 * kMiB;  // as Node's
// What the engine itself may need on top of a run's memory: young generation, compilers, buffers of ours.
constexpr size_t kOverhead = 96 * kMiB;
constexpr int kTickMs = 100;
// How many ticks after a limit a run that does not come back to the engine is ended from the signal handler.
constexpr int kPatience = 3;

struct Borrowed : String::ExternalOneByteStringResource {
  explicit Borrowed(const ExternalOneByteStringResource& from) : text(from.data(), from.length()) {}
  const char* data() const override { return text.data(); }
  size_t length() const override { return text.size(); }
  std::string_view text;
};

class Allocator : public ArrayBuffer::Allocator {
 public:
  void* Allocate(size_t size) override { return guest.Charge(size) ? calloc(1, size > 0 ? size : 1) : nullptr; }
  void* AllocateUninitialized(size_t size) override { return Allocate(size); }
  void Free(void* data, size_t size) override {
    guest.Release(size);
    free(data);
  }
};

void SetTimer(__itimer_which which, double ms) {
  // A timer of zero would be none at all.
  long micros = ms > 0 ? std::max(1L, std::lround(std::min(ms, 1e9) * 1000)) : 0;
  itimerval timer{{0, ms > 0 ? kTickMs * 1000 : 0}, {micros / 1000000, micros % 1000000}};
  setitimer(which, &timer, nullptr);
}

}  // namespace

// All that a thread has to enter to run the guest's code.
struct Guest::Inside {
  Inside() : isolate(guest.isolate_), handles(guest.isolate_), context(guest.context()), failed(guest.isolate_) {}
  Isolate::Scope isolate;
  HandleScope handles;
  Context::Scope context;
  TryCatch failed;
};

void Guest::Make(Isolate* node, Local<Object> options) {
  Local<Context> from = node->GetCurrentContext();
  node_ = node;
  node_context_.Reset(node, from);
  answer_.Reset(node, options->Get(from, Text(node, "answer")).ToLocalChecked().As<Function>());
  sources_.Reset(node, options->Get(from, Text(node, "sources")).ToLocalChecked().As<Object>());

  platform_ = node::GetMultiIsolatePlatform(node::GetCurrentEnvironment(from));
  isolate_ = Isolate::Allocate();
  platform_->RegisterIsolate(isolate_, node::GetCurrentEventLoop(node));
  Isolate::CreateParams params;
  params.array_buffer_allocator = new Allocator();
  params.constraints.ConfigureDefaultsFromHeapSize(0, kHeapMax);
  params.constraints.set_max_young_generation_size_in_bytes(kYoungMax);
  params.constraints.set_initial_young_generation_size_in_bytes(kYoungMax);  // or collecting would shrink it
  Isolate::Initialize(isolate_, params);
  isolate_->SetMicrotasksPolicy(MicrotasksPolicy::kExplicit);
  isolate_->SetAllowAtomicsWait(false);
  isolate_->SetAllowWasmCodeGenerationCallback([](Local<Context>, Local<String>) { return guest.wasm_; });
  isolate_->SetPromiseRejectCallback(OnRejection);
  isolate_->SetOOMErrorHandler([](const char*, const OOMDetails&) { End(kMemory); });
  isolate_->SetFatalErrorHandler([](const char*, const char*) { End(kEngine); });
  isolate_->AddNearHeapLimitCallback(OnNearHeapLimit, nullptr);
  std::set_new_handler([] { End(kMemory); });
  {
    Isolate::Scope isolate_scope(isolate_);
    HandleScope scope(isolate_);
    context_.Reset(isolate_, Context::New(isolate_));
  }
  Inside inside;
  Local<Value> done;
  Local<Script> script;
  ScriptOrigin origin(Text(isolate_, "node:belljar/boot"));
  Local<Value> natives = MakeNatives(context());
  if (!Script::Compile(context(), Source("belljar/boot").ToLocalChecked(), &origin).ToLocal(&script) ||
      !script->Run(context()).ToLocal(&done) ||
      !done.As<Function>()->Call(context(), Undefined(isolate_), 1, &natives).ToLocal(&done)) {
    Local<Value> stack = inside.failed.StackTrace(context()).FromMaybe(inside.failed.Exception());
    fprintf(stderr, "the JavaScript engine did not start: %s\n", Utf8(isolate_, stack).c_str());
    _exit(5);
  }
  isolate_->PerformMicrotaskCheckpoint();
}

// Node's library is part of its binary: both isolates' strings point into it, and forks copy none of it.
MaybeLocal<String> Guest::Source(const std::string& id) {
  HandleScope scope(node_);
  Local<Value> text;
  if (!sources_.Get(node_)->Get(node_context_.Get(node_), Text(node_, id)).ToLocal(&text) || !text->IsString()) return {};
  if (!text.As<String>()->IsExternalOneByte()) return Text(isolate_, Utf8(node_, text));
  return String::NewExternalOneByte(isolate_, new Borrowed(*text.As<String>()->GetExternalOneByteStringResource()));
}

bool Guest::AskNode(std::string* bytes) {
  Isolate::Scope isolate_scope(node_);
  HandleScope scope(node_);
  Local<Context> context = node_context_.Get(node_);
  Context::Scope context_scope(context);
  TryCatch failed(node_);
  Local<Value> value;
  return Unpack(node_, *bytes).ToLocal(&value) &&
         answer_.Get(node_)->Call(context, Undefined(node_), 1, &value).ToLocal(&value) && Pack(node_, value, bytes);
}

MaybeLocal<Value> Guest::Hook(const char* name, std::initializer_list<Local<Value>> arguments) {
  Local<Value> hook;
  if (hooks_.IsEmpty() || !hooks_.Get(isolate_)->Get(context(), Text(isolate_, name)).ToLocal(&hook)) return {};
  return hook.As<Function>()->Call(context(), Undefined(isolate_), static_cast<int>(arguments.size()),
                                   const_cast<Local<Value>*>(arguments.begin()));
}

bool Guest::Handle(std::string_view message) {
  Inside inside;
  stopped_ = false;
  Hook("message", {Text(isolate_, message)});
  Loop(true);
  SetTimer(ITIMER_PROF, 0);
  SetTimer(ITIMER_REAL, 0);
  if (!stopped_) return true;
  isolate_->CancelTerminateExecution();
  wire.Flush();
  wire.SendBytes(last_[why_]);
  return false;
}

void Guest::Run(const char* hook) {
  Inside inside;
  Hook(hook, {});
  Loop(false);
  if (stopped_) SendFinalMessage();
}

void Guest::Call(const char* hook) {
  Inside inside;
  Hook(hook, {});
}

// Until our JavaScript says that nothing is left to do. `turn` runs what is due and gives the milliseconds until
// something else is: none at all (negative) when the run is over, infinity when only the host can go on.
void Guest::Loop(bool waits) {
  while (!stopped_) {
    HandleScope scope(isolate_);
    TryCatch failed(isolate_);
    isolate_->PerformMicrotaskCheckpoint();
    while (platform_->FlushForegroundTasks(isolate_)) isolate_->PerformMicrotaskCheckpoint();
    if (stopped_) return;
    Local<Value> turned;
    double wait = Hook("turn", {}).ToLocal(&turned) && turned->IsNumber() ? turned.As<Number>()->Value() : -1;
    if (stopped_ || wait < 0) return;
    if (wait == 0 || !waits) continue;
    if (!wire.Readable(std::isinf(wait) ? -1 : static_cast<int>(std::ceil(std::min(wait, 1e9))))) continue;
    Frame frame = wire.Receive();
    if (frame.kind == Kind::kMessage) Hook("message", {Text(isolate_, frame.body)});
  }
}

void Guest::SetLimits(double cpu_ms, double wall_ms, double memory_mb) {
  size_t room = static_cast<size_t>(memory_mb * kMiB);
  HeapStatistics heap;
  isolate_->GetHeapStatistics(&heap);
  // The only way to change a heap's limit is to take a callback away.
  isolate_->RemoveNearHeapLimitCallback(OnNearHeapLimit, heap.used_heap_size() + room);
  isolate_->AddNearHeapLimitCallback(OnNearHeapLimit, nullptr);
  buffers_max_ = buffers_ + room;
  rlimit data{data_bytes_ + room + kOverhead, data_bytes_ + room + kOverhead};
  if (data_bytes_ > 0) setrlimit(RLIMIT_DATA, &data);
  struct sigaction action {};
  action.sa_handler = OnTimer;  // no SA_RESTART: a process that waits has to notice
  sigaction(SIGPROF, &action, nullptr);
  sigaction(SIGALRM, &action, nullptr);
  ticks_ = 0;
  SetTimer(ITIMER_PROF, cpu_ms);
  SetTimer(ITIMER_REAL, wall_ms);
}

void Guest::Stop(int why) {
  if (!stopped_) why_ = why % kReasons;
  stopped_ = true;
  isolate_->TerminateExecution();
}

bool Guest::Charge(size_t bytes) {
  if (bytes > buffers_max_ || buffers_ > buffers_max_ - bytes) return Stop(kMemory), false;
  buffers_ += bytes;
  return true;
}

// From signal handlers too: no allocation. Returns only if a frame is half sent, which nothing may follow.
void Guest::SendFinalMessage() { wire.SendFinalMessage(last_[why_]); }

void Guest::OnTimer(int signal) {
  if (!guest.stopped_) return guest.Stop(signal == SIGPROF ? kCpu : kWall);
  guest.ticks_ = guest.ticks_ + 1;
  if (guest.ticks_ >= kPatience) guest.SendFinalMessage();
}

size_t Guest::OnNearHeapLimit(void*, size_t now, size_t) {
  if (guest.stopped_) guest.SendFinalMessage();
  guest.Stop(kMemory);
  return now + 32 * kMiB;  // room to unwind in
}

void Guest::End(Why why) {
  guest.why_ = why;
  guest.SendFinalMessage();
  _exit(4);
}

void Guest::OnRejection(PromiseRejectMessage message) {
  HandleScope scope(guest.isolate_);
  Local<Value> value = message.GetValue().IsEmpty() ? Undefined(guest.isolate_).As<Value>() : message.GetValue();
  guest.Hook("rejection", {Integer::New(guest.isolate_, message.GetEvent()), message.GetPromise(), value});
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
