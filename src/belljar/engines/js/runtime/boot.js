// The first of our code in the guest's realm: loads Node's own library files over our bindings, and sets the realm up.
// Guests can reach none of what is in here but what `globals` puts on their global object.
(function boot(native) {
  'use strict';

  const isProgram = native.ask(['kind'])[0] === 'program';

  // A file of Node's library, or of ours, as a function of these names. Programs find all of it compiled, as in Node.
  function compile(id, names) {
    const source = native.source(id);
    return source === undefined ? undefined : native.compileFunction(source, `node:${id}`, 0, 0, undefined, names, isProgram)[0];
  }
  native.compile = compile;

  const primordials = {};
  const privateSymbols = native.privates(native.ask(['privateNames'])[0]);
  const isolateSymbols = new Proxy({}, { get: (made, name) => (made[name] ??= Symbol(String(name))) });
  for (const id of ['internal/per_context/primordials', 'internal/per_context/domexception']) {
    compile(id, ['exports', 'primordials', 'privateSymbols', 'perIsolateSymbols'])(
      (boot[id] = {}), primordials, privateSymbols, isolateSymbols);
  }
  const { ArrayBufferIsView, MathMin, TypedArrayPrototypeSet, Uint8Array } = primordials;
  const bytesOf = (it) => (ArrayBufferIsView(it) ? new Uint8Array(it.buffer, it.byteOffset, it.byteLength) : new Uint8Array(it));
  // Of views or buffers; gives how many bytes were copied.
  native.copy = (from, to, at, start, count) => {
    const source = bytesOf(from), target = bytesOf(to);
    if (start > source.length || at > target.length) return 0;
    count = MathMin(count, source.length - start, target.length - at);
    TypedArrayPrototypeSet(target, new Uint8Array(source.buffer, source.byteOffset + start, count), at);
    return count;
  };

  if (isProgram) {
    return void compile('belljar/node/realm', ['native', 'compile', 'primordials', 'privateSymbols', 'isolateSymbols', 'DOMException'])(
      native, compile, primordials, privateSymbols, isolateSymbols, boot['internal/per_context/domexception'].DOMException);
  }

  // What Node's library asks about the process it thinks it is in.
  const process = {
    __proto__: null,
    platform: 'linux',
    arch: 'x64',
    version: 'v24.0.0',
    versions: { __proto__: null, node: '24.0.0' },
    env: { __proto__: null },
    argv: [],
    execArgv: [],
    cwd: () => '/',
    emitWarning() {},
    nextTick: (callback, ...values) => void queue(() => callback(...values)),
    queueMicrotask: (callback) => void queue(() => callback()),
    binding() {},
    on() {},
    features: {},
    config: { variables: {} },
    release: {},
  };
  const queue = (callback) => primordials.PromisePrototypeThen(primordials.PromiseResolve(undefined), callback);

  const bindings = {};
  const internalBinding = (name) => {
    const binding = bindings[name];
    if (binding === undefined) throw new Error(`no binding ${name}`);
    return binding;
  };

  const modules = new primordials.SafeMap();
  const names = ['exports', 'require', 'module', 'process', 'internalBinding', 'primordials', 'native'];
  function require(id) {
    if (primordials.StringPrototypeStartsWith(id, 'node:')) id = primordials.StringPrototypeSlice(id, 5);
    let module = modules.get(id);
    if (module === undefined) {
      module = { exports: {}, id, loaded: false };
      modules.set(id, module);
      const load = compile(id, names);
      if (load === undefined) throw new Error(`no builtin module ${id}`);
      primordials.ReflectApply(load, undefined,
        [module.exports, require, module, process, internalBinding, primordials, native]);
      module.loaded = true;
    }
    return module.exports;
  }
  const put = (id, exports) => modules.set(id, { exports, id, loaded: true });

  put('internal/options', { getOptionValue: () => undefined, getEmbedderOptions: () => ({}), refreshOptions() {} });
  put('internal/repl', {}); // all that internal/repl/await wants of it is that it was loaded
  put('internal/bootstrap/realm', {
    BuiltinModule: { exists: (id) => primordials.StringPrototypeStartsWith(id, 'internal/') },
  });
  require('belljar/bindings')(bindings, {
    privateSymbols,
    isolateSymbols,
    DOMException: boot['internal/per_context/domexception'].DOMException,
    require,
    put,
  });
  require('internal/util/debuglog').initializeDebugEnv(undefined);
  require('belljar/globals');
  const run = require('belljar/run');
  const REJECTED = 0, HANDLED = 1; // what the engine tells of promises
  native.hooks({
    __proto__: null,
    ...run,
    ...require('belljar/code').hooks,
    rejection(event, promise, reason) {
      if (event === REJECTED || event === HANDLED) run.rejection(promise, reason, event === REJECTED);
    },
  });
})
