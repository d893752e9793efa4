// The realm of `node`: Node's own library, started as Node starts it, over bindings of ours. A template does this once;
// each program is a fork of it.
'use strict';

/* global native, compile, primordials, privateSymbols, isolateSymbols, DOMException */

const { ObjectCreate, ObjectDefineProperty, SafeMap, StringPrototypeStartsWith } = primordials;

// What Node's C++ side makes: an object whose constructor is called `process`.
const { process: Process } = { process: function process() {} };
const process = ObjectCreate(ObjectCreate(ObjectCreate(null), {
  constructor: { __proto__: null, value: Process, writable: true, configurable: true },
}));

const modules = new SafeMap();
const names = ['exports', 'require', 'module', 'process', 'internalBinding', 'primordials', 'native'];
const own = { privateSymbols, isolateSymbols, DOMException, require: undefined, internalBinding: undefined };

// Our own files; `require` of anything else in them is Node's internal one.
function load(id) {
  if (!StringPrototypeStartsWith(id, 'belljar/')) return own.require(id);
  let module = modules.get(id);
  if (module === undefined) {
    module = { exports: {} };
    modules.set(id, module);
    compile(id, names)(module.exports, load, module, process, (name) => own.internalBinding(name), primordials, native);
  }
  return module.exports;
}
native.realm = own;

const { bind } = load('belljar/node/bindings');
const { hooks } = load('belljar/node/hooks');
native.hooks(hooks);
load('belljar/node/process');

compile('internal/bootstrap/realm', ['process', 'getLinkedBinding', 'getInternalBinding', 'primordials'])(
  process, () => { throw new primordials.Error('No such binding'); }, bind, primordials);

const parameters = ['process', 'require', 'internalBinding', 'primordials'];
for (const id of ['node', 'web/exposed-wildcard', 'web/exposed-window-or-worker', 'switches/is_main_thread',
  'switches/does_own_process_state']) {
  compile(`internal/bootstrap/${id}`, parameters)(process, own.require, own.internalBinding, primordials);
}
load('belljar/node/program');
