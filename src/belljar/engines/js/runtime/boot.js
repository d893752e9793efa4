// The first of our code in the guest's realm: loads Node's own library files over our bindings, and sets the realm up.
// Guests can reach none of what is in here but what `globals` puts on their global object.
(function boot(native) {
  'use strict';

  const primordials = {};
  const privateSymbols = new Proxy({}, { get: (made, name) => (made[name] ??= Symbol(String(name))) });
  for (const id of ['internal/per_context/primordials', 'internal/per_context/domexception']) {
    native.compile(id, ['exports', 'primordials', 'privateSymbols', 'perIsolateSymbols'])(
      (boot[id] = {}), primordials, privateSymbols, privateSymbols);
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
      const load = native.compile(id, names);
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
    DOMException: boot['internal/per_context/domexception'].DOMException,
    require,
    put,
  });
  require('internal/util/debuglog').initializeDebugEnv(undefined);
  require('belljar/globals');
  native.hooks(require('belljar/run'));
})
