// What our own JavaScript in the guest's realm may call. None of it is reachable for a guest but through that code.
#include <openssl/evp.h>
#include <sys/random.h>
#include <time.h>

#include <cstring>
#include <vector>

#include "guest.h"
#include "wire.h"

namespace belljar {

using namespace v8;
using Info = const FunctionCallbackInfo<Value>&;

namespace {

Isolate* I() { return guest.isolate(); }

void Throw(std::string_view message) { I()->ThrowException(Exception::TypeError(Text(I(), message))); }

double Number(Info info, int index) { return info[index].As<v8::Number>()->Value(); }

struct Bytes {
  explicit Bytes(Local<Value> value) {
    if (value->IsArrayBufferView()) {
      auto view = value.As<ArrayBufferView>();
      store = view->Buffer()->GetBackingStore();
      data = static_cast<uint8_t*>(store->Data()) + view->ByteOffset();
      size = view->ByteLength();
    } else if (value->IsArrayBuffer() || value->IsSharedArrayBuffer()) {
      store = value->IsArrayBuffer() ? value.As<ArrayBuffer>()->GetBackingStore()
                                     : value.As<SharedArrayBuffer>()->GetBackingStore();
      data = static_cast<uint8_t*>(store->Data());
      size = store->ByteLength();
    }
  }
  std::shared_ptr<BackingStore> store;
  uint8_t* data = nullptr;
  size_t size = 0;
};

MaybeLocal<Uint8Array> NewBytes(std::string_view bytes) {
  Local<ArrayBuffer> buffer;
  if (!ArrayBuffer::MaybeNew(I(), bytes.size()).ToLocal(&buffer)) return {};
  if (!bytes.empty()) memcpy(buffer->Data(), bytes.data(), bytes.size());
  return Uint8Array::New(buffer, 0, bytes.size());
}

// The process and the host.

void Send(Info info) { wire.Send(Kind::kMessage, Utf8(I(), info[0])); }

void Print(Info info) { wire.Print(static_cast<uint8_t>(Number(info, 0)), Utf8(I(), info[1])); }

// An engine program's connection: bytes out, one frame in, whether one is there within so many milliseconds.
void SendBytes(Info info) {
  Bytes bytes(info[0]);
  wire.SendBytes({reinterpret_cast<char*>(bytes.data), bytes.size});
}

void ReceiveBody(Info info) {
  Local<Uint8Array> bytes;
  if (NewBytes(wire.ReceiveBody()).ToLocal(&bytes)) info.GetReturnValue().Set(bytes);
}

void Readable(Info info) { info.GetReturnValue().Set(wire.Readable(static_cast<int>(Number(info, 0)))); }

void SetLimits(Info info) { guest.SetLimits(Number(info, 0), Number(info, 1), Number(info, 2)); }

void AllowWasm(Info) { guest.AllowWasm(); }

void Stop(Info info) { guest.Stop(static_cast<Why>(Number(info, 0))); }

void Exit(Info info) {
  wire.Flush();
  _exit(static_cast<int>(Number(info, 0)));
}

void Now(Info info) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  info.GetReturnValue().Set(static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6);
}

void CpuTime(Info info) {  // nanoseconds
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  info.GetReturnValue().Set(static_cast<double>(used.tv_sec) * 1e9 + static_cast<double>(used.tv_nsec));
}

void Random(Info info) {
  Bytes out(info[0]);
  for (size_t done = 0; done < out.size;) {
    ssize_t count = getrandom(out.data + done, out.size - done, 0);
    if (count < 0) return Throw("no randomness");
    done += count;
  }
}

void Digest(Info info) {
  const EVP_MD* kind = EVP_get_digestbyname(Utf8(I(), info[0]).c_str());
  if (kind == nullptr) return;
  Bytes input(info[1]);
  char made[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (EVP_Digest(input.data, input.size, reinterpret_cast<unsigned char*>(made), &size, kind, nullptr) != 1) return;
  Local<Uint8Array> bytes;
  if (NewBytes({made, size}).ToLocal(&bytes)) info.GetReturnValue().Set(bytes);
}

// Code.

ScriptOrigin Origin(Local<Value> name, bool module) {
  return ScriptOrigin(name, 0, 0, false, -1, Local<Value>(), false, false, module);
}

// compile(id, [parameters]) -> function: a file of Node's library.
void Compile(Info info) {
  std::string id = Utf8(I(), info[0]);
  Local<String> source;
  if (!guest.Source(id).ToLocal(&source)) return;
  Local<Context> realm = guest.context();
  Local<Array> names = info[1].As<Array>();
  std::vector<Local<String>> parameters;
  for (uint32_t i = 0; i < names->Length(); i++) {
    parameters.push_back(names->Get(realm, i).ToLocalChecked().As<String>());
  }
  ScriptCompiler::Source text(source, Origin(Text(I(), "node:" + id), false));
  Local<Function> function;
  if (ScriptCompiler::CompileFunction(realm, &text, parameters.size(), parameters.data()).ToLocal(&function)) {
    info.GetReturnValue().Set(function);
  }
}

MaybeLocal<Module> Resolve(Local<Context>, Local<String> name, Local<FixedArray>, Local<Module>) {
  Throw("can't import '" + Utf8(I(), name) + "': put libraries into the prefix, and use what it defines");
  return {};
}

// module(code, name) -> [namespace, promise]. Throws what compiling, linking and the start of its evaluation throw.
void RunModule(Info info) {
  Local<Context> realm = guest.context();
  ScriptCompiler::Source text(info[0].As<String>(), Origin(info[1], true));
  Local<Module> module;
  Local<Value> promise;
  if (!ScriptCompiler::CompileModule(I(), &text).ToLocal(&module)) return;
  if (info[2]->IsFunction()) {  // it compiled: what is thrown from here on is no syntax error
    Local<Value> ignored;
    if (!info[2].As<Function>()->Call(realm, Undefined(I()), 0, nullptr).ToLocal(&ignored)) return;
  }
  if (module->InstantiateModule(realm, Resolve).IsNothing() || !module->Evaluate(realm).ToLocal(&promise)) return;
  Local<Value> both[] = {module->GetModuleNamespace(), promise};
  info.GetReturnValue().Set(Array::New(I(), both, 2));
}

// script(code, name, compiled) -> its completion value.
void RunScript(Info info) {
  Local<Context> realm = guest.context();
  ScriptOrigin origin = Origin(info[1], false);
  Local<Script> script;
  Local<Value> result;
  if (!Script::Compile(realm, info[0].As<String>(), &origin).ToLocal(&script)) return;
  if (info[2]->IsFunction() && !info[2].As<Function>()->Call(realm, Undefined(I()), 0, nullptr).ToLocal(&result)) return;
  if (script->Run(realm).ToLocal(&result)) info.GetReturnValue().Set(result);
}

void Strip(Info info) {
  Local<String> code;
  if (guest.Strip(info[0].As<String>()).ToLocal(&code)) info.GetReturnValue().Set(code);
}

// Text and bytes, by Node's own coders.

void Encode(Info info) {  // (bytes, encoding, start, end) -> text
  Bytes bytes(info[0]);
  size_t end = std::min(static_cast<size_t>(Number(info, 3)), bytes.size);
  size_t start = std::min(static_cast<size_t>(Number(info, 2)), end);
  auto encoding = static_cast<node::encoding>(static_cast<int>(Number(info, 1)));
  auto* data = reinterpret_cast<char*>(bytes.data) + start;
  Local<Value> text;
  if (node::TryEncode(I(), data, end - start, encoding).ToLocal(&text)) info.GetReturnValue().Set(text);
}

void Decode(Info info) {  // (text, encoding) -> bytes
  auto encoding = static_cast<node::encoding>(static_cast<int>(Number(info, 1)));
  ssize_t size = node::DecodeBytes(I(), info[0], encoding);
  std::string made(std::max<ssize_t>(size, 0), '\0');
  ssize_t count = node::DecodeWrite(I(), made.data(), made.size(), info[0], encoding);
  Local<Uint8Array> bytes;
  if (NewBytes({made.data(), static_cast<size_t>(std::max<ssize_t>(count, 0))}).ToLocal(&bytes)) {
    info.GetReturnValue().Set(bytes);
  }
}

void Write(Info info) {  // (bytes, text, encoding, offset, length) -> how many bytes
  Bytes to(info[0]);
  auto encoding = static_cast<node::encoding>(static_cast<int>(Number(info, 2)));
  size_t at = std::min(static_cast<size_t>(Number(info, 3)), to.size);
  size_t room = std::min(static_cast<size_t>(Number(info, 4)), to.size - at);
  ssize_t count = node::DecodeWrite(I(), reinterpret_cast<char*>(to.data) + at, room, info[1], encoding);
  info.GetReturnValue().Set(static_cast<double>(std::max<ssize_t>(count, 0)));
}

void Compare(Info info) {
  Bytes a(info[0]), b(info[1]);
  size_t both = std::min(a.size, b.size);
  int order = both == 0 ? 0 : memcmp(a.data, b.data, both);
  if (order == 0) order = a.size < b.size ? -1 : a.size > b.size;
  info.GetReturnValue().Set(order < 0 ? -1 : order > 0);
}

void IndexOf(Info info) {  // (bytes, needle, offset, forward, step) -> index or -1
  Bytes hay(info[0]), needle(info[1]);
  ssize_t at = Number(info, 2), step = Number(info, 4), last = static_cast<ssize_t>(hay.size) - needle.size;
  bool forward = info[3]->IsTrue();
  for (; at >= 0 && at <= last; at += forward ? step : -step) {
    if (forward && step == 1) {
      auto* found = static_cast<uint8_t*>(memmem(hay.data + at, hay.size - at, needle.data, needle.size));
      return info.GetReturnValue().Set(found == nullptr ? -1.0 : static_cast<double>(found - hay.data));
    }
    if (memcmp(hay.data + at, needle.data, needle.size) == 0) return info.GetReturnValue().Set(static_cast<double>(at));
  }
  info.GetReturnValue().Set(-1);
}

void Validity(Info info) {  // of bytes as UTF-8: 0 invalid, 1 valid, 2 ASCII
  Bytes bytes(info[0]);
  int kind = 2;
  for (size_t i = 0; i < bytes.size;) {
    uint8_t lead = bytes.data[i++];
    if (lead < 0x80) continue;
    kind = 1;
    int more = lead >= 0xc2 && lead < 0xe0 ? 1 : lead >= 0xe0 && lead < 0xf0 ? 2 : lead >= 0xf0 && lead < 0xf5 ? 3 : 0;
    if (more == 0 || i + more > bytes.size) return info.GetReturnValue().Set(0);
    uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80, high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    for (; more > 0; more--, low = 0x80, high = 0xbf) {
      uint8_t byte = bytes.data[i++];
      if (byte < low || byte > high) return info.GetReturnValue().Set(0);
    }
  }
  info.GetReturnValue().Set(kind);
}

void ByteLength(Info info) { info.GetReturnValue().Set(static_cast<double>(info[0].As<String>()->Utf8LengthV2(I()))); }

void Copy(Info info) {  // (from, to, to_start, from_start, count)
  Bytes from(info[0]), to(info[1]);
  size_t at = Number(info, 2), start = Number(info, 3), count = Number(info, 4);
  if (start > from.size || at > to.size) return;
  count = std::min({count, from.size - start, to.size - at});
  if (count > 0) memmove(to.data + at, from.data + start, count);
  info.GetReturnValue().Set(static_cast<double>(count));
}

// URLs, by the parser that Node has inside (ada; its C interface is not in Node's headers).

extern "C" {
struct ada_string {
  const char* data;
  size_t length;
};
struct ada_url_components {
  uint32_t protocol_end, username_end, host_start, host_end, port, pathname_start, search_start, hash_start;
};
typedef void* ada_url;
ada_url ada_parse(const char* input, size_t length);
ada_url ada_parse_with_base(const char* input, size_t length, const char* base, size_t base_length);
bool ada_is_valid(ada_url url);
void ada_free(ada_url url);
ada_string ada_get_href(ada_url url);
const ada_url_components* ada_get_components(ada_url url);
uint8_t ada_get_scheme_type(ada_url url);
bool ada_set_href(ada_url url, const char* input, size_t length);
bool ada_set_host(ada_url url, const char* input, size_t length);
bool ada_set_hostname(ada_url url, const char* input, size_t length);
bool ada_set_protocol(ada_url url, const char* input, size_t length);
bool ada_set_username(ada_url url, const char* input, size_t length);
bool ada_set_password(ada_url url, const char* input, size_t length);
bool ada_set_port(ada_url url, const char* input, size_t length);
bool ada_set_pathname(ada_url url, const char* input, size_t length);
void ada_set_search(ada_url url, const char* input, size_t length);
void ada_set_hash(ada_url url, const char* input, size_t length);
}

// Fills the components (9 numbers) and gives the href; nothing for what is no URL.
void GiveUrl(Info info, ada_url url, Local<Value> components) {
  if (ada_is_valid(url)) {
    Bytes out(components);
    memcpy(out.data, ada_get_components(url), sizeof(ada_url_components));
    reinterpret_cast<uint32_t*>(out.data)[8] = ada_get_scheme_type(url);
    ada_string href = ada_get_href(url);
    info.GetReturnValue().Set(Text(I(), {href.data, href.length}));
  }
  ada_free(url);
}

void ParseUrl(Info info) {  // (components, input, base)
  std::string input = Utf8(I(), info[1]);
  if (info[2]->IsUndefined()) return GiveUrl(info, ada_parse(input.data(), input.size()), info[0]);
  std::string base = Utf8(I(), info[2]);
  GiveUrl(info, ada_parse_with_base(input.data(), input.size(), base.data(), base.size()), info[0]);
}

void UpdateUrl(Info info) {  // (components, href, action, value); the actions are numbered as Node's library does
  std::string href = Utf8(I(), info[1]), text = Utf8(I(), info[3]);
  ada_url url = ada_parse(href.data(), href.size());
  const char* data = text.data();
  size_t size = text.size();
  switch (static_cast<int>(Number(info, 2))) {
    case 0: ada_set_protocol(url, data, size); break;
    case 1: ada_set_host(url, data, size); break;
    case 2: ada_set_hostname(url, data, size); break;
    case 3: ada_set_port(url, data, size); break;
    case 4: ada_set_username(url, data, size); break;
    case 5: ada_set_password(url, data, size); break;
    case 6: ada_set_pathname(url, data, size); break;
    case 7: ada_set_search(url, data, size); break;
    case 8: ada_set_hash(url, data, size); break;
    case 9:
      if (!ada_set_href(url, data, size)) return ada_free(url);
  }
  GiveUrl(info, url, info[0]);
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
  if (name != nullptr) info.GetReturnValue().Set(String::NewFromUtf8(I(), name, NewStringType::kInternalized).ToLocalChecked());
}

void PromiseDetails(Info info) {
  Local<Promise> promise = info[0].As<Promise>();
  Local<Value> both[] = {Integer::New(I(), promise->State()), Undefined(I())};
  if (promise->State() != Promise::kPending) both[1] = promise->Result();
  info.GetReturnValue().Set(Array::New(I(), both, 2));
}

void ProxyDetails(Info info) {
  if (!info[0]->IsProxy()) return;
  Local<Value> both[] = {info[0].As<Proxy>()->GetTarget(), info[0].As<Proxy>()->GetHandler()};
  info.GetReturnValue().Set(Array::New(I(), both, 2));
}

void PreviewEntries(Info info) {
  bool pairs;
  Local<Array> entries;
  if (!info[0]->IsObject() || !info[0].As<Object>()->PreviewEntries(&pairs).ToLocal(&entries)) return;
  if (info.Length() == 1) return info.GetReturnValue().Set(entries);
  Local<Value> both[] = {entries, Boolean::New(I(), pairs)};
  info.GetReturnValue().Set(Array::New(I(), both, 2));
}

void OwnNonIndex(Info info) {
  Local<Array> names;
  auto filter = static_cast<PropertyFilter>(static_cast<int>(Number(info, 1)));
  if (info[0].As<Object>()->GetPropertyNames(guest.context(), KeyCollectionMode::kOwnOnly, filter, IndexFilter::kSkipIndices)
          .ToLocal(&names)) {
    info.GetReturnValue().Set(names);
  }
}

void ConstructorName(Info info) { info.GetReturnValue().Set(info[0].As<Object>()->GetConstructorName()); }

class CloneDelegate : public ValueSerializer::Delegate {
 public:
  void ThrowDataCloneError(Local<String> message) override { I()->ThrowException(Exception::Error(message)); }
};

void Clone(Info info) {  // (value, [array buffers to transfer])
  Local<Context> realm = guest.context();
  CloneDelegate delegate;
  ValueSerializer writer(I(), &delegate);
  Local<Array> moved = info[1].As<Array>();
  std::vector<Local<ArrayBuffer>> buffers;
  for (uint32_t i = 0; i < moved->Length(); i++) {
    buffers.push_back(moved->Get(realm, i).ToLocalChecked().As<ArrayBuffer>());
    writer.TransferArrayBuffer(i, buffers.back());
  }
  writer.WriteHeader();
  if (writer.WriteValue(realm, info[0]).IsNothing()) return;
  auto [data, size] = writer.Release();
  ValueDeserializer reader(I(), data, size);
  for (uint32_t i = 0; i < buffers.size(); i++) {
    auto store = buffers[i]->GetBackingStore();
    buffers[i]->Detach(Local<Value>()).Check();
    reader.TransferArrayBuffer(i, ArrayBuffer::New(I(), store));
  }
  Local<Value> copy;
  if (!reader.ReadHeader(realm).IsNothing() && reader.ReadValue(realm).ToLocal(&copy)) info.GetReturnValue().Set(copy);
  free(data);
}

void SetHooks(Info info) { guest.SetHooks(info[0].As<Object>()); }

}  // namespace

Local<Object> MakeNatives(Local<Context> context) {
  Local<Object> natives = Object::New(I());
  static constexpr struct {
    const char* name;
    FunctionCallback function;
  } all[] = {
      {"send", Send}, {"print", Print}, {"sendBytes", SendBytes},
      {"receiveBody", ReceiveBody}, {"readable", Readable}, {"limits", SetLimits}, {"allowWasm", AllowWasm}, {"stop", Stop}, {"exit", Exit},
      {"now", Now}, {"cpuTime", CpuTime}, {"random", Random}, {"digest", Digest}, {"compile", Compile}, {"module", RunModule},
      {"script", RunScript}, {"strip", Strip}, {"encode", Encode}, {"decode", Decode}, {"byteLength", ByteLength},
      {"write", Write}, {"compare", Compare}, {"indexOf", IndexOf}, {"validity", Validity},
      {"copy", Copy}, {"parseUrl", ParseUrl}, {"updateUrl", UpdateUrl}, {"typeOf", TypeOf},
      {"promiseDetails", PromiseDetails}, {"proxyDetails", ProxyDetails}, {"previewEntries", PreviewEntries},
      {"ownNonIndex", OwnNonIndex}, {"constructorName", ConstructorName}, {"clone", Clone}, {"hooks", SetHooks},
  };
  for (const auto& native : all) {
    Local<Function> function = Function::New(context, native.function, {}, 0, ConstructorBehavior::kThrow).ToLocalChecked();
    natives->Set(context, Text(I(), native.name), function).Check();
  }
  return natives;
}

}  // namespace belljar
