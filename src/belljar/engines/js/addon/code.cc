// Code: scripts, functions and ES modules, compiled, linked and run. Scripts and modules have numbers for our JavaScript.
#include <algorithm>
#include <vector>

#include "guest.h"

namespace belljar {

using namespace v8;

namespace {

std::vector<Global<Context>> contexts;  // further ones, by number
std::vector<Global<Module>> modules;

int Int(Local<Value> value) { return value.As<Int32>()->Value(); }
Local<Module> Numbered(Info info) { return modules[Int(info[0])].Get(I()); }

int NumberOf(Local<Module> module) {
  return static_cast<int>(std::find(modules.rbegin(), modules.rend(), module).base() - modules.begin()) - 1;
}

Local<Integer> AddModule(Local<Module> module) {
  modules.emplace_back(I(), module);
  return Integer::New(I(), static_cast<int>(modules.size()) - 1);
}

std::vector<Local<String>> Strings(Local<Value> array) {
  std::vector<Local<String>> made;
  for (uint32_t i = 0; i < array.As<Array>()->Length(); i++) {
    made.push_back(array.As<Array>()->Get(guest.context(), i).ToLocalChecked().As<String>());
  }
  return made;
}

// (code, name, line, column, id, ...): `id` is what a dynamic import in the code is told of where it is.
ScriptCompiler::Source SourceOf(Info info, bool module) {
  Local<PrimitiveArray> options = PrimitiveArray::New(I(), 1);
  options->Set(I(), 0, info[4].As<Primitive>());
  ScriptOrigin origin(info[1], Int(info[2]), Int(info[3]), false, -1, Local<Value>(), false, false, module, options);
  return ScriptCompiler::Source(info[0].As<String>(), origin);
}

void CompileFunction(Info info) {  // (..., parameters, whole) -> [function, the source map it names]
  std::vector<Local<String>> parameters = Strings(info[5]);
  ScriptCompiler::Source source = SourceOf(info, false);
  Local<Function> made;
  auto how = info[6]->IsTrue() ? ScriptCompiler::kEagerCompile : ScriptCompiler::kNoCompileOptions;
  auto compiled = ScriptCompiler::CompileFunction(guest.context(), &source, parameters.size(), parameters.data(), 0,
                                                  nullptr, how);
  if (compiled.ToLocal(&made)) Give(info, List({made, made->GetScriptOrigin().SourceMapUrl()}));
}

void RunScript(Info info) {  // (..., whether to run it, number of a context) -> [completion value, the source map it names]
  Local<Context> context = info[6]->IsNumber() ? contexts[Int(info[6])].Get(I()) : I()->GetCurrentContext();
  Context::Scope scope(context);
  ScriptCompiler::Source source = SourceOf(info, false);
  Local<Script> script;
  Local<Value> value = Undefined(I());
  if (!ScriptCompiler::Compile(context, &source).ToLocal(&script)) return;
  if (info[5]->IsTrue() && !script->Run(context).ToLocal(&value)) return;
  Give(info, List({value, script->GetUnboundScript()->GetSourceMappingURL()}));
}

void NewContext(Info info) {  // () -> [number, its global object]
  Local<Context> made = Context::New(I());
  made->SetSecurityToken(guest.context()->GetSecurityToken());
  contexts.emplace_back(I(), made);
  Give(info, List({Integer::New(I(), static_cast<int>(contexts.size()) - 1), made->Global()}));
}

// Of an import: name and value of each attribute. In a module's requests, every third item is a position.
Local<Array> Attributes(Local<FixedArray> from, int step) {
  std::vector<Local<Value>> flat;
  for (int i = 0; i < from->Length(); i += step) {
    flat.push_back(from->Get(I()->GetCurrentContext(), i).As<Value>());
    flat.push_back(from->Get(I()->GetCurrentContext(), i + 1).As<Value>());
  }
  return Array::New(I(), flat.data(), flat.size());
}

void CompileModule(Info info) {  // -> [number, requests: [name, phase, attributes], source map, awaits]
  ScriptCompiler::Source source = SourceOf(info, true);
  Local<Context> context = I()->GetCurrentContext();
  Local<Module> made;
  if (!ScriptCompiler::CompileModule(I(), &source).ToLocal(&made)) return;
  std::vector<Local<Value>> requests;
  for (int i = 0; i < made->GetModuleRequests()->Length(); i++) {
    auto request = made->GetModuleRequests()->Get(context, i).As<ModuleRequest>();
    requests.push_back(List({request->GetSpecifier(), Integer::New(I(), static_cast<int>(request->GetPhase())),
                             Attributes(request->GetImportAttributes(), 3)}));
  }
  Give(info, List({AddModule(made), Array::New(I(), requests.data(), requests.size()),
                                  made->GetUnboundModuleScript()->GetSourceMappingURL(),
                                  Boolean::New(I(), made->HasTopLevelAwait())}));
}

void MakeSynthetic(Info info) {  // (name, names of exports) -> number
  std::vector<Local<String>> exports = Strings(info[1]);
  auto evaluate = [](Local<Context> context, Local<Module> module) -> MaybeLocal<Value> {
    Local<Promise::Resolver> done;
    if (guest.Hook("evaluate", {Integer::New(I(), NumberOf(module))}).IsEmpty() ||
        !Promise::Resolver::New(context).ToLocal(&done) || done->Resolve(context, Undefined(I())).IsNothing()) {
      return {};
    }
    return done->GetPromise();
  };
  MemorySpan<const Local<String>> span(exports.data(), exports.size());
  info.GetReturnValue().Set(AddModule(Module::CreateSyntheticModule(I(), info[0].As<String>(), span, evaluate)));
}

MaybeLocal<Module> Resolve(Local<Context>, Local<String> name, Local<FixedArray> attributes, Local<Module> from) {
  Local<Value> number;
  if (!guest.Hook("resolve", {Integer::New(I(), NumberOf(from)), name, Attributes(attributes, 3)}).ToLocal(&number)) return {};
  return modules[Int(number)].Get(I());
}

MaybeLocal<Promise> Import(Local<Context> context, Local<Data> options, Local<Value> name, Local<String> request,
                           Local<FixedArray> attributes) {
  Local<FixedArray> held = options.As<FixedArray>();
  Local<Value> id = Undefined(I()), promise;
  if (held->Length() > 0) id = held->Get(context, 0).As<Value>();
  if (!guest.Hook("import", {id, request, Attributes(attributes, 2), name}).ToLocal(&promise)) return {};
  return promise.As<Promise>();
}

Local<Value> Where(Local<Message> message) {  // [file, line, text of the line, first and last column]
  Local<Context> context = I()->GetCurrentContext();
  if (message.IsEmpty()) return Undefined(I());
  return List({message->GetScriptResourceName(), Integer::New(I(), message->GetLineNumber(context).FromMaybe(0)),
               message->GetSourceLine(context).FromMaybe(String::Empty(I())),
               Integer::New(I(), message->GetStartColumn(context).FromMaybe(0)),
               Integer::New(I(), message->GetEndColumn(context).FromMaybe(0))});
}

void Attempt(Info info) {  // (function) -> [value], or [what it threw, where]
  TryCatch failed(I());
  Local<Value> value;
  if (info[0].As<Function>()->Call(I()->GetCurrentContext(), Undefined(I()), 0, nullptr).ToLocal(&value)) {
    return Give(info, List({value}));
  }
  if (failed.HasTerminated()) return;
  Give(info, List({failed.Exception(), Where(failed.Message())}));
}

constexpr Native kNatives[] = {
    {"compileFunction", CompileFunction}, {"script", RunScript}, {"newContext", NewContext},
    {"compileModule", CompileModule}, {"makeSynthetic", MakeSynthetic},
    {"instantiate", [](Info info) { Numbered(info)->InstantiateModule(I()->GetCurrentContext(), Resolve).IsNothing(); }},
    {"evaluate", [](Info info) { Give(info, Numbered(info)->Evaluate(I()->GetCurrentContext())); }},
    {"status", [](Info info) { info.GetReturnValue().Set(static_cast<int>(Numbered(info)->GetStatus())); }},
    {"namespace", [](Info info) { info.GetReturnValue().Set(Numbered(info)->GetModuleNamespace()); }},
    {"error", [](Info info) { info.GetReturnValue().Set(Numbered(info)->GetException()); }},
    {"isGraphAsync", [](Info info) { info.GetReturnValue().Set(Numbered(info)->IsGraphAsync()); }},
    {"setExport", [](Info info) {  // (number, name, value)
       Numbered(info)->SetSyntheticModuleExport(I(), info[1].As<String>(), info[2]).IsNothing();
     }},
    {"stalled", [](Info info) {  // (number) -> where an await in it or what it imports never ended
       auto [where, messages] = Numbered(info)->GetStalledTopLevelAwaitMessages(I());
       if (!messages.empty()) info.GetReturnValue().Set(Where(messages[0]));
     }},
    {"attempt", Attempt},
    {"where", [](Info info) { info.GetReturnValue().Set(Where(Exception::CreateMessage(I(), info[0]))); }},
    // From now on the hook `trace` makes the text of every stack.
    {"formatTraces", [](Info) {
       I()->SetPrepareStackTraceCallback([](Local<Context>, Local<Value> error, Local<Array> sites) {
         return guest.Hook("trace", {error, sites});
       });
     }},
    // (names) -> an object of symbols that nobody sees on what they are put on.
    {"privates", [](Info info) {
       Local<ObjectTemplate> made = ObjectTemplate::New(I());
       for (Local<String> name : Strings(info[0])) made->Set(name, Private::New(I(), name));
       info.GetReturnValue().Set(made->NewInstance(guest.context()).ToLocalChecked());
     }},
};

}  // namespace

std::span<const Native> CodeNatives() {
  I()->SetHostImportModuleDynamicallyCallback(Import);
  I()->SetHostInitializeImportMetaObjectCallback([](Local<Context>, Local<Module> module, Local<Object> meta) {
    guest.Hook("importMeta", {Integer::New(I(), NumberOf(module)), meta});
  });
  return kNatives;
}

}  // namespace belljar
