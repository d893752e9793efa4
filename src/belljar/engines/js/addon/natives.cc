// What our own JavaScript in the guest's realm may call. None of it is reachable for a guest but through that code.
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <vector>

#include "guest.h"
#include "wire.h"

namespace belljar {

using namespace v8;

namespace {

void Throw(std::string_view message) { I()->ThrowException(Exception::TypeError(Text(I(), message))); }
double Number(Info info, int index) { return info[index].As<v8::Number>()->Value(); }

node::encoding Encoding(Info info, int index) { return static_cast<node::encoding>(static_cast<int>(Number(info, index))); }

// The bytes of a view of a buffer.
struct Bytes {
  explicit Bytes(Local<Value> value) : store(value.As<ArrayBufferView>()->Buffer()->GetBackingStore()) {
    data = static_cast<char*>(store->Data()) + value.As<ArrayBufferView>()->ByteOffset();
    size = value.As<ArrayBufferView>()->ByteLength();
  }
  std::shared_ptr<BackingStore> store;
  char* data;
  size_t size;
};

MaybeLocal<Value> NewBytes(std::string_view bytes) {
  Local<ArrayBuffer> buffer;
  if (!ArrayBuffer::MaybeNew(I(), bytes.size()).ToLocal(&buffer)) return {};
  if (!bytes.empty()) memcpy(buffer->Data(), bytes.data(), bytes.size());
  return Uint8Array::New(buffer, 0, bytes.size());
}

void Random(Info info) {
  Bytes out(info[0]);
  constexpr size_t kMost = 256;
  for (size_t done = 0; done < out.size; done += kMost) {
    if (getentropy(out.data + done, std::min(kMost, out.size - done)) != 0) return Throw("no randomness");
  }
}

// Text and bytes, by Node's own coders.

void Encode(Info info) {  // (bytes, encoding, start, end) -> text
  Bytes bytes(info[0]);
  size_t end = std::min(static_cast<size_t>(Number(info, 3)), bytes.size);
  size_t start = std::min(static_cast<size_t>(Number(info, 2)), end);
  Give(info, node::TryEncode(I(), bytes.data + start, end - start, Encoding(info, 1)));
}

void Decode(Info info) {  // (text, encoding) -> bytes
  std::string made(std::max<ssize_t>(node::DecodeBytes(I(), info[0], Encoding(info, 1)), 0), '\0');
  ssize_t count = node::DecodeWrite(I(), made.data(), made.size(), info[0], Encoding(info, 1));
  Give(info, NewBytes({made.data(), static_cast<size_t>(std::max<ssize_t>(count, 0))}));
}

void Write(Info info) {  // (bytes, text, encoding, offset, length) -> how many bytes
  Bytes to(info[0]);
  size_t at = std::min(static_cast<size_t>(Number(info, 3)), to.size);
  size_t room = std::min(static_cast<size_t>(Number(info, 4)), to.size - at);
  ssize_t count = node::DecodeWrite(I(), to.data + at, room, info[1], Encoding(info, 2));
  info.GetReturnValue().Set(static_cast<double>(std::max<ssize_t>(count, 0)));
}

void Compare(Info info) {
  Bytes a(info[0]), b(info[1]);
  int order = std::string_view(a.data, a.size).compare(std::string_view(b.data, b.size));
  info.GetReturnValue().Set(order < 0 ? -1 : order > 0);
}

// Looking into values.

void TypeOf(Info info) {  // (value) -> the name of what it is inside, whatever it pretends to be
  Local<Value> v = info[0];
  const char* name = nullptr;
#define KIND(Name) else if (v->Is##Name()) name = #Name;
  if (!v->IsObject()) return;
  KIND(Proxy) KIND(Date) KIND(RegExp) KIND(Promise) KIND(MapIterator) KIND(SetIterator) KIND(Map) KIND(Set)
  KIND(WeakMap) KIND(WeakSet) KIND(ArrayBuffer) KIND(SharedArrayBuffer) KIND(DataView) KIND(NumberObject)
  KIND(BooleanObject) KIND(StringObject) KIND(SymbolObject) KIND(BigIntObject) KIND(NativeError) KIND(AsyncFunction)
  KIND(GeneratorFunction) KIND(GeneratorObject) KIND(ModuleNamespaceObject) KIND(ArgumentsObject) KIND(External)
#undef KIND
  if (name != nullptr) Give(info, String::NewFromUtf8(I(), name, NewStringType::kInternalized).ToLocalChecked());
}

void PreviewEntries(Info info) {  // (object) -> [entries, whether they are pairs]
  bool pairs;
  Local<Array> entries;
  if (!info[0]->IsObject() || !info[0].As<Object>()->PreviewEntries(&pairs).ToLocal(&entries)) return;
  Give(info, List({entries, Boolean::New(I(), pairs)}));
}

class CloneDelegate : public ValueSerializer::Delegate {
  void ThrowDataCloneError(Local<String> message) override {
    Isolate::GetCurrent()->ThrowException(Exception::Error(message));
  }
};

void Ask(Info info) {  // (value) -> the answer of Node's own realm
  std::string bytes;
  if (!Pack(I(), info[0], &bytes)) return;
  if (!guest.AskNode(&bytes)) return Throw("this can't be told across realms");
  Give(info, Unpack(I(), bytes));
}

void Heap(Info info) {  // () -> sizes in bytes: all, used, at most, outside of it: V8's own, others', buffers
  HeapStatistics heap;
  I()->GetHeapStatistics(&heap);
  std::vector<Local<Value>> sizes;
  for (size_t size : {heap.total_heap_size(), heap.used_heap_size(), heap.heap_size_limit(), heap.malloced_memory(),
                      heap.external_memory(), guest.buffers()}) {
    sizes.push_back(v8::Number::New(I(), static_cast<double>(size)));
  }
  info.GetReturnValue().Set(Array::New(I(), sizes.data(), sizes.size()));
}

constexpr Native kNatives[] = {
    // The owner of a run.
    {"hooks", [](Info info) { guest.SetHooks(info[0].As<Object>()); }},
    {"send", [](Info info) { wire.Send(Kind::kMessage, Utf8(I(), info[0])); }},
    {"print", [](Info info) { wire.Print(static_cast<uint8_t>(Number(info, 0)), Utf8(I(), info[1])); }},
    {"limits", [](Info info) { guest.SetLimits(Number(info, 0), Number(info, 1), Number(info, 2)); }},
    {"stop", [](Info info) { guest.Stop(static_cast<int>(Number(info, 0))); }},
    {"allowWasm", [](Info) { guest.AllowWasm(); }},
    // (why, bytes): what is sent when that ends a run.
    {"setFinalMessage", [](Info info) { Bytes b(info[1]); guest.SetFinalMessage(static_cast<int>(Number(info, 0)), {b.data, b.size}); }},
    // The sandbox's kernel: bytes out; one frame in; whether one is there within so many milliseconds.
    {"sendBytes", [](Info info) { Bytes bytes(info[0]); wire.SendBytes({bytes.data, bytes.size}); }},
    {"receiveBody", [](Info info) { Give(info, NewBytes(wire.ReceiveBody())); }},
    {"readable", [](Info info) { info.GetReturnValue().Set(wire.Readable(static_cast<int>(Number(info, 0)))); }},
    {"exit", [](Info info) { _exit(static_cast<int>(Number(info, 0))); }},
    // The machine, and Node's own side of this process.
    {"now", [](Info info) { info.GetReturnValue().Set(std::chrono::steady_clock::now().time_since_epoch().count() / 1e6); }},
    {"cpuTime", [](Info info) { info.GetReturnValue().Set(std::clock() * (1e9 / CLOCKS_PER_SEC)); }},
    {"random", Random}, {"heap", Heap}, {"ask", Ask},
    {"runMicrotasks", [](Info) { I()->PerformMicrotaskCheckpoint(); }},
    {"enqueueMicrotask", [](Info info) { I()->EnqueueMicrotask(info[0].As<Function>()); }},
    // What V8 carries along from a promise to its reactions.
    {"getContinuation", [](Info info) { info.GetReturnValue().Set(I()->GetContinuationPreservedEmbedderData()); }},
    {"setContinuation", [](Info info) { I()->SetContinuationPreservedEmbedderData(info[0]); }},
    // A file of Node's library, or of ours.
    {"source", [](Info info) { Give(info, guest.Source(Utf8(I(), info[0])).FromMaybe(Local<String>())); }},
    // Bytes and text.
    {"encode", Encode}, {"decode", Decode}, {"write", Write}, {"compare", Compare},
    {"byteLength", [](Info info) { info.GetReturnValue().Set(static_cast<double>(info[0].As<String>()->Utf8LengthV2(I()))); }},
    {"pack", [](Info info) {
       std::string bytes;
       if (Pack(I(), info[0], &bytes)) Give(info, NewBytes(bytes));
     }},
    {"unpack", [](Info info) { Bytes bytes(info[0]); Give(info, Unpack(I(), {bytes.data, bytes.size})); }},
    // Values.
    {"typeOf", TypeOf}, {"previewEntries", PreviewEntries},
    {"constructorName", [](Info info) { info.GetReturnValue().Set(info[0].As<Object>()->GetConstructorName()); }},
    {"promiseDetails", [](Info info) {
       auto p = info[0].As<Promise>();
       Local<Value> result = Undefined(I());
       if (p->State() != Promise::kPending) result = p->Result();
       Give(info, List({Integer::New(I(), p->State()), result}));
     }},
    {"proxyDetails", [](Info info) {
       if (info[0]->IsProxy()) Give(info, List({info[0].As<Proxy>()->GetTarget(), info[0].As<Proxy>()->GetHandler()}));
     }},
};

}  // namespace

bool Pack(Isolate* isolate, Local<Value> value, std::string* bytes) {
  CloneDelegate delegate;
  ValueSerializer writer(isolate, &delegate);
  writer.WriteHeader();
  if (writer.WriteValue(isolate->GetCurrentContext(), value).IsNothing()) return false;
  auto [data, size] = writer.Release();
  bytes->assign(reinterpret_cast<char*>(data), size);
  free(data);
  return true;
}

MaybeLocal<Value> Unpack(Isolate* isolate, const std::string& bytes) {
  ValueDeserializer reader(isolate, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  Local<Context> context = isolate->GetCurrentContext();
  return reader.ReadHeader(context).IsNothing() ? MaybeLocal<Value>() : reader.ReadValue(context);
}

Local<Object> MakeNatives(Local<Context> context) {
  Local<Object> natives = Object::New(I());
  for (std::span<const Native> table : {std::span<const Native>(kNatives), CodeNatives()}) {
    for (const Native& native : table) {
      auto function = Function::New(context, native.function, {}, 0, ConstructorBehavior::kThrow).ToLocalChecked();
      natives->Set(context, Text(I(), native.name), function).Check();
    }
  }
  return natives;
}

}  // namespace belljar
