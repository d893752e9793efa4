// The first of our code in the guest's realm: loads Node's own library files over our bindings, and sets the realm up.
// Guests can reach none of what is in here but what `globals` puts on their global object. As engines/js has it for V8,
// except for what it says of the engine, and that programs' modules are loaded ahead: here that takes long.
(function boot(native) {
  'use strict';

  const AHEAD = ('belljar/program belljar/node_process belljar/node_modules belljar/node_esm belljar/node/fs belljar/node_extras ' +
    'belljar/node_child assert events fs fs/promises path stream stream/promises url util').split(' ');

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
    version: `${native.version}-quickjs`,
    versions: { __proto__: null, node: `${native.version.slice(1)}-quickjs`, quickjs: '0.15.0' },
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

  // What our code for V8 says of it there is not so here.
  Object.defineProperty(process.versions, 'v8', { __proto__: null, get() {}, set() {} });

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

  // At the start of every function acorn looks for 'use strict' with an expression that this engine tries at every character
  // up to the end of the program. Only what begins with a quote (or a comment) can be one.
  function hasten(parser) {
    const { strictDirective } = parser;
    parser.strictDirective = function (start) {
      const { input } = this;
      for (;; start++) {
        const code = primordials.StringPrototypeCharCodeAt(input, start);
        if (code === 32 || code >= 9 && code <= 13) continue;
        return (code === 34 || code === 39 || code === 47 || code > 127) && primordials.ReflectApply(strictDirective, this, [start]);
      }
    };
  }

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
  require('belljar/node_bindings')(bindings, { require, put });
  require('internal/util/debuglog').initializeDebugEnv(undefined);
  require('belljar/globals');
  const run = require('belljar/run');
  run.program = () => require('belljar/program').main();
  native.hooks(run);
  hasten(require('internal/deps/acorn/acorn/dist/acorn').Parser.prototype);
  native.setParsers({ loosen: require('belljar/repl').loosen, explain: require('belljar/explain') });
  for (const id of AHEAD) require(id);
})
