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

node::encoding Encoding(Info info, int index) { return static_cast<node::encoding>(static_cast<int>(Number(info, index))); }

void Give(Info info, MaybeLocal<Value> made) {
  Local<Value> value;
  if (made.ToLocal(&value)) info.GetReturnValue().Set(value);
}

void GivePair(Info info, Local<Value> first, Local<Value> second) {
  Local<Value> both[] = {first, second};
  info.GetReturnValue().Set(Array::New(I(), both, 2));
}

double Clock(clockid_t which) {  // nanoseconds
  timespec now;
  clock_gettime(which, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The bytes of an ArrayBuffer or a view of one.
struct Bytes {
  explicit Bytes(Local<Value> value) {
    if (value->IsArrayBufferView()) {
      auto view = value.As<ArrayBufferView>();
      store = view->Buffer()->GetBackingStore();
      data = static_cast<char*>(store->Data()) + view->ByteOffset();
      size = view->ByteLength();
    } else if (value->IsArrayBuffer() || value->IsSharedArrayBuffer()) {
      store = value->IsArrayBuffer() ? value.As<ArrayBuffer>()->GetBackingStore()
                                     : value.As<SharedArrayBuffer>()->GetBackingStore();
      data = static_cast<char*>(store->Data());
      size = store->ByteLength();
    }
  }
  std::shared_ptr<BackingStore> store;
  char* data = nullptr;
  size_t size = 0;
};

MaybeLocal<Value> NewBytes(std::string_view bytes) {
  Local<ArrayBuffer> buffer;
  if (!ArrayBuffer::MaybeNew(I(), bytes.size()).ToLocal(&buffer)) return {};
  if (!bytes.empty()) memcpy(buffer->Data(), bytes.data(), bytes.size());
  return Uint8Array::New(buffer, 0, bytes.size());
}

void Random(Info info) {
  Bytes out(info[0]);
  for (size_t done = 0; done < out.size;) {
    ssize_t count = getrandom(out.data + done, out.size - done, 0);
    if (count < 0) return Throw("no randomness");
    done += count;
  }
}

void Digest(Info info) {  // (name, bytes) -> bytes, or nothing if there is no such digest
  const EVP_MD* kind = EVP_get_digestbyname(Utf8(I(), info[0]).c_str());
  Bytes input(info[1]);
  unsigned char made[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (kind == nullptr || EVP_Digest(input.data, input.size, made, &size, kind, nullptr) != 1) return;
  Give(info, NewBytes({reinterpret_cast<char*>(made), size}));
}

// Code.

ScriptOrigin Origin(Local<Value> name, bool module) {
  return ScriptOrigin(name, 0, 0, false, -1, Local<Value>(), false, false, module);
}

void Compile(Info info) {  // (id, [parameters]) -> function: a file of Node's library, or of ours
  std::string id = Utf8(I(), info[0]);
  Local<String> source;
  if (!guest.Source(id).ToLocal(&source)) return;
  Local<Array> names = info[1].As<Array>();
  std::vector<Local<String>> parameters;
  for (uint32_t i = 0; i < names->Length(); i++) {
    parameters.push_back(names->Get(guest.context(), i).ToLocalChecked().As<String>());
  }
  ScriptCompiler::Source text(source, Origin(Text(I(), "node:" + id), false));
  Local<Function> made;
  if (ScriptCompiler::CompileFunction(guest.context(), &text, parameters.size(), parameters.data()).ToLocal(&made)) {
    info.GetReturnValue().Set(made);
  }
}

// Tells the caller that its code compiled: what is thrown from here on is no syntax error.
bool Compiled(Local<Value> callback) {
  return !callback->IsFunction() ||
         !callback.As<Function>()->Call(guest.context(), Undefined(I()), 0, nullptr).IsEmpty();
}

MaybeLocal<Module> Resolve(Local<Context>, Local<String> name, Local<FixedArray>, Local<Module>) {
  Throw("can't import '" + Utf8(I(), name) + "': put libraries into the prefix, and use what it defines");
  return {};
}

void RunModule(Info info) {  // (code, name, compiled) -> [namespace, promise]
  ScriptCompiler::Source text(info[0].As<String>(), Origin(info[1], true));
  Local<Module> module;
  Local<Value> promise;
  if (!ScriptCompiler::CompileModule(I(), &text).ToLocal(&module) || !Compiled(info[2])) return;
  if (module->InstantiateModule(guest.context(), Resolve).IsNothing()) return;
  if (module->Evaluate(guest.context()).ToLocal(&promise)) GivePair(info, module->GetModuleNamespace(), promise);
}

void RunScript(Info info) {  // (code, name, compiled) -> its completion value
  ScriptOrigin origin = Origin(info[1], false);
  Local<Script> script;
  if (!Script::Compile(guest.context(), info[0].As<String>(), &origin).ToLocal(&script) || !Compiled(info[2])) return;
  Give(info, script->Run(guest.context()));
}

// Text and bytes, by Node's own coders.

void Encode(Info info) {  // (bytes, encoding, start, end) -> text
  Bytes bytes(info[0]);
  size_t end = std::min(static_cast<size_t>(Number(info, 3)), bytes.size);
  size_t start = std::min(static_cast<size_t>(Number(info, 2)), end);
  auto* wide = Encoding(info, 1) == node::UCS2 ? reinterpret_cast<uint16_t*>(bytes.data + start) : nullptr;
  Give(info, wide != nullptr ? node::TryEncode(I(), wide, (end - start) / 2)
                             : node::TryEncode(I(), bytes.data + start, end - start, Encoding(info, 1)));
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

void Copy(Info info) {  // (from, to, to_start, from_start, count) -> how many bytes
  Bytes from(info[0]), to(info[1]);
  size_t at = Number(info, 2), start = Number(info, 3), count = Number(info, 4);
  if (start > from.size || at > to.size) return;
  count = std::min({count, from.size - start, to.size - at});
  if (count > 0) memmove(to.data + at, from.data + start, count);
  info.GetReturnValue().Set(static_cast<double>(count));
}

void Compare(Info info) {
  Bytes a(info[0]), b(info[1]);
  int order = std::string_view(a.data, a.size).compare(std::string_view(b.data, b.size));
  info.GetReturnValue().Set(order < 0 ? -1 : order > 0);
}

void IndexOf(Info info) {  // (bytes, needle, offset, forward, unit) -> index or -1; in steps of a unit of bytes
  Bytes hay(info[0]), needle(info[1]);
  std::string_view text(hay.data, hay.size), wanted(needle.data, needle.size);
  bool forward = info[3]->IsTrue();
  size_t at = Number(info, 2), unit = Number(info, 4), start = at % unit;
  do {
    at = forward ? text.find(wanted, at) : text.rfind(wanted, at);
    if (at == std::string_view::npos || at % unit == start) break;
  } while (forward ? ++at : at-- > 0);
  info.GetReturnValue().Set(at == std::string_view::npos ? -1.0 : static_cast<double>(at));
}

// URLs, by the parser that Node has inside (ada; its C interface is not in Node's headers).

extern "C" {
struct ada_string {
  const char* data;
  size_t length;
};
typedef void* ada_url;
ada_url ada_parse(const char* input, size_t length);
ada_url ada_parse_with_base(const char* input, size_t length, const char* base, size_t base_length);
bool ada_is_valid(ada_url);
void ada_free(ada_url);
ada_string ada_get_href(ada_url);
const uint32_t* ada_get_components(ada_url);
uint8_t ada_get_scheme_type(ada_url);
typedef bool Setter(ada_url, const char*, size_t);
Setter ada_set_href, ada_set_host, ada_set_hostname, ada_set_protocol, ada_set_username, ada_set_password, ada_set_port,
    ada_set_pathname;
void ada_set_search(ada_url, const char*, size_t), ada_set_hash(ada_url, const char*, size_t);
}

// Fills the components (9 numbers) and gives the href; nothing for what is no URL.
void GiveUrl(Info info, ada_url url) {
  if (ada_is_valid(url)) {
    Bytes out(info[0]);
    memcpy(out.data, ada_get_components(url), 32);
    reinterpret_cast<uint32_t*>(out.data)[8] = ada_get_scheme_type(url);
    ada_string href = ada_get_href(url);
    info.GetReturnValue().Set(Text(I(), {href.data, href.length}));
  }
  ada_free(url);
}

void ParseUrl(Info info) {  // (components, input, base)
  std::string input = Utf8(I(), info[1]), base = info[2]->IsUndefined() ? "" : Utf8(I(), info[2]);
  GiveUrl(info, info[2]->IsUndefined() ? ada_parse(input.data(), input.size())
                                       : ada_parse_with_base(input.data(), input.size(), base.data(), base.size()));
}

void UpdateUrl(Info info) {  // (components, href, action, value); the actions are numbered as Node's library does
  constexpr Setter* kSetters[] = {ada_set_protocol, ada_set_host,     ada_set_hostname, ada_set_port,
                                  ada_set_username, ada_set_password, ada_set_pathname};
  std::string href = Utf8(I(), info[1]), text = Utf8(I(), info[3]);
  ada_url url = ada_parse(href.data(), href.size());
  int action = static_cast<int>(Number(info, 2));
  if (action < 7) kSetters[action](url, text.data(), text.size());
  if (action == 7) ada_set_search(url, text.data(), text.size());
  if (action == 8) ada_set_hash(url, text.data(), text.size());
  if (action == 9 && !ada_set_href(url, text.data(), text.size())) return ada_free(url);
  GiveUrl(info, url);
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

void PreviewEntries(Info info) {  // (object) -> entries, or (object, true) -> [entries, whether they are pairs]
  bool pairs;
  Local<Array> entries;
  if (!info[0]->IsObject() || !info[0].As<Object>()->PreviewEntries(&pairs).ToLocal(&entries)) return;
  if (info.Length() == 1) return info.GetReturnValue().Set(entries);
  GivePair(info, entries, Boolean::New(I(), pairs));
}

void OwnNonIndex(Info info) {  // (object, filter) -> its own property names that are no indices
  auto filter = static_cast<PropertyFilter>(static_cast<int>(Number(info, 1)));
  Local<Array> names;
  if (info[0].As<Object>()
          ->GetPropertyNames(guest.context(), KeyCollectionMode::kOwnOnly, filter, IndexFilter::kSkipIndices)
          .ToLocal(&names)) {
    info.GetReturnValue().Set(names);
  }
}

class CloneDelegate : public ValueSerializer::Delegate {
  void ThrowDataCloneError(Local<String> message) override { I()->ThrowException(Exception::Error(message)); }
};

void Clone(Info info) {  // (value, [array buffers to transfer]) -> a structured clone
  CloneDelegate delegate;
  ValueSerializer writer(I(), &delegate);
  Local<Array> moved = info[1].As<Array>();
  std::vector<Local<ArrayBuffer>> buffers;
  for (uint32_t i = 0; i < moved->Length(); i++) {
    buffers.push_back(moved->Get(guest.context(), i).ToLocalChecked().As<ArrayBuffer>());
    writer.TransferArrayBuffer(i, buffers.back());
  }
  writer.WriteHeader();
  if (writer.WriteValue(guest.context(), info[0]).IsNothing()) return;
  auto [data, size] = writer.Release();
  ValueDeserializer reader(I(), data, size);
  for (uint32_t i = 0; i < buffers.size(); i++) {
    auto store = buffers[i]->GetBackingStore();
    buffers[i]->Detach(Local<Value>()).Check();
    reader.TransferArrayBuffer(i, ArrayBuffer::New(I(), store));
  }
  if (!reader.ReadHeader(guest.context()).IsNothing()) Give(info, reader.ReadValue(guest.context()));
  free(data);
}

constexpr struct {
  const char* name;
  FunctionCallback function;
} kNatives[] = {
    // The owner of a run.
    {"hooks", [](Info info) { guest.SetHooks(info[0].As<Object>()); }},
    {"send", [](Info info) { wire.Send(Kind::kMessage, Utf8(I(), info[0])); }},
    {"print", [](Info info) { wire.Print(static_cast<uint8_t>(Number(info, 0)), Utf8(I(), info[1])); }},
    {"limits", [](Info info) { guest.SetLimits(Number(info, 0), Number(info, 1), Number(info, 2)); }},
    {"stop", [](Info info) { guest.Stop(static_cast<int>(Number(info, 0))); }},
    {"allowWasm", [](Info) { guest.AllowWasm(); }},
    // (why, bytes): what is sent when that ends a run.
    {"lastWords", [](Info info) { Bytes b(info[1]); guest.SetLastWords(static_cast<int>(Number(info, 0)), {b.data, b.size}); }},
    // The sandbox's kernel: bytes out; one frame in; whether one is there within so many milliseconds.
    {"sendBytes", [](Info info) { Bytes bytes(info[0]); wire.SendBytes({bytes.data, bytes.size}); }},
    {"receiveBody", [](Info info) { Give(info, NewBytes(wire.ReceiveBody())); }},
    {"readable", [](Info info) { info.GetReturnValue().Set(wire.Readable(static_cast<int>(Number(info, 0)))); }},
    {"exit", [](Info info) { _exit(static_cast<int>(Number(info, 0))); }},
    // The machine.
    {"now", [](Info info) { info.GetReturnValue().Set(Clock(CLOCK_MONOTONIC) / 1e6); }},
    {"cpuTime", [](Info info) { info.GetReturnValue().Set(Clock(CLOCK_PROCESS_CPUTIME_ID)); }},
    {"random", Random}, {"digest", Digest},
    // Code.
    {"compile", Compile}, {"module", RunModule}, {"script", RunScript},
    {"strip", [](Info info) { Give(info, guest.Strip(info[0].As<String>()).FromMaybe(Local<String>())); }},
    // Bytes, text, URLs.
    {"encode", Encode}, {"decode", Decode}, {"write", Write}, {"copy", Copy}, {"compare", Compare}, {"indexOf", IndexOf},
    {"byteLength", [](Info info) { info.GetReturnValue().Set(static_cast<double>(info[0].As<String>()->Utf8LengthV2(I()))); }},
    {"parseUrl", ParseUrl}, {"updateUrl", UpdateUrl},
    // Values.
    {"typeOf", TypeOf}, {"previewEntries", PreviewEntries}, {"ownNonIndex", OwnNonIndex}, {"clone", Clone},
    {"constructorName", [](Info info) { info.GetReturnValue().Set(info[0].As<Object>()->GetConstructorName()); }},
    {"promiseDetails", [](Info info) {
       auto p = info[0].As<Promise>();
       Local<Value> result = Undefined(I());
       if (p->State() != Promise::kPending) result = p->Result();
       GivePair(info, Integer::New(I(), p->State()), result);
     }},
    {"proxyDetails", [](Info info) {
       if (info[0]->IsProxy()) GivePair(info, info[0].As<Proxy>()->GetTarget(), info[0].As<Proxy>()->GetHandler());
     }},
};

}  // namespace

Local<Object> MakeNatives(Local<Context> context) {
  Local<Object> natives = Object::New(I());
  for (const auto& native : kNatives) {
    Local<Function> function = Function::New(context, native.function, {}, 0, ConstructorBehavior::kThrow).ToLocalChecked();
    natives->Set(context, Text(I(), native.name), function).Check();
  }
  return natives;
}

}  // namespace belljar
